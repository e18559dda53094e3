//! The same from the data folder itself.

use anyhow::Context as _;
use api::records;
use contracts::wire::{cap::Cap, event::EventRecord, evidence::OwnedReceipt, usage_report::UsageReport};
use domain::ids::ThreadId;
use eventlog::Seq;
use projections::{
    CapFilter, FeedQuery, Listing, ReceiptFilter, TaskRef, UsageAxis, UsageQuery, usage_as_of, usage_at,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Folder, record};
use crate::source::lists::{CapsWanted, Feed, MessagesPage, ReceiptsWanted, Rows, UsageWanted, Wanted};

impl Folder {
    pub(in crate::source) fn messages(&self, page: &MessagesPage) -> anyhow::Result<Rows<EventRecord>> {
        let thread_id: ThreadId = page.thread_id.parse()?;
        self.check_wish(&thread_id, page.as_of)?;
        let feed = match &page.feed {
            Feed::Whole => projections::Feed::Whole,
            Feed::Visible => projections::Feed::Visible,
            Feed::OfRun(run_id) => projections::Feed::OfRun(run_id.parse()?),
        };
        let (before, as_of) = (page.before.map(Seq::new), page.as_of.map(Seq::new));
        let query = FeedQuery { thread_id, feed, before, after: None, as_of, limit: page.limit };
        let found = self.projections.messages(&query).context("could not read the messages")?;
        let messages = found.messages.iter().map(record).collect::<anyhow::Result<_>>()?;
        Ok((messages, found.has_more))
    }

    pub(in crate::source) fn caps(&self, wanted: &Wanted, which: &CapsWanted) -> anyhow::Result<Rows<Cap>> {
        let (thread_id, listing) = self.part(wanted)?;
        let filter = CapFilter {
            run_id: wanted.run_id.as_deref().map(str::parse).transpose()?,
            task: task(wanted)?,
            axis: named(which.axis.as_deref())?,
            action: named(which.action.as_deref())?,
        };
        let found = self.projections.caps(&thread_id, &filter, listing).context("could not read the caps")?;
        Ok((found.rows.iter().map(records::cap).collect(), found.has_more))
    }

    pub(in crate::source) fn receipts(
        &self,
        wanted: &Wanted,
        which: &ReceiptsWanted,
    ) -> anyhow::Result<Rows<OwnedReceipt>> {
        let (thread_id, listing) = self.part(wanted)?;
        let filter = ReceiptFilter {
            run_id: wanted.run_id.as_deref().map(str::parse).transpose()?,
            task: task(wanted)?,
            tool_name: which.tool_name.clone(),
            outcome: named(which.outcome.as_deref())?,
        };
        let found =
            self.projections.receipts(&thread_id, &filter, listing).context("could not read the receipts")?;
        Ok((found.rows.iter().map(records::receipt).collect(), found.has_more))
    }

    pub(in crate::source) fn usage(&self, wanted: &UsageWanted) -> anyhow::Result<UsageReport> {
        let group_by: Vec<UsageAxis> = wanted.group_by.iter().map(|name| axis(name)).collect();
        let query = UsageQuery {
            thread_id: wanted.thread_id.as_deref().map(str::parse).transpose()?,
            run_id: wanted.run_id.as_deref().map(str::parse).transpose()?,
            model_name: wanted.model_name.clone(),
            caller: wanted.caller.clone(),
            from: wanted.from,
            to: wanted.to,
            group_by: group_by.clone(),
        };
        let position = wanted.as_of_position.map(|position| self.check_position(position)).transpose()?;
        let report = match (&query.thread_id, wanted.as_of, position) {
            (_, _, Some(position)) => usage_at(&self.projections, position, &query, &self.prices)
                .context("could not sum up the usage")?,
            (Some(thread_id), Some(seq), None) => {
                self.check_wish(thread_id, wanted.as_of)?;
                usage_as_of(&self.projections, thread_id, Seq::new(seq), &query, &self.prices)
                    .context("could not sum up the usage")?
            }
            (Some(_) | None, _, None) => {
                self.projections.usage(&query, &self.prices).context("could not sum up the usage")?
            }
        };
        Ok(records::usage(report, &group_by, &self.prices))
    }

    fn part(&self, wanted: &Wanted) -> anyhow::Result<(ThreadId, Listing)> {
        let thread_id: ThreadId = wanted.thread_id.parse()?;
        self.check_wish(&thread_id, wanted.as_of)?;
        let (after, as_of) = (Seq::new(wanted.after_seq), wanted.as_of.map(Seq::new));
        Ok((thread_id, Listing { after, as_of, limit: wanted.limit }))
    }

    fn check_wish(&self, thread_id: &ThreadId, as_of: Option<u64>) -> anyhow::Result<()> {
        as_of.map_or(Ok(()), |seq| self.check_moment(thread_id, seq))
    }
}

fn task(wanted: &Wanted) -> anyhow::Result<Option<TaskRef>> {
    let id = wanted.delegation_id.as_deref().map(str::parse).transpose()?;
    Ok(id.map(TaskRef::DelegationId))
}

/// One of the domain's names, which the command line has checked.
fn named<T: DeserializeOwned>(name: Option<&str>) -> anyhow::Result<Option<T>> {
    let read = |name: &str| serde_json::from_value(Value::from(name));
    name.map(read).transpose().context("could not understand a filter")
}

/// The command line lets no other name through.
fn axis(name: &str) -> UsageAxis {
    match name {
        "thread" => UsageAxis::Thread,
        "run" => UsageAxis::Run,
        "caller" => UsageAxis::Caller,
        "day" => UsageAxis::Day,
        _ => UsageAxis::Model,
    }
}
