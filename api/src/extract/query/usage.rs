//! The query of what was used.

use domain::ids::{RunId, ThreadId};
use jiff::civil::Date;
use projections::UsageAxis;

use super::{AsOf, FromQuery, Moment, events_limit, parameters::Parameters};
use crate::{
    convert,
    error::{Answer, ApiError},
};

/// What was used: of what, and how it is summed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageParameters {
    /// Which usage.
    pub(crate) query: projections::UsageQuery,
    /// Groups at most.
    pub(crate) limit: usize,
    /// Exclusive: the values of the last group that the reader has.
    pub(crate) after: Option<Vec<String>>,
    /// Which moment of the thread.
    pub(crate) moment: Moment,
}

impl FromQuery for UsageParameters {
    const NAMES: &'static [&'static str] = &[
        "thread_id",
        "run_id",
        "model_name",
        "caller",
        "from",
        "to",
        "group_by",
        "limit",
        "after",
        "as_of",
        "as_of_position",
        "min_seq",
        "min_position",
    ];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let query = projections::UsageQuery {
            thread_id: parameters.id("thread_id", ThreadId::new)?,
            run_id: parameters.id("run_id", RunId::new)?,
            model_name: parameters.text("model_name").map(str::to_owned),
            caller: parameters.text("caller").map(str::to_owned),
            from: day(parameters, "from")?,
            to: day(parameters, "to")?,
            group_by: axes(parameters)?,
        };
        let moment = Moment::from_query(parameters)?;
        let names_event = matches!(moment.as_of, Some(AsOf::Seq(_))) || moment.min_seq.is_some();
        if query.thread_id.is_none() && names_event {
            return Err(ApiError::invalid(
                "thread_id",
                "given with as_of and min_seq, which name its events",
            ));
        }
        let after = cursor(parameters, query.group_by.len())?;
        Ok(Self { query, limit: events_limit(parameters)?, after, moment })
    }
}

fn day(parameters: &Parameters, name: &str) -> Answer<Option<Date>> {
    let read = |text: &str| text.parse().map_err(|_| ApiError::invalid(name, "a day, such as 2026-11-30"));
    parameters.text(name).map(read).transpose()
}

/// Without a wish it is summed up by model.
fn axes(parameters: &Parameters) -> Answer<Vec<UsageAxis>> {
    let rule = || {
        let names: Vec<_> = convert::usage_report::AXES.iter().map(|(name, _)| *name).collect();
        ApiError::invalid("group_by", &format!("a list of {}, each once", names.join(", ")))
    };
    let Some(list) = parameters.text("group_by") else { return Ok(vec![UsageAxis::Model]) };
    let mut axes = Vec::new();
    for name in list.split(',').filter(|name| !name.is_empty()) {
        let (_, axis) =
            convert::usage_report::AXES.iter().find(|(known, _)| *known == name).ok_or_else(rule)?;
        if axes.contains(axis) {
            return Err(rule());
        }
        axes.push(*axis);
    }
    Ok(axes)
}

fn cursor(parameters: &Parameters, axes: usize) -> Answer<Option<Vec<String>>> {
    let rule = || ApiError::invalid("after", "the next_after of the page before, of the same group_by");
    let Some(text) = parameters.text("after") else { return Ok(None) };
    let values: Vec<String> = serde_json::from_str(text).map_err(|_| rule())?;
    if values.len() == axes { Ok(Some(values)) } else { Err(rule()) }
}
