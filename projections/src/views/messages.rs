//! Message feeds: what was said on a thread and in its runs, page by page (facts §7.2 and §8).
//!
//! The log has no order of messages alone, so the view keeps one: marks under the seqs of a thread's
//! messages, those that readers are shown and those that they are not, and of each run's. A page is a
//! short range of marks and the records under them, however long the thread is and however much is
//! hidden in it. Marks are only ever added, so that an earlier moment is the same range, cut short.

use std::collections::{BTreeMap, VecDeque};

use domain::{
    event::Logged,
    feed::FeedMessage,
    ids::{RunId, ThreadId},
};
use eventlog::{EventLog, PAGE_BYTES_MAX, ReadError, RecordedEvent, Seq, StreamId, engine::Direction};
use serde::{Deserialize, Serialize};

use crate::{
    keys::{
        KeyKind, KeyWriter, NameHash, RowKey,
        message::{HiddenMessageKey, MessageOfRunKey, RunMessagesKey, VisibleMessageKey},
    },
    projections::Projections,
    rows::Rows,
    store::{RowError, Snapshot},
    view::{FoldError, View},
};

/// Runs whose messages are counted at once.
const RUNS_PAGE: usize = 1_000;

/// Which messages of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// All of them.
    Whole,
    /// Those that readers are shown.
    Visible,
    /// Those of a run, hidden ones too.
    OfRun(RunId),
}

/// A page of a feed. With `after` it is the first messages that come after it, else the last ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedQuery {
    /// The thread.
    pub thread_id: ThreadId,
    /// Which of its messages.
    pub feed: Feed,
    /// Exclusive: only those before this seq.
    pub before: Option<Seq>,
    /// Exclusive: only those after this seq.
    pub after: Option<Seq>,
    /// As it was when this was the newest event; `None` is now.
    pub as_of: Option<Seq>,
    /// Messages at most.
    pub limit: usize,
}

/// Some messages, ascending by seq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPage {
    /// The messages.
    pub messages: Vec<RecordedEvent>,
    /// Whether there are more in the direction of reading.
    pub has_more: bool,
}

/// A page of a feed piece by piece, so that no more than a piece is held, however large the messages are.
pub struct FeedPieces {
    log: EventLog,
    stream: StreamId,
    /// The seqs that were not read yet, ascending.
    rest: VecDeque<u64>,
    has_more: bool,
}

impl FeedPieces {
    /// Whether there are more in the direction of reading, after all pieces.
    pub const fn has_more(&self) -> bool {
        self.has_more
    }

    /// The next messages, about `PAGE_BYTES_MAX` bytes of them and twice that at most, without what was
    /// erased meanwhile; none at the end of the page.
    pub fn next_piece(&mut self) -> Result<Vec<RecordedEvent>, ReadError> {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while let Some(first) = self.rest.front().copied().filter(|_| bytes < PAGE_BYTES_MAX) {
            for event in
                self.log.read_stream(&self.stream, Seq::new(first.saturating_sub(1)), self.neighbours())?
            {
                self.rest.pop_front_if(|seq| *seq == event.seq.get());
                if !event.is_erased() {
                    bytes += event.content.get().len() + event.metadata.get().len();
                    piece.push(event);
                }
            }
            // What the log does not have is not waited for.
            self.rest.pop_front_if(|seq| *seq == first);
        }
        Ok(piece)
    }

    /// How many of the next seqs follow one another, so that they are read in one go.
    fn neighbours(&self) -> usize {
        let pairs = self.rest.iter().zip(self.rest.iter().skip(1));
        1 + pairs.take_while(|(one, other)| one.saturating_add(1) == **other).count()
    }
}

/// Why a feed could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The marks could not be read.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The messages could not be read.
    #[error(transparent)]
    Log(#[from] ReadError),
}

/// Where the messages of a run stand after one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct MessageMark {
    /// How many there are.
    pub(crate) count: u64,
    /// The seq of the last reply that readers are shown.
    pub(crate) last_answer: Option<u64>,
}

/// The view of all feeds.
pub(crate) struct MessagesView;

impl View for MessagesView {
    const NAME: &'static str = "messages";
    const VERSION: u32 = 2;
    const KINDS: &'static [KeyKind] =
        &[KeyKind::VisibleMessage, KeyKind::HiddenMessage, KeyKind::MessageOfRun, KeyKind::RunMessages];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        let Some(message) = FeedMessage::of(event) else { return Ok(()) };
        let (thread_id, seq) = (event.thread_id.clone(), event.seq);
        let run = NameHash::of_any_run(&thread_id, event.scope.run_id.as_ref());
        let of_run = RunMessagesKey { thread_id: thread_id.clone(), run: run.clone() };
        let mut mark = MessageMark::default();
        rows.update(&of_run, |known| {
            mark = known.unwrap_or_default();
            mark.count += 1;
            mark.last_answer = if message.is_answer() { Some(seq) } else { mark.last_answer };
            Some(mark)
        })?;
        rows.put(&MessageOfRunKey { thread_id: thread_id.clone(), run, seq }, mark);
        match message.is_visible {
            true => rows.put(&VisibleMessageKey { thread_id, seq }, ()),
            false => rows.put(&HiddenMessageKey { thread_id, seq }, ()),
        }
        Ok(())
    }
}

impl FeedQuery {
    /// The seqs that the page may have, both included.
    fn bounds(&self) -> (u64, u64) {
        let first = self.after.map_or(0, |after| after.get().saturating_add(1));
        let before = self.before.map_or(u64::MAX, |before| before.get().saturating_sub(1));
        (first, before.min(self.as_of.map_or(u64::MAX, Seq::get)))
    }

    const fn direction(&self) -> Direction {
        if self.after.is_some() { Direction::Forward } else { Direction::Backward }
    }

    /// The seqs of the page and of one message more, where there is one, in the direction of reading.
    fn seqs(&self, snapshot: &Snapshot<'_>) -> Result<Vec<u64>, RowError> {
        let thread_id = &self.thread_id;
        let visible = || {
            let of_thread = VisibleMessageKey::of_thread(thread_id);
            self.marks::<VisibleMessageKey>(snapshot, &of_thread, |key| key.seq)
        };
        match &self.feed {
            Feed::Visible => visible(),
            Feed::Whole => {
                let of_thread = HiddenMessageKey::of_thread(thread_id);
                let hidden = self.marks::<HiddenMessageKey>(snapshot, &of_thread, |key| key.seq)?;
                Ok(self.merged(visible()?, hidden))
            }
            Feed::OfRun(run_id) => {
                let run = NameHash::of_run(thread_id, run_id);
                let of_run = MessageOfRunKey::of_run(thread_id, &run);
                self.marks::<MessageOfRunKey>(snapshot, &of_run, |key| key.seq)
            }
        }
    }

    /// Of two lists, each long enough for the page, those that come first in the direction of reading.
    fn merged(&self, mut seqs: Vec<u64>, more: Vec<u64>) -> Vec<u64> {
        seqs.extend(more);
        match self.direction() {
            Direction::Forward => seqs.sort_unstable(),
            Direction::Backward => seqs.sort_unstable_by(|one, other| other.cmp(one)),
        }
        seqs.truncate(self.limit.saturating_add(1));
        seqs
    }

    fn marks<K: RowKey>(
        &self,
        snapshot: &Snapshot<'_>,
        prefix: &KeyWriter,
        seq: fn(&K) -> u64,
    ) -> Result<Vec<u64>, RowError> {
        let (first, last) = self.bounds();
        if first > last {
            return Ok(Vec::new());
        }
        let range = prefix.range_within(first, last);
        let rows = snapshot.page::<K>(&range, self.direction(), self.limit.saturating_add(1))?;
        Ok(rows.iter().map(|(key, _)| seq(key)).collect())
    }
}

impl Projections {
    /// A page of a feed, held whole: [`FeedPieces`] does not. What does not exist, or was erased, has no
    /// messages.
    pub fn messages(&self, query: &FeedQuery) -> Result<FeedPage, FeedError> {
        let mut pieces = self.message_pieces(query)?;
        let (mut messages, has_more) = (Vec::new(), pieces.has_more());
        loop {
            let piece = pieces.next_piece()?;
            if piece.is_empty() {
                return Ok(FeedPage { messages, has_more });
            }
            messages.extend(piece);
        }
    }

    /// The same piece by piece.
    pub fn message_pieces(&self, query: &FeedQuery) -> Result<FeedPieces, RowError> {
        let mut seqs = query.seqs(&self.0.store.snapshot())?;
        let has_more = seqs.len() > query.limit;
        seqs.truncate(query.limit);
        seqs.sort_unstable();
        let stream = StreamId::Thread(query.thread_id.clone());
        Ok(FeedPieces { log: self.0.log.clone(), stream, rest: seqs.into(), has_more })
    }

    /// How many messages a thread has, hidden ones too, or had when `as_of` was its newest event.
    pub fn message_count(&self, thread_id: &ThreadId, as_of: Option<Seq>) -> Result<u64, RowError> {
        let snapshot = self.0.store.snapshot();
        let of_thread = RunMessagesKey::of_thread(thread_id);
        let (mut count, mut range) = (0, of_thread.range());
        loop {
            let runs = snapshot.page::<RunMessagesKey>(&range, Direction::Forward, RUNS_PAGE)?;
            for (key, now) in &runs {
                count += match as_of {
                    None => now.count,
                    Some(seq) => mark_at(&snapshot, &key.thread_id, &key.run, Some(seq))?.count,
                };
            }
            match runs.last() {
                Some((last, _)) if runs.len() == RUNS_PAGE => range = of_thread.range_after(last),
                Some(_) | None => return Ok(count),
            }
        }
    }

    /// The seq of the last reply that readers are shown, of each of these runs that has one.
    pub fn last_answers(
        &self,
        thread_id: &ThreadId,
        run_ids: &[RunId],
        as_of: Option<Seq>,
    ) -> Result<BTreeMap<RunId, u64>, RowError> {
        let snapshot = self.0.store.snapshot();
        let mut answers = BTreeMap::new();
        for run_id in run_ids {
            let run = NameHash::of_run(thread_id, run_id);
            let mark = mark_at(&snapshot, thread_id, &run, as_of)?;
            answers.extend(mark.last_answer.map(|seq| (run_id.clone(), seq)));
        }
        Ok(answers)
    }
}

/// Where the messages of a run stood when this event was the thread's newest: what its last message
/// says of it.
fn mark_at(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    run: &NameHash,
    as_of: Option<Seq>,
) -> Result<MessageMark, RowError> {
    let range = MessageOfRunKey::of_run(thread_id, run).range_within(0, as_of.map_or(u64::MAX, Seq::get));
    let last = snapshot.page::<MessageOfRunKey>(&range, Direction::Backward, 1)?;
    Ok(last.first().map(|(_, mark)| *mark).unwrap_or_default())
}
