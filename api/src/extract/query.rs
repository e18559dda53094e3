//! Query parameters.

mod lists;
mod moment;
mod parameters;
mod usage;

use std::ops::RangeInclusive;

use axum::{extract::FromRequestParts, http::request::Parts};
use domain::{
    ids::{RunId, ThreadId, ToolCallId},
    limits::{EVENTS_PAGE_DEFAULT, EVENTS_PAGE_RANGE},
};
use eventlog::{Position, Seq};
use projections::{InvalidPace, Pace};

use self::parameters::Parameters;
pub(crate) use self::{
    lists::{
        CapsQuery, LastAnswersQuery, MessagePageQuery, MessagesQuery, PartQuery, ReceiptsQuery,
        TaskReceiptsQuery,
    },
    moment::{AsOf, LogMoment, Moment},
    parameters::whole_number,
    usage::UsageParameters,
};
use crate::error::{Answer, ApiError};

/// Rows of a page of threads or runs.
const LIST_PAGE_RANGE: RangeInclusive<u64> = 1..=200;
/// Rows of a page of threads or runs when no limit is asked for.
const LIST_PAGE_DEFAULT: u64 = 50;

/// The query of a request. `Query<()>` takes no parameters and refuses any.
pub(crate) struct Query<T>(pub(crate) T);

/// What can be read from a query.
pub(crate) trait FromQuery: Sized {
    /// The parameters that it knows; all others are refused.
    const NAMES: &'static [&'static str];

    /// Reads and checks the parameters.
    fn from_query(parameters: &Parameters) -> Answer<Self>;
}

impl<S: Send + Sync, T: FromQuery> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Answer<Self> {
        T::from_query(&Parameters::read(&parts.uri, T::NAMES)?).map(Self)
    }
}

impl FromQuery for () {
    const NAMES: &'static [&'static str] = &[];

    fn from_query(_parameters: &Parameters) -> Answer<Self> {
        Ok(())
    }
}

/// A page of events (facts §8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventsQuery {
    /// The wanted types; `None` wants all. The list is split at commas and not trimmed.
    pub(crate) event_types: Option<Vec<String>>,
    /// The wanted `task` call, or delegation.
    pub(crate) task_id: Option<ToolCallId>,
    /// Rows at most.
    pub(crate) limit: usize,
    /// Exclusive.
    pub(crate) after: Seq,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl FromQuery for EventsQuery {
    const NAMES: &'static [&'static str] = &[
        "event_types",
        "task_id",
        "limit",
        "after_seq",
        "as_of",
        "as_of_position",
        "min_seq",
        "min_position",
    ];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            event_types: event_types(parameters),
            task_id: parameters.id("task_id", ToolCallId::new)?,
            limit: events_limit(parameters)?,
            after: parameters.seq("after_seq")?.unwrap_or(Seq::ZERO),
            moment: Moment::from_query(parameters)?,
        })
    }
}

/// A page of what a view passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParkedQuery {
    /// Exclusive.
    pub(crate) after: Position,
    /// Rows at most.
    pub(crate) limit: usize,
    /// Which moment.
    pub(crate) moment: LogMoment,
}

impl FromQuery for ParkedQuery {
    const NAMES: &'static [&'static str] = &["after_position", "limit", "as_of_position", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let after = parameters.number("after_position", 0..=u64::MAX)?.unwrap_or(0);
        let moment = LogMoment::from_query(parameters)?;
        Ok(Self { after: Position::new(after), limit: events_limit(parameters)?, moment })
    }
}

/// A part of the whole log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogQuery {
    /// Exclusive.
    pub(crate) after: LogStart,
    /// Rows at most; a stream has no end.
    pub(crate) limit: usize,
    /// Which events.
    pub(crate) filter: LogFilter,
    /// Which moment; a stream has none.
    pub(crate) moment: LogMoment,
}

/// Where a reader of the whole log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogStart {
    /// After this position.
    After(Position),
    /// After what is there now.
    Head,
}

/// Which events of the whole log are wanted. The default wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogFilter {
    pub(crate) thread_id: Option<ThreadId>,
    pub(crate) run_id: Option<RunId>,
    /// The provider's id, or a delegation's.
    pub(crate) task_id: Option<ToolCallId>,
    pub(crate) event_types: Option<Vec<String>>,
}

impl FromQuery for LogQuery {
    const NAMES: &'static [&'static str] = &[
        "after_position",
        "limit",
        "thread_id",
        "run_id",
        "task_id",
        "event_types",
        "as_of_position",
        "min_position",
    ];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let after = match parameters.text("after_position") {
            Some("head") => LogStart::Head,
            Some(_) | None => {
                let after = parameters.number("after_position", 0..=u64::MAX)?.unwrap_or(0);
                LogStart::After(Position::new(after))
            }
        };
        let filter = LogFilter {
            thread_id: parameters.id("thread_id", ThreadId::new)?,
            run_id: parameters.id("run_id", RunId::new)?,
            task_id: parameters.id("task_id", ToolCallId::new)?,
            event_types: event_types(parameters),
        };
        let moment = LogMoment::from_query(parameters)?;
        Ok(Self { after, limit: events_limit(parameters)?, filter, moment })
    }
}

/// The list is split at commas and not trimmed; an empty one wants all.
fn event_types(parameters: &Parameters) -> Option<Vec<String>> {
    let types = parameters.text("event_types").filter(|list| !list.is_empty());
    types.map(|list| list.split(',').map(str::to_owned).collect())
}

/// How fast a card is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReplayQuery {
    pub(crate) pace: Pace,
}

impl FromQuery for ReplayQuery {
    const NAMES: &'static [&'static str] = &["speed"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let pace = parameters.text("speed").map(str::parse).transpose();
        let pace = pace.map_err(|_: InvalidPace| ApiError::invalid("speed", InvalidPace::RULE))?;
        Ok(Self { pace: pace.unwrap_or_default() })
    }
}

fn events_limit(parameters: &Parameters) -> Answer<usize> {
    Ok(optional_limit(parameters)?.unwrap_or(EVENTS_PAGE_DEFAULT as usize))
}

fn optional_limit(parameters: &Parameters) -> Answer<Option<usize>> {
    let range = u64::from(*EVENTS_PAGE_RANGE.start())..=u64::from(*EVENTS_PAGE_RANGE.end());
    Ok(parameters.number("limit", range)?.map(|limit| limit as usize))
}

/// The ledger of a thread, or of one run, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DelegationsQuery {
    /// The run; `None` means all.
    pub(crate) run_id: Option<RunId>,
    /// Rows at most; `None` means all.
    pub(crate) limit: Option<usize>,
    /// Exclusive: the `first_seq` of the last row that the reader has.
    pub(crate) after: Seq,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl FromQuery for DelegationsQuery {
    const NAMES: &'static [&'static str] =
        &["run_id", "limit", "after_seq", "as_of", "as_of_position", "min_seq", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            run_id: parameters.id("run_id", RunId::new)?,
            limit: optional_limit(parameters)?,
            after: parameters.seq("after_seq")?.unwrap_or(Seq::ZERO),
            moment: Moment::from_query(parameters)?,
        })
    }
}

/// A page of the list of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageQuery {
    /// Rows at most.
    pub(crate) limit: usize,
    /// Exclusive: the id of the last row that the reader has.
    pub(crate) after: Option<String>,
    /// Which moment.
    pub(crate) moment: LogMoment,
}

impl FromQuery for PageQuery {
    const NAMES: &'static [&'static str] = &["limit", "after", "as_of_position", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            limit: list_limit(parameters)?,
            after: parameters.text("after").map(str::to_owned),
            moment: LogMoment::from_query(parameters)?,
        })
    }
}

/// A page of the runs of a thread, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunsQuery {
    /// Rows at most.
    pub(crate) limit: usize,
    /// Exclusive: the `next_before_seq` of the page before.
    pub(crate) before: Option<Seq>,
    /// Which moment.
    pub(crate) moment: Moment,
}

impl FromQuery for RunsQuery {
    const NAMES: &'static [&'static str] =
        &["limit", "before_seq", "as_of", "as_of_position", "min_seq", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let (limit, before) = (list_limit(parameters)?, parameters.seq("before_seq")?);
        Ok(Self { limit, before, moment: Moment::from_query(parameters)? })
    }
}

fn list_limit(parameters: &Parameters) -> Answer<usize> {
    let limit = parameters.number("limit", LIST_PAGE_RANGE)?.unwrap_or(LIST_PAGE_DEFAULT);
    Ok(limit as usize)
}

/// How to cancel a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CancelQuery {
    /// Whether to answer when the run has ended.
    pub(crate) wait: bool,
}

impl FromQuery for CancelQuery {
    const NAMES: &'static [&'static str] = &["wait", "action"];

    /// `rollback` would take back what is in the log for ever, so `interrupt` is the only action.
    fn from_query(parameters: &Parameters) -> Answer<Self> {
        match parameters.text("action") {
            None | Some("interrupt") => Ok(Self { wait: parameters.flag("wait")?.unwrap_or(false) }),
            Some(_) => Err(ApiError::invalid("action", "interrupt, the only action")),
        }
    }
}

#[cfg(test)]
mod tests;
