//! What the log is told from outside.

use std::{fmt, sync::Arc};

use domain::redaction::Redactor;
use jiff::Timestamp;

use crate::{keyring::MasterKey, verify::Progress};

/// Tells the time. Passed in, so that a whole log can be simulated from a seed.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Is told how far a log of an earlier version was brought to the present one: of no position when it
/// begins, and of the last one when the new log is made and is being proven.
pub type OnMigrating = Arc<dyn Fn(Progress) + Send + Sync>;

/// How a log behaves.
#[derive(Clone)]
pub struct Options {
    /// Gives `recorded_at`. The order of events does not depend on it.
    pub clock: Clock,
    /// Wraps the keys of threads. A log in memory has none.
    pub master_key: MasterKey,
    /// Masks secrets in content and metadata before anything is done with them; none writes down
    /// what it is given.
    pub redactor: Option<Arc<Redactor>>,
    /// Is told when a log of an earlier version is brought to the present one, which takes long.
    pub on_migrating: Option<OnMigrating>,
}

impl Options {
    /// Options with this clock, a master key that is generated in the folder, and the usual masking
    /// of secrets.
    pub fn new(clock: Clock) -> Self {
        let redactor = Some(Redactor::standard());
        Self { clock, master_key: MasterKey::default(), redactor, on_migrating: None }
    }
}

/// The system's clock.
impl Default for Options {
    fn default() -> Self {
        Self::new(Arc::new(Timestamp::now))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}
