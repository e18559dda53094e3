//! The queries of message feeds and of lists in the order of a thread's events.

use domain::{
    event::{CapAction, CapAxis},
    ids::{RunId, ToolCallId},
    receipt::ReceiptOutcome,
};
use eventlog::Seq;

use super::{FromQuery, Moment, events_limit, list_limit, optional_limit, parameters::Parameters};
use crate::{
    convert,
    error::{Answer, ApiError},
};

/// Runs whose last answers are asked for at once.
const ANSWER_RUNS_MAX: usize = 200;

/// A page of a feed (facts §7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessagesQuery {
    /// Messages at most.
    pub(crate) limit: usize,
    /// Exclusive.
    pub(crate) before: Option<Seq>,
    /// Exclusive; makes it a page forward.
    pub(crate) after: Option<Seq>,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl FromQuery for MessagesQuery {
    const NAMES: &'static [&'static str] =
        &["limit", "before_seq", "after_seq", "as_of", "as_of_position", "min_seq", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            limit: list_limit(parameters)?,
            before: parameters.seq("before_seq")?,
            after: parameters.seq("after_seq")?,
            moment: Moment::from_query(parameters)?,
        })
    }
}

/// A page of the feed that readers are shown: backward only, so that `after_seq` is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessagePageQuery {
    /// Messages at most.
    pub(crate) limit: usize,
    /// Exclusive: the `next_before_seq` of the page before.
    pub(crate) before: Option<Seq>,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl FromQuery for MessagePageQuery {
    const NAMES: &'static [&'static str] =
        &["limit", "before_seq", "as_of", "as_of_position", "min_seq", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let (limit, before) = (list_limit(parameters)?, parameters.seq("before_seq")?);
        Ok(Self { limit, before, moment: Moment::from_query(parameters)? })
    }
}

/// The last answers of some runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastAnswersQuery {
    /// The runs, separated by commas.
    pub(crate) run_ids: Vec<RunId>,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl FromQuery for LastAnswersQuery {
    const NAMES: &'static [&'static str] = &["run_ids", "as_of", "as_of_position", "min_seq", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let rule = || {
            ApiError::invalid("run_ids", &format!("at most {ANSWER_RUNS_MAX} run ids, separated by commas"))
        };
        let list = parameters.text("run_ids").ok_or_else(rule)?;
        let named = list.split(',').filter(|id| !id.is_empty());
        let run_ids: Vec<RunId> = named
            .map(|id| RunId::new(id).map_err(|error| ApiError::invalid("run_ids", &error.rule)))
            .collect::<Answer<_>>()?;
        if run_ids.len() > ANSWER_RUNS_MAX {
            return Err(rule());
        }
        Ok(Self { run_ids, moment: Moment::from_query(parameters)? })
    }
}

/// A page of the caps of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapsQuery {
    /// The run; `None` means all.
    pub(crate) run_id: Option<RunId>,
    /// The `task` call, or delegation; `None` means leads and all subagents.
    pub(crate) task_id: Option<ToolCallId>,
    /// What is watched.
    pub(crate) axis: Option<CapAxis>,
    /// What was done about it.
    pub(crate) action: Option<CapAction>,
    /// Which part of the list.
    pub(crate) part: PartQuery,
}

impl FromQuery for CapsQuery {
    const NAMES: &'static [&'static str] = &[
        "run_id",
        "task_id",
        "axis",
        "action",
        "limit",
        "after_seq",
        "as_of",
        "as_of_position",
        "min_seq",
        "min_position",
    ];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            run_id: parameters.id("run_id", RunId::new)?,
            task_id: parameters.id("task_id", ToolCallId::new)?,
            axis: parameters.one_of("axis", &convert::cap::AXES)?,
            action: parameters.one_of("action", &convert::cap::ACTIONS)?,
            part: PartQuery::from_parameters(parameters)?,
        })
    }
}

/// A page of the receipts of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceiptsQuery {
    /// The run; `None` means all.
    pub(crate) run_id: Option<RunId>,
    /// The `task` call, or delegation; `None` means all.
    pub(crate) task_id: Option<ToolCallId>,
    /// The tool, by its exact name.
    pub(crate) tool_name: Option<String>,
    /// What came of the call.
    pub(crate) outcome: Option<ReceiptOutcome>,
    /// Which part of the list.
    pub(crate) part: PartQuery,
}

impl FromQuery for ReceiptsQuery {
    const NAMES: &'static [&'static str] = &[
        "run_id",
        "task_id",
        "tool_name",
        "outcome",
        "limit",
        "after_seq",
        "as_of",
        "as_of_position",
        "min_seq",
        "min_position",
    ];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            run_id: parameters.id("run_id", RunId::new)?,
            task_id: parameters.id("task_id", ToolCallId::new)?,
            tool_name: parameters.text("tool_name").map(str::to_owned),
            outcome: parameters.one_of("outcome", &convert::evidence::OUTCOMES)?,
            part: PartQuery::from_parameters(parameters)?,
        })
    }
}

/// The receipts of one delegation, or a part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskReceiptsQuery {
    /// Rows at most; `None` means all.
    pub(crate) limit: Option<usize>,
    /// Exclusive.
    pub(crate) after: Seq,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl FromQuery for TaskReceiptsQuery {
    const NAMES: &'static [&'static str] =
        &["limit", "after_seq", "as_of", "as_of_position", "min_seq", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            limit: optional_limit(parameters)?,
            after: parameters.seq("after_seq")?.unwrap_or(Seq::ZERO),
            moment: Moment::from_query(parameters)?,
        })
    }
}

/// Which part of a list that is in the order of a thread's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartQuery {
    /// Rows at most.
    pub(crate) limit: usize,
    /// Exclusive.
    pub(crate) after: Seq,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl PartQuery {
    fn from_parameters(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            limit: events_limit(parameters)?,
            after: parameters.seq("after_seq")?.unwrap_or(Seq::ZERO),
            moment: Moment::from_query(parameters)?,
        })
    }
}
