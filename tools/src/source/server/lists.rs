//! The same from a running server.

use contracts::wire::{
    cap::Cap, event::EventRecord, evidence::OwnedReceipt, message::MessagePage, page::Page,
    usage_report::UsageReport,
};

use super::Server;
use crate::source::lists::{CapsWanted, Feed, MessagesPage, ReceiptsWanted, Rows, UsageWanted, Wanted};

/// A parameter of a query.
type Parameter = (&'static str, String);

impl Server {
    pub(in crate::source) async fn messages(&self, page: &MessagesPage) -> anyhow::Result<Rows<EventRecord>> {
        let mut query = vec![("limit", page.limit.to_string())];
        query.extend(page.before.map(|seq| ("before_seq", seq.to_string())));
        query.extend(page.as_of.map(|seq| ("as_of", seq.to_string())));
        let thread_id = page.thread_id.as_str();
        match &page.feed {
            Feed::Visible => {
                let found: MessagePage =
                    self.get(&["threads", thread_id, "messages", "page"], &query).await?;
                Ok((found.data, found.has_more))
            }
            Feed::OfRun(run_id) => {
                let path = ["threads", thread_id, "runs", run_id, "messages"];
                let found: Page<EventRecord> = self.get(&path, &query).await?;
                Ok((found.data, found.has_more))
            }
            Feed::Whole => {
                // An array says nothing of more: a full page may have some before it.
                let found: Vec<EventRecord> = self.get(&["threads", thread_id, "messages"], &query).await?;
                let has_more = found.len() >= page.limit;
                Ok((found, has_more))
            }
        }
    }

    pub(in crate::source) async fn caps(
        &self,
        wanted: &Wanted,
        which: &CapsWanted,
    ) -> anyhow::Result<Rows<Cap>> {
        let mut query = parameters(wanted);
        query.extend(which.axis.clone().map(|axis| ("axis", axis)));
        query.extend(which.action.clone().map(|action| ("action", action)));
        let page: Page<Cap> = self.get(&["threads", &wanted.thread_id, "caps"], &query).await?;
        Ok((page.data, page.has_more))
    }

    pub(in crate::source) async fn receipts(
        &self,
        wanted: &Wanted,
        which: &ReceiptsWanted,
    ) -> anyhow::Result<Rows<OwnedReceipt>> {
        let mut query = parameters(wanted);
        query.extend(which.tool_name.clone().map(|name| ("tool_name", name)));
        query.extend(which.outcome.clone().map(|outcome| ("outcome", outcome)));
        let page: Page<OwnedReceipt> = self.get(&["threads", &wanted.thread_id, "receipts"], &query).await?;
        Ok((page.data, page.has_more))
    }

    pub(in crate::source) async fn usage(&self, wanted: &UsageWanted) -> anyhow::Result<UsageReport> {
        let mut query: Vec<Parameter> = vec![("group_by", wanted.group_by.join(","))];
        query.extend(wanted.thread_id.clone().map(|id| ("thread_id", id)));
        query.extend(wanted.run_id.clone().map(|id| ("run_id", id)));
        query.extend(wanted.model_name.clone().map(|name| ("model_name", name)));
        query.extend(wanted.caller.clone().map(|caller| ("caller", caller)));
        query.extend(wanted.from.map(|day| ("from", day.to_string())));
        query.extend(wanted.to.map(|day| ("to", day.to_string())));
        query.extend(wanted.as_of.map(|seq| ("as_of", seq.to_string())));
        query.extend(wanted.as_of_position.map(|position| ("as_of_position", position.to_string())));
        let mut report: UsageReport = self.get(&["usage"], &query).await?;
        while let Some(after) = report.next_after.take().filter(|_| report.has_more) {
            let mut next = query.clone();
            next.push(("after", after));
            let page: UsageReport = self.get(&["usage"], &next).await?;
            report.data.extend(page.data);
            (report.has_more, report.next_after) = (page.has_more, page.next_after);
        }
        Ok(report)
    }
}

fn parameters(wanted: &Wanted) -> Vec<Parameter> {
    let mut query = vec![("limit", wanted.limit.to_string())];
    query.extend((wanted.after_seq > 0).then(|| ("after_seq", wanted.after_seq.to_string())));
    query.extend(wanted.run_id.clone().map(|id| ("run_id", id)));
    query.extend(wanted.delegation_id.clone().map(|id| ("task_id", id)));
    query.extend(wanted.as_of.map(|seq| ("as_of", seq.to_string())));
    query
}
