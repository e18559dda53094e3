//! Files of threads that go into a backup and come out of it, whatever they are called, and what is
//! not followed, not believed and not kept.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    ops::ControlFlow,
    os::unix::{ffi::OsStrExt as _, net::UnixListener},
};

use super::*;
use crate::{
    EventLog, Progress, VerifyRequest,
    backup::{BackupRequest, restore, verify_backup},
    sample,
};

/// What is in a folder: kind, mode, and what a file holds or a link says.
fn found(folder: &Path) -> BTreeMap<PathBuf, (char, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.permissions().mode() & 0o777;
            let said = if metadata.is_symlink() {
                ('l', 0, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
            } else if metadata.is_dir() {
                left.push(path.clone());
                ('d', mode, Vec::new())
            } else {
                ('f', mode, fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), said);
        }
    }
    found
}

/// A data folder with two threads that have files.
struct World {
    folder: tempfile::TempDir,
    log: EventLog,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = EventLog::open(&folder.path().join("data"), sample::options()).unwrap();
        for name in ["t", "u"] {
            sample::add(&log, &sample::thread(name), [1, 2]).await.unwrap();
        }
        let world = Self { folder, log };
        for name in ["t", "u"] {
            let outputs = world.threads().join(name).join("user-data/outputs");
            fs::create_dir_all(&outputs).unwrap();
            fs::write(outputs.join("report.md"), format!("the report of {name}")).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn threads(&self) -> PathBuf {
        self.path("data/threads")
    }

    fn back_up(&self, target: &Path) -> Result<Manifest, BackupError> {
        self.back_up_with(target, &mut |_| ControlFlow::Continue(()))
    }

    fn back_up_with(
        &self,
        target: &Path,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Manifest, BackupError> {
        let threads = self.threads();
        self.log
            .back_up(target, BackupRequest { taken_at: sample::time(), threads: Some(&threads), progress })
    }

    fn restore(&self, to: &Path) -> Result<crate::Report, BackupError> {
        restore(&self.path("backup"), to, &sample::options(), &mut |_| {})
    }

    /// Expects that neither verifying nor restoring the backup goes well.
    #[track_caller]
    fn check_damaged(&self, expected: &str) {
        let verified = verify_backup(&self.path("backup"), VerifyRequest::default()).unwrap_err();
        let restored = self.restore(&self.path("restored")).unwrap_err();
        for error in [verified, restored] {
            assert!(error.is_damage() && error.to_string().contains(expected), "{error}");
        }
        assert!(!self.path("restored").exists());
    }
}

#[tokio::test]
async fn files_come_back_as_they_were_and_nothing_is_followed() {
    let world = World::new().await;
    let workspace = world.threads().join("t/user-data/workspace");
    fs::create_dir_all(workspace.join("empty")).unwrap();
    fs::write(world.path("outside"), "not of a thread").unwrap();
    for (name, text) in
        [(&b"run.sh"[..], "#!/bin/sh"), (b"two\nlines \xf0\x9f\x8e\x89", ""), (b"\xff\xfe", "bytes")]
    {
        fs::write(workspace.join(OsStr::from_bytes(name)), text).unwrap();
    }
    fs::write(workspace.join("large"), vec![7; 600 * 1024]).unwrap();
    fs::set_permissions(workspace.join("run.sh"), Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(workspace.join("empty"), Permissions::from_mode(0o555)).unwrap();
    symlink(world.path("outside"), workspace.join("link")).unwrap();
    symlink("/", workspace.join("root")).unwrap();
    let mut before = found(&world.threads());
    let _socket = UnixListener::bind(workspace.join("socket")).unwrap();

    let manifest = world.back_up(&world.path("backup")).unwrap();
    let threads = manifest.threads.clone().unwrap();
    assert_eq!((threads.files, threads.left_out), (6, 1));
    let copied: Vec<_> = found(&world.path("backup")).into_values().collect();
    assert!(copied.iter().all(|(kind, _, bytes)| *kind != 'l' && bytes != b"not of a thread"));
    verify_backup(&world.path("backup"), VerifyRequest::default()).unwrap();
    world.restore(&world.path("restored")).unwrap();
    // The bit that lends rights is not kept.
    before.values_mut().for_each(|(_, mode, _)| *mode &= 0o777);
    assert_eq!(found(&world.path("restored/threads")), before);
}

#[tokio::test]
async fn threads_without_files_and_files_that_are_left_out_leave_nothing() {
    let world = World::new().await;
    fs::remove_dir_all(world.threads()).unwrap();
    let manifest = world.back_up(&world.path("backup")).unwrap();
    assert_eq!(manifest.threads.map(|threads| threads.files), Some(0));
    world.restore(&world.path("restored")).unwrap();
    let progress = &mut |_| ControlFlow::Continue(());
    let request = BackupRequest { taken_at: sample::time(), threads: None, progress };
    let manifest = world.log.back_up(&world.path("without"), request).unwrap();
    assert_eq!(manifest.threads, None);
    assert!(!world.path("without/threads").exists());
}

#[tokio::test]
async fn changed_files_are_noticed() {
    let world = World::new().await;
    world.back_up(&world.path("backup")).unwrap();
    let copy = world.path("backup/threads/t/user-data/outputs/report.md");
    let whole = fs::read(&copy).unwrap();
    for (changed, expected) in [
        (Some(&b"the report of x"[..]), "its hash is not that of the list"),
        (Some(b"the report"), "it has 10 bytes, and had 15"),
        (None, "it is missing"),
    ] {
        fs::remove_file(&copy).unwrap();
        if let Some(bytes) = changed {
            fs::write(&copy, bytes).unwrap();
        }
        world.check_damaged(expected);
        fs::write(&copy, &whole).unwrap();
    }
    fs::rename(&copy, world.path("elsewhere")).unwrap();
    symlink(world.path("elsewhere"), &copy).unwrap();
    world.check_damaged("it is no plain file");
}

#[tokio::test]
async fn a_list_that_points_outside_is_not_believed() {
    let world = World::new().await;
    for path in ["../x", "/x", "t/../../x", "", "."] {
        drop(fs::remove_dir_all(world.path("backup")));
        let mut manifest = world.back_up(&world.path("backup")).unwrap();
        let list = world.path("backup").join(LIST_FILE);
        let line = serde_json::json!({"path": path, "entry": {"folder": {"mode": 0o755}}});
        fs::write(&list, format!("{line}\n")).unwrap();
        manifest.threads.as_mut().unwrap().list =
            entries::describe(&world.path("backup"), LIST_FILE).unwrap();
        fs::remove_file(world.path("backup/manifest.json")).unwrap();
        manifest.write(&world.path("backup")).unwrap();
        world.check_damaged("which is outside");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_that_is_erased_meanwhile_leaves_no_file() {
    let world = World::new().await;
    let handle = tokio::runtime::Handle::current();
    let mut is_erased = false;
    let target = world.path("backup");
    let manifest = tokio::task::block_in_place(|| {
        world.back_up_with(&target, &mut |_| {
            // Somewhere among the files: from the second call on.
            if !std::mem::replace(&mut is_erased, true) {
                handle.block_on(world.log.destroy_thread_key(&ThreadId::new("u").unwrap())).unwrap();
            }
            ControlFlow::Continue(())
        })
    });
    assert_eq!(manifest.unwrap().threads.unwrap().files, 1);
    let texts: Vec<_> = found(&target).into_values().map(|(.., bytes)| bytes).collect();
    let holds = |text: &[u8]| texts.iter().any(|bytes| bytes.windows(text.len()).any(|part| part == text));
    assert!(holds(b"the report of t") && !holds(b"the report of u"));
    verify_backup(&target, VerifyRequest::default()).unwrap();
}

#[tokio::test]
async fn a_backup_that_is_stopped_is_not_there() {
    let world = World::new().await;
    for calls_max in 0..5 {
        let mut calls = 0;
        let stopped = world.back_up_with(&world.path("backup"), &mut |_| {
            calls += 1;
            if calls > calls_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(stopped, Err(BackupError::Stopped)), "{stopped:?}");
        let names: Vec<_> =
            fs::read_dir(world.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["data"]);
    }
    let inside = world.back_up(&world.threads().join("t/backup"));
    assert!(matches!(inside, Err(BackupError::InsideItself { .. })), "{inside:?}");
    assert!(!world.threads().join("t/backup").exists());
}
