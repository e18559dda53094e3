//! Looking at the keys of a folder that nobody has open, and wrapping them with another master key.

use std::path::Path;

use super::{KEYS_FOLDER, OpenError, acquire_lock, io_error};
use crate::{
    keyring::{KeyFile, ListedKey, MasterKey, Rewrapped},
    options::Options,
};

/// The keys of threads and runs, in the order in which they were made. The master key must be the one that
/// wraps them.
pub fn list_keys(folder: &Path, options: &Options) -> Result<Vec<ListedKey>, OpenError> {
    let _lock = acquire_lock(folder, (options.clock)())?;
    let keys_folder = folder.join(KEYS_FOLDER);
    let file = KeyFile::open(&keys_folder, &options.master_key, true)?;
    file.list().map_err(io_error("read the keys in", &keys_folder))
}

/// Wraps all keys of a folder with another master key, which must be used from then on. A generated
/// master key is removed with that. A crash leaves the keys as they were or as they will be, and doing it
/// again does what is left. None if the keys were wrapped with it already.
pub fn rewrap_keys(folder: &Path, options: &Options, to: &MasterKey) -> Result<Option<Rewrapped>, OpenError> {
    let _lock = acquire_lock(folder, (options.clock)())?;
    let keys_folder = folder.join(KEYS_FOLDER);
    let rewrapped = match KeyFile::open(&keys_folder, to, true) {
        Ok(_) => None,
        Err(OpenError::MasterKeyWrong { .. }) => {
            let file = KeyFile::open(&keys_folder, &options.master_key, true)?;
            Some(file.rewrap(&keys_folder, to)?)
        }
        Err(error) => return Err(error),
    };
    // A crash may have kept a generated one when the keys had been wrapped anew.
    if matches!(options.master_key, MasterKey::Generated) {
        KeyFile::open(&keys_folder, to, true)?.remove_replaced_master(&keys_folder)?;
    }
    Ok(rewrapped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventLog, Position, SecretKey, sample, secret};

    fn options(master_key: MasterKey) -> Options {
        Options { master_key, ..sample::options() }
    }

    fn given(byte: u8) -> MasterKey {
        MasterKey::given(SecretKey::new([byte; 32]), "a test")
    }

    #[tokio::test]
    async fn a_log_opens_with_the_new_master_key_alone_and_is_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, generated) = (folder.path(), options(MasterKey::Generated));
        let log = EventLog::open(folder, generated.clone()).unwrap();
        sample::add(&log, &sample::thread("t"), [1, 2]).await.unwrap();
        let events = log.read_all(Position::ZERO, 9).unwrap();
        assert!(matches!(rewrap_keys(folder, &generated, &given(1)), Err(OpenError::Held { .. })));
        log.close().await;
        let master = folder.join("keys/master.key");
        let kept = std::fs::read(&master).unwrap();

        // From the generated one to one from elsewhere, from there to another, and to a file.
        let file = MasterKey::File(folder.join("elsewhere"));
        std::fs::write(folder.join("elsewhere"), secret::SecretKey::new([3; 32]).to_hex().as_bytes())
            .unwrap();
        let wrong = rewrap_keys(folder, &options(given(2)), &given(1)).unwrap_err();
        assert!(matches!(wrong, OpenError::MasterKeyWrong { .. }), "{wrong}");
        assert_eq!(std::fs::read(&master).unwrap(), kept);
        for (from, to) in [(MasterKey::Generated, given(1)), (given(1), given(2)), (given(2), file)] {
            let done = rewrap_keys(folder, &options(from.clone()), &to).unwrap();
            assert_eq!(done, Some(Rewrapped { live: 1, destroyed: 0, damaged: 0 }));
            assert!(!master.exists());
            assert!(EventLog::open(folder, options(from.clone())).is_err());
            let log = EventLog::open(folder, options(to.clone())).unwrap();
            assert_eq!(log.read_all(Position::ZERO, 9).unwrap(), events);
            log.close().await;
            // Once more is no harm, also for whoever still has the old one in the configuration.
            assert_eq!(rewrap_keys(folder, &options(from), &to).unwrap(), None);
            assert_eq!(list_keys(folder, &options(to)).unwrap().len(), 1);
        }
    }

    /// A crash after the keys were wrapped anew, and before the generated master key was removed.
    #[tokio::test]
    async fn a_generated_key_that_a_crash_kept_is_removed_when_it_is_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, generated) = (folder.path(), options(MasterKey::Generated));
        let log = EventLog::open(folder, generated.clone()).unwrap();
        sample::add(&log, &sample::thread("t"), [1]).await.unwrap();
        log.close().await;
        let master = folder.join("keys/master.key");
        let kept = std::fs::read(&master).unwrap();
        rewrap_keys(folder, &generated, &given(1)).unwrap();
        std::fs::write(&master, &kept).unwrap();
        assert_eq!(rewrap_keys(folder, &generated, &given(1)).unwrap(), None);
        assert!(!master.exists());
        // One that wraps the keys stays, whatever it is called.
        std::fs::write(&master, &kept).unwrap();
        rewrap_keys(folder, &options(given(1)), &MasterKey::File(master.clone())).unwrap();
        assert_eq!(rewrap_keys(folder, &generated, &MasterKey::File(master.clone())).unwrap(), None);
        assert_eq!(std::fs::read(&master).unwrap(), kept);
    }
}
