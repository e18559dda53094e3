//! What was used, summed up by whatever is asked for, with its cost.

use std::collections::BTreeMap;

use domain::{
    feed::{MIDDLEWARE_PREFIX, SUBAGENT_PREFIX},
    ids::{RunId, ThreadId},
    pricing::{Cost, Prices},
    usage::Usage,
};
use eventlog::engine::Direction;
use jiff::civil::Date;

use super::UsageCell;
use crate::{
    keys::{NameHash, usage::UsageCellKey},
    projections::Projections,
    store::{RowError, Snapshot},
};

/// Cells that are read at once.
const CELLS_PAGE: usize = 1_000;
/// A part of all callers, instead of one: every subagent, every part of the framework.
const ALL_SUBAGENTS: &str = "subagent";
const ALL_MIDDLEWARE: &str = "middleware";

/// By what usage is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageAxis {
    /// By thread.
    Thread,
    /// By run.
    Run,
    /// By model.
    Model,
    /// By who called it: `lead_agent`, `subagent:{type}`, or what others recorded.
    Caller,
    /// By day, in universal time.
    Day,
}

/// Which usage, and how it is summed up. What is `None` is not asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// Only that of this thread.
    pub thread_id: Option<ThreadId>,
    /// Only that of this run.
    pub run_id: Option<RunId>,
    /// Only that of this model.
    pub model_name: Option<String>,
    /// Only that of this caller; `subagent` and `middleware` are all of their kind.
    pub caller: Option<String>,
    /// Only that of this day and later ones.
    pub from: Option<Date>,
    /// Only that of this day and earlier ones.
    pub to: Option<Date>,
    /// One group for each value of these; nothing makes one group of everything.
    pub group_by: Vec<UsageAxis>,
}

/// Calls and what they used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageFigures {
    /// Model calls that replied.
    pub calls: u64,
    /// Those of them whose provider reported no tokens.
    pub calls_without_usage: u64,
    /// The tokens that were reported; `None` when nothing was.
    pub usage: Option<Usage>,
    /// What these cost, as far as there are prices; `None` where there are none.
    pub cost: Option<Cost>,
    /// Whether tokens were reported of a model that has no price.
    pub has_unpriced: bool,
}

impl UsageFigures {
    /// Whether more was used than was reported.
    pub const fn is_usage_at_least(&self) -> bool {
        self.calls_without_usage > 0
    }

    /// Whether it cost more than is known.
    pub const fn is_cost_at_least(&self) -> bool {
        self.is_usage_at_least() || self.has_unpriced
    }

    fn add(&mut self, cell: &UsageCell, prices: &Prices) {
        self.calls += cell.calls;
        self.calls_without_usage += cell.calls_without_usage;
        Usage::add_to(&mut self.usage, cell.usage);
        let Some(usage) = &cell.usage else { return };
        match prices.of(&cell.model_name, usage) {
            Some(cost) => self.cost = Some(self.cost.unwrap_or_default() + cost),
            None => self.has_unpriced = true,
        }
    }
}

/// What was used under one combination of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageGroup {
    /// The values, in the order of the query's axes. Usage outside of any run has an empty run.
    pub values: Vec<String>,
    /// What was used.
    pub figures: UsageFigures,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    /// All groups together.
    pub total: UsageFigures,
    /// The groups in the order of their values.
    pub groups: Vec<UsageGroup>,
}

impl UsageQuery {
    fn admits(&self, cell: &UsageCell) -> bool {
        self.run_id.as_ref().is_none_or(|run_id| cell.run_id.as_ref() == Some(run_id))
            && self.model_name.as_ref().is_none_or(|name| cell.model_name == *name)
            && self.caller.as_ref().is_none_or(|caller| is_called_by(&cell.caller, caller))
            && self.from.is_none_or(|from| from <= cell.day)
            && self.to.is_none_or(|to| cell.day <= to)
    }

    fn values(&self, thread_id: &ThreadId, cell: &UsageCell) -> Vec<String> {
        let value = |axis: &UsageAxis| match axis {
            UsageAxis::Thread => thread_id.to_string(),
            UsageAxis::Run => cell.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            UsageAxis::Model => cell.model_name.clone(),
            UsageAxis::Caller => cell.caller.clone(),
            UsageAxis::Day => cell.day.to_string(),
        };
        self.group_by.iter().map(value).collect()
    }
}

/// A report in the making.
pub(super) struct Summing<'a> {
    query: &'a UsageQuery,
    prices: &'a Prices,
    total: UsageFigures,
    groups: BTreeMap<Vec<String>, UsageFigures>,
}

impl<'a> Summing<'a> {
    pub(super) fn new(query: &'a UsageQuery, prices: &'a Prices) -> Self {
        Self { query, prices, total: UsageFigures::default(), groups: BTreeMap::new() }
    }

    /// Adds a cell, if the query admits it.
    pub(super) fn add(&mut self, thread_id: &ThreadId, cell: &UsageCell) {
        if self.query.admits(cell) {
            self.total.add(cell, self.prices);
            self.groups.entry(self.query.values(thread_id, cell)).or_default().add(cell, self.prices);
        }
    }

    pub(super) fn report(self) -> UsageReport {
        let groups = self.groups.into_iter().map(|(values, figures)| UsageGroup { values, figures });
        UsageReport { total: self.total, groups: groups.collect() }
    }
}

fn is_called_by(caller: &str, wanted: &str) -> bool {
    match wanted {
        ALL_SUBAGENTS => caller.starts_with(SUBAGENT_PREFIX),
        ALL_MIDDLEWARE => caller.starts_with(MIDDLEWARE_PREFIX),
        _ => caller == wanted,
    }
}

/// Shows the cells that a query's thread and run have, or all of them.
pub(super) fn for_each_cell(
    snapshot: &Snapshot<'_>,
    query: &UsageQuery,
    mut show: impl FnMut(UsageCellKey, UsageCell) -> Result<(), RowError>,
) -> Result<(), RowError> {
    let thread_id = query.thread_id.as_ref();
    let run = thread_id.zip(query.run_id.as_ref()).map(|(thread, run)| NameHash::of_run(thread, run));
    let prefix = UsageCellKey::of(thread_id, run.as_ref());
    let mut range = prefix.range();
    loop {
        let cells = snapshot.page::<UsageCellKey>(&range, Direction::Forward, CELLS_PAGE)?;
        let rest = cells.last().map(|(last, _)| prefix.range_after(last));
        let is_last = cells.len() < CELLS_PAGE;
        for (key, cell) in cells {
            show(key, cell)?;
        }
        match rest {
            Some(rest) if !is_last => range = rest,
            Some(_) | None => return Ok(()),
        }
    }
}

impl Projections {
    /// What was used. With a thread this looks at the thread's cells alone: one for each run, day,
    /// model and caller; without one it looks at those of all threads.
    pub fn usage(&self, query: &UsageQuery, prices: &Prices) -> Result<UsageReport, RowError> {
        let mut summing = Summing::new(query, prices);
        for_each_cell(&self.0.store.snapshot(), query, |key, cell| {
            summing.add(&key.thread_id, &cell);
            Ok(())
        })?;
        Ok(summing.report())
    }
}
