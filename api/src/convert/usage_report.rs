//! What was used and what it cost.

use contracts::wire::usage_report as wire;
use domain::pricing::{Cost, Prices};
use projections::{UsageAxis, UsageFigures, UsageGroup, UsageReport};

use crate::convert::usage;

/// By what may be summed up, by its name.
pub(crate) const AXES: [(&str, UsageAxis); 5] = [
    ("thread", UsageAxis::Thread),
    ("run", UsageAxis::Run),
    ("model", UsageAxis::Model),
    ("caller", UsageAxis::Caller),
    ("day", UsageAxis::Day),
];

/// A part of the groups of a report.
pub(crate) struct Part {
    /// Exclusive: the values of the last group that the reader has.
    pub(crate) after: Option<Vec<String>>,
    /// Groups at most.
    pub(crate) limit: usize,
}

/// A report with a part of its groups; the total is that of all of them.
pub(crate) fn to_wire(
    report: UsageReport,
    axes: &[UsageAxis],
    prices: &Prices,
    part: &Part,
) -> wire::UsageReport {
    let is_wanted = |group: &UsageGroup| part.after.as_ref().is_none_or(|after| group.values > *after);
    let mut groups: Vec<_> = report.groups.into_iter().filter(is_wanted).collect();
    let has_more = groups.len() > part.limit;
    groups.truncate(part.limit);
    wire::UsageReport {
        group_by: axes.iter().map(|axis| axis_name(*axis).to_owned()).collect(),
        currency: (!prices.by_model.is_empty()).then(|| prices.currency.clone()),
        total: figures(&report.total),
        next_after: groups.last().filter(|_| has_more).map(|last| cursor(&last.values)),
        data: groups.into_iter().map(|one| group(axes, one)).collect(),
        has_more,
    }
}

fn axis_name(axis: UsageAxis) -> &'static str {
    match axis {
        UsageAxis::Thread => "thread",
        UsageAxis::Run => "run",
        UsageAxis::Model => "model",
        UsageAxis::Caller => "caller",
        UsageAxis::Day => "day",
    }
}

fn cursor(values: &[String]) -> String {
    serde_json::Value::from(values).to_string()
}

fn group(axes: &[UsageAxis], group: UsageGroup) -> wire::UsageGroup {
    let mut wire = wire::UsageGroup { figures: figures(&group.figures), ..wire::UsageGroup::default() };
    for (axis, value) in axes.iter().zip(group.values) {
        let place = match axis {
            UsageAxis::Thread => &mut wire.thread_id,
            UsageAxis::Run => &mut wire.run_id,
            UsageAxis::Model => &mut wire.model_name,
            UsageAxis::Caller => &mut wire.caller,
            UsageAxis::Day => &mut wire.day,
        };
        *place = Some(value);
    }
    wire
}

fn figures(figures: &UsageFigures) -> wire::UsageFigures {
    wire::UsageFigures {
        calls: figures.calls,
        calls_without_usage: figures.calls_without_usage,
        usage: figures.usage.map(usage::to_wire),
        at_least: figures.is_usage_at_least(),
        cost: figures.cost.map(Cost::amount),
        cost_at_least: figures.is_cost_at_least(),
    }
}
