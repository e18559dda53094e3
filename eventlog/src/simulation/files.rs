//! The small files beside the engine, and what a crash leaves of them.

use std::{fs, path::Path};

use super::seed::Seed;
use crate::open::{KEYS_FOLDER, WATERMARK_FILE};

/// A slot of the key file: a write of one happens or does not.
const SLOT_BYTES: usize = 128;
/// What a slot begins with when its key was destroyed.
const DESTROYED: u8 = 2;
/// A slot of the head file.
const HEAD_SLOT_BYTES: usize = 512;
const MASTER_FILE: &str = "master.key";
const SLOTS_FILE: &str = "threads";

/// The files; none where there is no file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Files {
    pub(super) master: Option<Vec<u8>>,
    pub(super) keys: Option<Vec<u8>>,
    pub(super) head: Option<Vec<u8>>,
}

impl Files {
    pub(super) fn read(folder: &Path) -> Self {
        let keys = folder.join(KEYS_FOLDER);
        Self {
            master: fs::read(keys.join(MASTER_FILE)).ok(),
            keys: fs::read(keys.join(SLOTS_FILE)).ok(),
            head: fs::read(folder.join(WATERMARK_FILE)).ok(),
        }
    }

    /// Writes them into an empty folder.
    pub(super) fn write(&self, folder: &Path) {
        let keys = folder.join(KEYS_FOLDER);
        let places = [
            (keys.join(MASTER_FILE), &self.master),
            (keys.join(SLOTS_FILE), &self.keys),
            (folder.join(WATERMARK_FILE), &self.head),
        ];
        for (path, bytes) in places {
            if let Some(bytes) = bytes {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
    }

    /// What is there when a new folder was being filled. The files are made in this order, and each is
    /// durable before the next is begun; one that is being made has zeros, or does not exist.
    pub(super) fn unfinished(self, dice: &mut Seed) -> Self {
        let Self { master, keys, head } = self;
        let begun = |whole: Option<Vec<u8>>, dice: &mut Seed| {
            let length = dice.below(whole?.len() + 1);
            dice.happens(50).then(|| vec![0; length])
        };
        match dice.below(4) {
            0 => Self::default(),
            1 => Self { master, keys: begun(keys, dice), head: None },
            2 => Self { master, keys, head: begun(head, dice) },
            _ => Self { master, keys, head },
        }
    }
}

/// Puts keys back that have been destroyed since.
pub(super) fn undo_erasures(was: Option<&[u8]>, is: &mut [u8]) {
    let before = was.unwrap_or_default().chunks(SLOT_BYTES);
    for (slot, before) in is.chunks_mut(SLOT_BYTES).zip(before) {
        if slot[0] == DESTROYED {
            slot.copy_from_slice(before);
        }
    }
}

/// Each slot as it was or as it is.
pub(super) fn mixed(was: Option<&[u8]>, is: &[u8], dice: &mut Seed) -> Vec<u8> {
    let mut slots = is.to_vec();
    for (at, slot) in slots.chunks_mut(SLOT_BYTES).enumerate() {
        let before = was.and_then(|was| was.get(at * SLOT_BYTES..(at + 1) * SLOT_BYTES));
        if before.is_none_or(|before| before != slot) && dice.happens(50) {
            match before {
                Some(before) => slot.copy_from_slice(before),
                None => slot.fill(0),
            }
        }
    }
    slots
}

/// One of the versions of a head file that may be on the disk. The last one may be there by half.
pub(super) fn one_of(versions: &[Option<Vec<u8>>], dice: &mut Seed) -> Option<Vec<u8>> {
    let at = dice.below(versions.len());
    let (Some(newer), Some(Some(older))) = (versions[at].clone(), at.checked_sub(1).map(|at| &versions[at]))
    else {
        return versions[at].clone();
    };
    let is_first = older.iter().all(|byte| *byte == 0);
    if newer.len() != older.len() || is_first || dice.happens(50) {
        return Some(newer);
    }
    let torn = newer.chunks(HEAD_SLOT_BYTES).zip(older.chunks(HEAD_SLOT_BYTES)).flat_map(|(new, old)| {
        let written = dice.below(new.len());
        [&new[..written], &old[written..]].concat()
    });
    Some(torn.collect())
}
