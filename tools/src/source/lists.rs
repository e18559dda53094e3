//! Messages, caps, receipts and usage: what can be asked for, of a folder and of a server alike.

use contracts::wire::{cap::Cap, event::EventRecord, evidence::OwnedReceipt, usage_report::UsageReport};
use jiff::civil::Date;

use super::Source;

/// Rows that are asked for at once: what every server gives.
pub(crate) const LIST_PAGE: usize = 200;

/// Which messages of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Feed {
    /// All of them.
    Whole,
    /// Those that readers are shown.
    Visible,
    /// Those of a run.
    OfRun(String),
}

/// The last messages before a seq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessagesPage {
    /// The thread.
    pub(crate) thread_id: String,
    /// Which of its messages.
    pub(crate) feed: Feed,
    /// Exclusive.
    pub(crate) before: Option<u64>,
    /// As it was when this seq was the last.
    pub(crate) as_of: Option<u64>,
    /// Messages at most.
    pub(crate) limit: usize,
}

/// A part of the caps or receipts of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The thread.
    pub(crate) thread_id: String,
    /// Only those of this run.
    pub(crate) run_id: Option<String>,
    /// Only those of this delegation.
    pub(crate) delegation_id: Option<String>,
    /// Exclusive.
    pub(crate) after_seq: u64,
    /// As it was when this seq was the last.
    pub(crate) as_of: Option<u64>,
    /// Rows at most.
    pub(crate) limit: usize,
}

/// Which caps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CapsWanted {
    /// What is watched.
    pub(crate) axis: Option<String>,
    /// `warn` or `stop`.
    pub(crate) action: Option<String>,
}

/// Which receipts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReceiptsWanted {
    /// The tool.
    pub(crate) tool_name: Option<String>,
    /// What came of the call.
    pub(crate) outcome: Option<String>,
}

/// Which usage, and how it is summed up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsageWanted {
    /// Only that of this thread.
    pub(crate) thread_id: Option<String>,
    /// Only that of this run.
    pub(crate) run_id: Option<String>,
    /// Only that of this model.
    pub(crate) model_name: Option<String>,
    /// Only that of this caller.
    pub(crate) caller: Option<String>,
    /// Only from this day on.
    pub(crate) from: Option<Date>,
    /// Only up to this day.
    pub(crate) to: Option<Date>,
    /// What it is summed up by, in the words of the interface.
    pub(crate) group_by: Vec<String>,
    /// As it was when this seq of the thread was the last.
    pub(crate) as_of: Option<u64>,
    /// As it was when this position of the log was the last.
    pub(crate) as_of_position: Option<u64>,
}

/// Rows in order, and whether there are more.
pub(crate) type Rows<T> = (Vec<T>, bool);

impl Source {
    /// The last messages before a seq, ascending.
    pub(crate) async fn messages(&self, page: &MessagesPage) -> anyhow::Result<Rows<EventRecord>> {
        match self {
            Self::Folder(folder) => folder.messages(page),
            Self::Server(server) => server.messages(page).await,
        }
    }

    /// Caps in the order in which they fired, all that are wanted.
    pub(crate) async fn caps(&self, mut wanted: Wanted, which: &CapsWanted) -> anyhow::Result<Vec<Cap>> {
        let (mut caps, limit) = (Vec::new(), wanted.limit);
        while caps.len() < limit {
            wanted.limit = (limit - caps.len()).min(LIST_PAGE);
            let (page, has_more): Rows<Cap> = match self {
                Self::Folder(folder) => folder.caps(&wanted, which)?,
                Self::Server(server) => server.caps(&wanted, which).await?,
            };
            wanted.after_seq = page.last().map_or(wanted.after_seq, |last| last.seq);
            caps.extend(page);
            if !has_more {
                break;
            }
        }
        Ok(caps)
    }

    /// Receipts in the order in which they were recorded, all that are wanted.
    pub(crate) async fn receipts(
        &self,
        mut wanted: Wanted,
        which: &ReceiptsWanted,
    ) -> anyhow::Result<Vec<OwnedReceipt>> {
        let (mut receipts, limit) = (Vec::new(), wanted.limit);
        while receipts.len() < limit {
            wanted.limit = (limit - receipts.len()).min(LIST_PAGE);
            let (page, has_more): Rows<OwnedReceipt> = match self {
                Self::Folder(folder) => folder.receipts(&wanted, which)?,
                Self::Server(server) => server.receipts(&wanted, which).await?,
            };
            wanted.after_seq = page.last().map_or(wanted.after_seq, |last| last.receipt.seq);
            receipts.extend(page);
            if !has_more {
                break;
            }
        }
        Ok(receipts)
    }

    /// What was used, all groups of it.
    pub(crate) async fn usage(&self, wanted: &UsageWanted) -> anyhow::Result<UsageReport> {
        match self {
            Self::Folder(folder) => folder.usage(wanted),
            Self::Server(server) => server.usage(wanted).await,
        }
    }
}
