//! Another master key: every key stays what it is, wherever a crash strikes, and nothing of the old file
//! is left.

use super::*;

const OLD: [u8; 32] = [5; 32];
const NEW: [u8; 32] = [6; 32];

fn master(bytes: [u8; 32]) -> MasterKey {
    MasterKey::given(SecretKey::new(bytes), "a test")
}

/// Live keys for a thread and its run, a destroyed one, and a damaged one, wrapped with the old master key.
fn wrapped() -> (tempfile::TempDir, [Arc<SecretKey>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let keyring = try_open(folder.path(), &master(OLD), false).unwrap();
    let scopes = [(THREAD, THREAD), (THREAD, RUN), (OTHER, OTHER), (OTHER, ScopeId([4; 16]))];
    let [thread, run, _, _] =
        scopes.map(|(thread, scope)| keyring.find_or_create(thread, scope).unwrap().unwrap());
    keyring.save().unwrap();
    keyring.destroy(OTHER, OTHER, true).unwrap();
    let mut bytes = slots(folder.path());
    bytes[4 * SLOT_BYTES + 70] ^= 1;
    fs::write(folder.path().join("threads"), bytes).unwrap();
    (folder, [thread, run])
}

fn rewrap(folder: &Path) -> Rewrapped {
    let file = KeyFile::open(folder, &master(OLD), true).unwrap();
    file.rewrap(folder, &master(NEW)).unwrap()
}

/// The folder opens with one of the two keys alone, everything is as it was, and no other file is there.
#[track_caller]
fn check_whole(folder: &Path, keys: &[Arc<SecretKey>; 2], opens_with: [u8; 32], what: &str) {
    let other = if opens_with == OLD { NEW } else { OLD };
    check_refused(folder, &master(other), "is not the one that the keys in");
    let keyring = try_open(folder, &master(opens_with), true).unwrap();
    assert_eq!([live(&keyring, THREAD), live(&keyring, RUN)], *keys, "{what}");
    assert!(keyring.is_destroyed(OTHER), "{what}");
    assert!(matches!(keyring.find(ScopeId([4; 16])).unwrap(), Found::Missing), "{what}");
    let names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["threads"], "{what}");
    assert_eq!(fs::metadata(folder.join("threads")).unwrap().permissions().mode() & 0o777, 0o600, "{what}");
}

#[test]
fn every_key_stays_what_it_is_under_another_master_key() {
    let (folder, keys) = wrapped();
    let before = slots(folder.path());
    let old = fs::File::open(folder.path().join("threads")).unwrap();
    assert_eq!(rewrap(folder.path()), Rewrapped { live: 2, destroyed: 1, damaged: 1 });
    check_whole(folder.path(), &keys, NEW, "rewrapped");
    let after = slots(folder.path());
    for slot in [1, 2] {
        let wrapped = &before[slot * SLOT_BYTES + 40..slot * SLOT_BYTES + 112];
        assert!(!after.windows(wrapped.len()).any(|window| window == wrapped), "slot {slot}");
    }
    // What the old file had is overwritten where it stood, not only without a name.
    let mut left = Vec::new();
    std::io::Read::read_to_end(&mut &old, &mut left).unwrap();
    assert!(left.len() == before.len() && left.iter().all(|byte| *byte == 0));
    // The next key is a new one, and lies behind the others.
    let keyring = try_open(folder.path(), &master(NEW), true).unwrap();
    let (scope, key) = (ScopeId([9; 16]), keyring.find_or_create(OTHER, ScopeId([9; 16])).unwrap().unwrap());
    keyring.save().unwrap();
    let keyring = try_open(folder.path(), &master(NEW), true).unwrap();
    assert_eq!((live(&keyring, scope), live(&keyring, RUN)), (key, Arc::clone(&keys[1])));
}

/// What a crash can leave at each step: the new file, whole or not, the second name of the old one, the
/// new one in its place, and the old one, overwritten or not.
#[test]
fn a_crash_at_any_step_leaves_the_old_keys_or_the_new_ones() {
    let (done, _) = wrapped();
    let old = slots(done.path());
    rewrap(done.path());
    let new = slots(done.path());
    for length in [0, 1, SLOT_BYTES, new.len() - 1, new.len()] {
        for has_second_name in [false, true] {
            let (folder, _) = wrapped();
            let path = folder.path().join("threads");
            fs::write(&path, &old).unwrap();
            fs::write(folder.path().join("threads.new"), &new[..length]).unwrap();
            if has_second_name {
                fs::hard_link(&path, folder.path().join("threads.old")).unwrap();
            }
            let keys = keys_of(folder.path(), OLD);
            check_whole(folder.path(), &keys, OLD, &format!("{length} bytes, {has_second_name}"));
            assert_eq!(slots(folder.path()), old);
        }
    }
    for zeros in [0, 1, SLOT_BYTES, old.len()] {
        let (folder, _) = wrapped();
        let mut left = old.clone();
        left[..zeros].fill(0);
        fs::write(folder.path().join("threads"), &new).unwrap();
        fs::write(folder.path().join("threads.old"), left).unwrap();
        let keys = keys_of(folder.path(), NEW);
        check_whole(folder.path(), &keys, NEW, &format!("{zeros} zeros"));
        assert_eq!(slots(folder.path()), new);
    }
}

/// The keys of the thread and its run.
fn keys_of(folder: &Path, opens_with: [u8; 32]) -> [Arc<SecretKey>; 2] {
    let keyring = try_open(folder, &master(opens_with), true).unwrap();
    [THREAD, RUN].map(|scope| live(&keyring, scope))
}

/// A key file that cannot be used is evidence, and so is what lies beside it.
#[test]
fn nothing_is_removed_beside_keys_that_do_not_open() {
    let (folder, _) = wrapped();
    let (path, old) = (folder.path().join("threads"), folder.path().join("threads.old"));
    fs::copy(&path, &old).unwrap();
    let whole = slots(folder.path());
    fs::write(&path, &whole[..100]).unwrap();
    check_refused(folder.path(), &master(OLD), "is damaged");
    assert_eq!(fs::read(&old).unwrap(), whole);
    fs::remove_file(&path).unwrap();
    check_refused(folder.path(), &master(OLD), "is missing");
    assert_eq!(fs::read(&old).unwrap(), whole);
}

#[test]
fn keys_are_listed_by_whose_they_are_and_how_they_are() {
    let (folder, _) = wrapped();
    let file = KeyFile::open(folder.path(), &master(OLD), true).unwrap();
    let hash = |byte: &str| Some(byte.repeat(16));
    let row = |slot, thread_hash, run_hash, state| ListedKey { slot, thread_hash, run_hash, state };
    assert_eq!(
        file.list().unwrap(),
        [
            row(1, hash("01"), None, KeyState::Live),
            row(2, hash("01"), hash("02"), KeyState::Live),
            row(3, hash("03"), None, KeyState::Destroyed),
            row(4, None, None, KeyState::Damaged),
        ]
    );
}
