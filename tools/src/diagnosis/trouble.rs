//! What opening a folder would refuse, in the words of the doctor: what is wrong apart from what to
//! do.

use domain::causes::with_causes;
use eventlog::OpenError;

use super::Finding;
use crate::{failure::exit_of_open, output::program};

/// Whether somebody else has the folder.
pub(super) fn is_held(error: &OpenError) -> bool {
    matches!(error, OpenError::Held { .. } | OpenError::HeldByUnknown { .. })
}

/// What to do when events are lost.
pub(super) fn restore_advice() -> String {
    format!("keep the folder as it is, and `{} restore BACKUP --data NEW` from a backup", program())
}

/// What an error of opening means.
pub(super) fn of_open(error: &OpenError) -> Finding {
    let exit = exit_of_open(error);
    let problem = |check, found: String, advice: String| Finding::problem(check, exit, found, advice);
    match error {
        OpenError::Held { pid, command, since, address, .. } => {
            let found = format!("process {pid} has the folder open (`{command}`, since {since})");
            problem("lock", found, held_advice(address.as_deref()))
        }
        OpenError::HeldByUnknown { .. } => {
            let found = "another process has just opened the folder".to_owned();
            problem("lock", found, "try again, or stop it".to_owned())
        }
        OpenError::HeadBehind { log, noted, .. } => {
            let found =
                format!("the log ends at position {log}, and had durably reached {noted}: events are lost");
            problem("head", found, restore_advice())
        }
        OpenError::HeadDiffers { noted, .. } => {
            let found = format!("the log is another one than was there at position {noted}");
            problem("head", found, restore_advice())
        }
        OpenError::WatermarkDamaged { path } => {
            let found = format!("the head file {} is damaged", path.display());
            let advice = format!("run `{} verify` on a copy of the folder, then remove the file", program());
            problem("head", found, advice)
        }
        OpenError::SegmentDamaged { path, at, position, what } => {
            let found = format!(
                "{} is damaged at byte {at}, where position {position} is ({what}), and later commits stand \
                 behind the damage",
                path.display()
            );
            problem("record", found, restore_advice())
        }
        OpenError::RecordLost { .. } => {
            let found = "the log is missing, and there are keys of threads that it had".to_owned();
            problem("record", found, restore_advice())
        }
        OpenError::OldFormat { .. } => {
            let advice = "start the server on it once: that brings it to the present format".to_owned();
            problem("format", "an earlier version wrote the log".to_owned(), advice)
        }
        OpenError::Migration { .. } => {
            let advice = "look at the disk, or restore a backup: the log is as it was".to_owned();
            problem("format", with_causes(error), advice)
        }
        OpenError::KeysLost { .. }
        | OpenError::KeysDamaged { .. }
        | OpenError::MasterKeyLost { .. }
        | OpenError::MasterKeyMissing { .. }
        | OpenError::MasterKeyWrong { .. }
        | OpenError::MasterKeyInvalid { .. } => {
            let (found, advice) = of_keys(error);
            problem("keys", found, advice)
        }
        OpenError::Format { source, .. } => {
            let advice = "use the version of remit that wrote it, or a later one".to_owned();
            problem("format", with_causes(source), advice)
        }
        OpenError::Engine { source, .. } => problem("engine", with_causes(source), restore_advice()),
        OpenError::Store(_) => problem("log", with_causes(error), restore_advice()),
        OpenError::Io { .. } | OpenError::Writer(_) => {
            let advice = "look at the disk and at the permissions of the folder".to_owned();
            problem("folder", with_causes(error), advice)
        }
    }
}

/// What is wrong with the keys, and what to do.
fn of_keys(error: &OpenError) -> (String, String) {
    let (found, is_of_master) = match error {
        OpenError::KeysLost { path } => (format!("the key file {} is missing", path.display()), false),
        OpenError::KeysDamaged { path } => (format!("the key file {} is damaged", path.display()), false),
        OpenError::MasterKeyLost { path } => (format!("the master key {} is missing", path.display()), true),
        OpenError::MasterKeyMissing { path } => {
            (format!("there is no master key in {}, where log.master_key says it is", path.display()), true)
        }
        OpenError::MasterKeyWrong { path, given } => {
            let keys = path.display();
            (
                format!("the keys in {keys} were wrapped with another master key than the one from {given}"),
                true,
            )
        }
        OpenError::MasterKeyInvalid { path, source } => {
            (format!("the master key {} cannot be used: {source}", path.display()), true)
        }
        OpenError::Io { .. }
        | OpenError::Held { .. }
        | OpenError::HeldByUnknown { .. }
        | OpenError::Engine { .. }
        | OpenError::Format { .. }
        | OpenError::Store(_)
        | OpenError::HeadBehind { .. }
        | OpenError::SegmentDamaged { .. }
        | OpenError::RecordLost { .. }
        | OpenError::OldFormat { .. }
        | OpenError::Migration { .. }
        | OpenError::HeadDiffers { .. }
        | OpenError::WatermarkDamaged { .. }
        | OpenError::Writer(_) => (with_causes(error), false),
    };
    (found, if is_of_master { master_key_advice() } else { keys_advice() })
}

fn held_advice(address: Option<&str>) -> String {
    match address {
        Some(address) => format!("stop it to look closer, or pass --server {address} to speak to it"),
        None => "stop it to look closer".to_owned(),
    }
}

fn keys_advice() -> String {
    restore_advice()
}

fn master_key_advice() -> String {
    "put back the one that was used, or say in log.master_key where it is: without it no event can be read"
        .to_owned()
}
