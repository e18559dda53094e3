//! What a backup holds.

use std::path::Path;

use eventlog::backup::{Manifest, MasterKeyPlace};

use super::{
    units,
    verify::{hex, named},
};
use crate::screen::Screen;

/// The table.
pub(crate) fn backup(screen: Screen, folder: &Path, manifest: &Manifest) -> String {
    let bytes = manifest.files.iter().map(|file| file.bytes).sum();
    let master_key = match manifest.master_key {
        MasterKeyPlace::Included => "in the backup",
        MasterKeyPlace::Elsewhere => "not in the backup: restoring needs it",
    };
    let files = match &manifest.threads {
        Some(threads) => {
            format!("{}, {}", units::counted(threads.files, "file", "files"), units::bytes(threads.bytes))
        }
        None => "left out".to_owned(),
    };
    let rows = [
        ("BACKUP", folder.display().to_string()),
        ("EVENTS", units::grouped(manifest.events)),
        ("COMMITS", units::grouped(manifest.commits)),
        ("HEAD", units::grouped(manifest.position.get())),
        ("CHAIN", hex(&manifest.chain)),
        ("SIZE", units::bytes(bytes)),
        ("THREADS", files),
        ("MASTER KEY", master_key.to_owned()),
    ];
    named(screen, &rows)
}

#[cfg(test)]
mod tests {
    use eventlog::{
        Position,
        backup::{FileEntry, ThreadFiles},
    };
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_backup_is_described() {
        let manifest = Manifest {
            format: 3,
            log_format: 3,
            position: Position::new(1_240),
            chain: [0xab; 32],
            events: 1_240,
            commits: 310,
            taken_at: Timestamp::UNIX_EPOCH,
            master_key: MasterKeyPlace::Included,
            files: vec![FileEntry {
                name: "segments/0000000000000000.seg".into(),
                bytes: 1_300_000,
                blake3: [0; 32],
            }],
            blobs: Vec::new(),
            threads: Some(ThreadFiles {
                list: FileEntry { name: "threads.jsonl".into(), bytes: 4_000, blake3: [0; 32] },
                files: 12,
                bytes: 34_000,
                left_out: 0,
            }),
        };
        insta::assert_snapshot!(backup(Screen::plain(Some(100)), Path::new("/backups/monday"), &manifest));
    }
}
