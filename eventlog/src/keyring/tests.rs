//! The key file: keys that stay, keys that go, and files that are lost, cut or of somebody else.

mod rewrapping;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use proptest::prelude::*;

use super::{slot::SLOT_BYTES, *};
use crate::open::OpenError;

const THREAD: ScopeId = ScopeId([1; 16]);
const RUN: ScopeId = ScopeId([2; 16]);
const OTHER: ScopeId = ScopeId([3; 16]);

fn try_open(folder: &Path, master: &MasterKey, must_exist: bool) -> Result<Keyring, OpenError> {
    KeyFile::open(folder, master, must_exist).map(|file| Keyring::open(file).unwrap())
}

fn open(folder: &Path) -> Keyring {
    try_open(folder, &MasterKey::Generated, false).unwrap()
}

#[track_caller]
fn live(keyring: &Keyring, scope: ScopeId) -> Arc<SecretKey> {
    match keyring.find(scope).unwrap() {
        Found::Live(key) => key,
        other @ (Found::Destroyed | Found::Missing) => panic!("{other:?}"),
    }
}

/// A folder with a key for the thread, its run, and another thread.
fn filled() -> (tempfile::TempDir, [Arc<SecretKey>; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let keyring = open(folder.path());
    let keys = [(THREAD, THREAD), (THREAD, RUN), (OTHER, OTHER)]
        .map(|(thread, scope)| keyring.find_or_create(thread, scope).unwrap().unwrap());
    keyring.save().unwrap();
    (folder, keys)
}

fn slots(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("threads")).unwrap()
}

#[test]
fn keys_are_there_after_opening_again() {
    let (folder, keys) = filled();
    let keyring = open(folder.path());
    for (scope, key) in [THREAD, RUN, OTHER].into_iter().zip(&keys) {
        assert_eq!(live(&keyring, scope), *key);
        assert_eq!(keyring.find_or_create(scope, scope).unwrap().unwrap(), *key);
    }
    assert!(keys[0] != keys[1] && keys[1] != keys[2]);
    assert!(matches!(keyring.find(ScopeId([9; 16])).unwrap(), Found::Missing));
    // The next key does not take the place of one that is there.
    keyring.find_or_create(ScopeId([9; 16]), ScopeId([9; 16])).unwrap();
    keyring.save().unwrap();
    assert_eq!(live(&open(folder.path()), OTHER), keys[2]);
}

#[test]
fn a_key_that_was_not_saved_is_gone() {
    let (folder, _) = filled();
    let before = slots(folder.path());
    open(folder.path()).find_or_create(ScopeId([9; 16]), ScopeId([9; 16])).unwrap();
    assert_eq!(slots(folder.path()), before);
}

#[test]
fn a_destroyed_key_is_overwritten_where_it_was() {
    let (folder, keys) = filled();
    let before = slots(folder.path());
    let keyring = open(folder.path());
    assert!(keyring.destroy_thread(THREAD, true).unwrap());
    assert!(!keyring.destroy_thread(THREAD, true).unwrap());
    let after = slots(folder.path());
    assert_eq!(after.len(), before.len());
    for keyring in [keyring, open(folder.path())] {
        assert!(keyring.is_destroyed(THREAD) && keyring.is_destroyed(RUN) && !keyring.is_destroyed(OTHER));
        assert!(matches!(keyring.find(RUN).unwrap(), Found::Destroyed));
        assert_eq!(keyring.find_or_create(THREAD, RUN).unwrap(), None);
        assert_eq!(live(&keyring, OTHER), keys[2]);
    }
    for slot in [1, 2] {
        let wrapped = &before[slot * SLOT_BYTES + 40..slot * SLOT_BYTES + 112];
        assert!(!after.windows(wrapped.len()).any(|window| window == wrapped), "slot {slot}");
    }
}

#[test]
fn a_run_is_destroyed_alone() {
    let (folder, keys) = filled();
    assert!(open(folder.path()).destroy(THREAD, RUN, true).unwrap());
    let keyring = open(folder.path());
    assert!(keyring.is_destroyed(RUN) && !keyring.is_destroyed(THREAD));
    assert_eq!(live(&keyring, THREAD), keys[0]);
    assert!(!keyring.destroy(THREAD, ScopeId([9; 16]), false).unwrap());
}

#[test]
fn the_file_grows_and_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let scope = |number: u32| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        ScopeId(id)
    };
    let keyring = open(folder.path());
    let keys: Vec<_> =
        (0..1_500).map(|number| keyring.find_or_create(OTHER, scope(number)).unwrap().unwrap()).collect();
    keyring.save().unwrap();
    assert_eq!(slots(folder.path()).len(), 3 * 512 * SLOT_BYTES);
    let keyring = open(folder.path());
    for (number, key) in (0..).zip(&keys) {
        assert_eq!(live(&keyring, scope(number)), *key);
    }
}

#[test]
fn nonces_never_repeat() {
    let (one, other) = (Keyring::in_memory().unwrap(), Keyring::in_memory().unwrap());
    let mut nonces: Vec<_> = (0..100).flat_map(|_| [one.next_nonce(), other.next_nonce()]).collect();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), 200);
}

#[track_caller]
fn check_refused(folder: &Path, master: &MasterKey, expected: &str) {
    let error = try_open(folder, master, true).err().unwrap().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(error.contains(folder.to_str().unwrap()), "{error} does not name the file");
}

#[test]
fn lost_and_damaged_files_are_refused_by_name() {
    let (folder, _) = filled();
    let (folder, generated) = (folder.path(), MasterKey::Generated);
    let (path, whole) = (folder.join("threads"), slots(folder));
    let master = fs::read(folder.join("master.key")).unwrap();
    check_refused(
        folder,
        &MasterKey::given(SecretKey::new([5; 32]), "a test"),
        "the master key from a test is not the one",
    );
    fs::write(folder.join("master.key"), "12 34").unwrap();
    check_refused(folder, &generated, "master.key cannot be used");
    fs::remove_file(folder.join("master.key")).unwrap();
    check_refused(folder, &generated, "master.key is missing, and the keys of threads are wrapped with it");
    check_refused(folder, &MasterKey::File(folder.join("none")), "there is no master key in");
    fs::write(folder.join("master.key"), &master).unwrap();
    for at in 0..24 {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        check_refused(folder, &generated, "is damaged; keep the folder as it is");
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    check_refused(folder, &generated, "is damaged; keep the folder as it is");
    fs::remove_file(&path).unwrap();
    check_refused(folder, &generated, "is missing, and the log has events that were sealed with its keys");
    fs::write(&path, &whole).unwrap();
    assert!(try_open(folder, &generated, true).is_ok());
}

#[test]
fn a_damaged_key_is_missing_and_the_others_stay() {
    let (folder, keys) = filled();
    let mut bytes = slots(folder.path());
    bytes[SLOT_BYTES + 70] ^= 1;
    fs::write(folder.path().join("threads"), &bytes).unwrap();
    let keyring = open(folder.path());
    assert!(matches!(keyring.find(THREAD).unwrap(), Found::Missing));
    assert_eq!(live(&keyring, RUN), keys[1]);
}

#[test]
fn the_master_key_is_its_owners_alone_and_may_come_from_elsewhere() {
    let (folder, keys) = filled();
    let path = folder.path().join("master.key");
    for name in ["master.key", "threads"] {
        let mode = fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    let given = MasterKey::given(SecretKey::parse(&fs::read(&elsewhere).unwrap()).unwrap(), "a test");
    for master in [MasterKey::File(elsewhere.clone()), given] {
        assert_eq!(live(&try_open(folder.path(), &master, true).unwrap(), RUN), keys[1]);
        assert!(!path.exists());
        assert!(!format!("{master:?}").contains(fs::read_to_string(&elsewhere).unwrap().trim()));
    }
}

/// Power that is lost while the first file is made leaves a file of zeros, and no event.
#[test]
fn a_file_that_was_never_finished_is_made_anew() {
    for length in [0, 60, 512 * SLOT_BYTES] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("threads"), vec![0; length]).unwrap();
        let key = open(folder.path()).find_or_create(THREAD, THREAD).unwrap();
        assert!(key.is_some());
        open(folder.path());
    }
}

proptest! {
    #[test]
    fn a_slot_is_read_back_by_its_own_master_key_alone_and_no_changed_byte_passes(
        bytes: [[u8; 32]; 3], thread: [u8; 16], scope: [u8; 16], at in 0..SLOT_BYTES, bit in 0..8_u32,
    ) {
        let [master, other, key] = bytes.map(SecretKey::new);
        prop_assume!(master != other);
        let slot = Slot::wrap(&master, ScopeId(thread), ScopeId(scope), &key).unwrap();
        let mut stored = *slot.bytes();
        let slot::Read::Slot(read) = Slot::read(stored) else { panic!("a whole slot is damaged") };
        prop_assert_eq!((read.thread(), read.scope()), (ScopeId(thread), ScopeId(scope)));
        prop_assert!(!read.is_destroyed());
        prop_assert_eq!((read.unwrap(&master), read.unwrap(&other)), (Some(key), None));
        stored[at] ^= 1 << bit;
        prop_assert!(matches!(Slot::read(stored), slot::Read::Damaged));
        let slot::Read::Slot(gone) = Slot::read(*Slot::destroyed(ScopeId(thread), ScopeId(scope)).bytes()) else {
            panic!("a destroyed slot is damaged")
        };
        prop_assert_eq!((gone.thread(), gone.scope(), gone.unwrap(&master)), (ScopeId(thread), ScopeId(scope), None));
    }
}
