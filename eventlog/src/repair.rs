//! Repairing what opening a folder does not, or not without being asked.
//!
//! A power loss may tear the last commit, which was never acknowledged. Opening the log drops it
//! when the noted head says so; [`plan_repair`] shows it beforehand and touches nothing, and
//! [`apply`] cuts it and keeps a copy. An index that cannot be used, or that differs from the record,
//! is made anew. Damage in the middle of the record is never cut: a backup is the answer to that.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    open::{self, LOG_FOLDER, Look, OpenError, recover},
    options::Options,
    position::Position,
};

/// What would be done to a folder, if anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairPlan {
    /// Nothing is torn.
    Nothing,
    /// The end of the record was never acknowledged and can go.
    Cut(Cut),
    /// What is wrong cannot be cut without losing durable events.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A torn end of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The data folder.
    pub folder: PathBuf,
    /// The file.
    pub segment: PathBuf,
    /// Bytes of it that stay: whole commits.
    pub keep_bytes: u64,
    /// Bytes that go.
    pub cut_bytes: u64,
    /// The last position that stays.
    pub last_position: Position,
    /// Where the log is known to have been.
    pub noted: Option<Position>,
}

/// Why nothing was repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The folder is in use, or a file could not be used.
    #[error("could not look at the folder to repair it")]
    Open(#[from] OpenError),
    /// A file could not be used.
    #[error("could not repair {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The folder is not as it was when the plan was made.
    #[error("the segment {} has changed since the repair was planned: plan it again", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Only a whole record can be indexed.
    #[error("the index was left as it is, because the record is damaged: {reason}")]
    RecordDamaged {
        /// What is wrong with it.
        reason: String,
    },
}

/// Looks for a torn end of the record in a data folder that nobody has open.
pub fn plan_repair(folder: &Path, options: &Options) -> Result<RepairPlan, RepairError> {
    let _lock = open::acquire_lock(folder, (options.clock)())?;
    Ok(plan(folder, &open::look(folder)?))
}

fn plan(folder: &Path, looked: &Look) -> RepairPlan {
    if let Some(damage) = looked.damage() {
        return RepairPlan::Refused { reason: damage.to_string() };
    }
    looked.torn_end().map_or(RepairPlan::Nothing, |(segment, keep_bytes, cut_bytes)| {
        RepairPlan::Cut(Cut {
            folder: folder.to_owned(),
            segment,
            keep_bytes,
            cut_bytes,
            last_position: looked.survey.head.position,
            noted: looked.noted_head().map(|head| head.position),
        })
    })
}

/// Cuts the end off. Gives the file that keeps what was cut.
pub fn apply(cut: &Cut, options: &Options) -> Result<PathBuf, RepairError> {
    let _lock = open::acquire_lock(&cut.folder, (options.clock)())?;
    let looked = open::look(&cut.folder)?;
    let changed = || RepairError::Changed { path: cut.segment.clone() };
    if plan(&cut.folder, &looked) != RepairPlan::Cut(cut.clone()) {
        return Err(changed());
    }
    looked.cut_torn_end(&cut.folder)?.ok_or_else(changed)
}

/// Makes the index of a folder that nobody has open anew from its record. Gives the last position.
pub fn rebuild_index(folder: &Path, options: &Options) -> Result<Position, RepairError> {
    let _lock = open::acquire_lock(folder, (options.clock)())?;
    let looked = open::look(folder)?;
    if let Some(damage) = looked.damage() {
        return Err(RepairError::RecordDamaged { reason: damage.to_string() });
    }
    let head = looked.survey.head;
    let index = recover::rebuild(&folder.join(LOG_FOLDER), &looked.segments, head)?;
    index.flush().map_err(OpenError::Store)?;
    Ok(head.position)
}

#[cfg(test)]
mod tests;
