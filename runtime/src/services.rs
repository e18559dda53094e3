//! What every run of this process shares.

use std::{path::PathBuf, sync::Arc, time::Duration};

use domain::{
    compaction::CompactionSettings,
    definition::{Registry, TokenBudget},
    guard::{loop_detection::LoopLimits, tool_progress::ProgressLimits},
};
use eventlog::EventLog;
use jiff::{civil::Date, tz::TimeZone};

use crate::{
    admission::Admission,
    clock::Clock,
    id_source::IdSource,
    live_runs::LiveRuns,
    managed_registry::ManagedRegistry,
    models::{
        Models,
        circuit::Circuits,
        retry::{Pauses, RetryPolicy},
    },
    sandbox::{Confinement, NoConfinement},
    tool_work::ToolWork,
    tools::Toolbox,
};

/// What every run of this process shares, frozen when the process starts.
pub(crate) struct Services {
    pub(crate) log: EventLog,
    pub(crate) data_folder: PathBuf,
    pub(crate) models: Models,
    /// Models that are left alone for a while.
    pub(crate) circuits: Circuits,
    pub(crate) retry_policy: RetryPolicy,
    /// Model calls that are tried again in one run.
    pub(crate) model_retries_max: u32,
    pub(crate) pauses: Arc<dyn Pauses>,
    /// The built-in types of subagent and the configuration's.
    pub(crate) registry: Registry,
    /// Those that administrators keep.
    pub(crate) managed: ManagedRegistry,
    pub(crate) receipts_enabled: bool,
    pub(crate) admission: Admission,
    pub(crate) queue_timeout: Duration,
    pub(crate) confinement: Result<Arc<Confinement>, NoConfinement>,
    pub(crate) toolbox: Toolbox,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    /// Delegations per run when a request does not say.
    pub(crate) max_total_per_run: u32,
    /// A lead's tokens; `None` sets no limit.
    pub(crate) token_budget: Option<TokenBudget>,
    /// When history is compacted; `None` where it is not.
    pub(crate) compaction: Option<CompactionSettings>,
    /// When an agent goes round in circles; `None` does not look.
    pub(crate) loop_limits: Option<LoopLimits>,
    /// When a tool brings an agent no further; `None` does not look.
    pub(crate) progress_limits: Option<ProgressLimits>,
    /// The run that this process works on, per thread.
    pub(crate) live_runs: LiveRuns,
    /// Tools at work, also those that outlive their runs.
    pub(crate) tool_work: ToolWork,
}

impl Services {
    /// The day, where this process is. It is asked for once for each execution, and recorded.
    pub(crate) fn today(&self) -> Date {
        TimeZone::system().to_datetime(self.clock.now()).date()
    }

    /// Whether shell lines can be run safely here.
    pub(crate) fn allows_bash(&self) -> bool {
        self.confinement.is_ok()
    }
}
