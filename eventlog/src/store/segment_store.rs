//! The log on segments, with an index beside them.
//!
//! A commit is one frame, written and synced; then the index knows of it, and from then on readers
//! see it. Everything in the index follows from the frames.

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use domain::ids::RunHash;

use super::{Commit, CommitGroup, Head, Kept, KeyUse, LogStore, Replayed, StoreError, StreamSummary, Tail};
use crate::{
    append::IdempotencyKey,
    codec::{DecodeError, record},
    engine::Engine,
    index::{Index, Source},
    keyring::{Found, Keyring, ScopeId},
    keys::{self, INDEX_KEYSPACES, location::Location, run_entry::TypeRef, task_event::Task},
    position::{Position, Seq},
    read::{Room, RunQuery},
    recorded::RecordedEvent,
    seal::{self, TypeTag},
    segment::{
        Appender, Segments, Walk,
        frame::{self, Frame, Header},
    },
    stream_id::StreamId,
};

mod entries;

pub(crate) use entries::commit_of;

/// What the buffer of the writer keeps between commits. A larger commit is rare.
const BUFFER_BYTES_KEPT: usize = 4 * 1024 * 1024;

/// Keeps the rules of [`LogStore`] on segments and an index.
pub struct SegmentStore {
    segments: Segments,
    index: Index,
    keyring: Arc<Keyring>,
    writing: Mutex<Writing>,
    /// The position before the first; zero but in tests of large numbers.
    pub(super) begins_after: Position,
}

/// A walk over the segments, to be gone on with.
pub(super) struct Walked {
    walk: Walk,
    /// Where the log ended while it was read.
    head: Position,
}

impl Walked {
    /// The walk, if it has not gone past a position.
    fn go_on(self, next: Position, head: Position) -> Option<Walk> {
        let Self { mut walk, head: before } = self;
        if head != before {
            walk.forget_ahead();
        }
        walk.next_position().is_some_and(|first| first <= next).then_some(walk)
    }
}

struct Writing {
    appender: Appender,
    /// The frame that is written.
    frame: Vec<u8>,
}

/// Is shown the bytes of a record, and says whether it wants more.
type VisitRecord<'a> = dyn FnMut(&[u8]) -> Result<ControlFlow<()>, StoreError> + 'a;

impl SegmentStore {
    /// A log whose index has every commit of the record, which ends at the appender.
    pub(crate) fn new(segments: Segments, index: Index, appender: Appender, keyring: Arc<Keyring>) -> Self {
        let writing = Mutex::new(Writing { appender, frame: Vec::new() });
        Self { segments, index, keyring, writing, begins_after: Position::ZERO }
    }

    /// A log in memory, with its keys.
    pub fn in_memory() -> Self {
        #[expect(clippy::expect_used, reason = "a system without randomness cannot seal anything")]
        let keyring = Keyring::in_memory().expect("the system gives random bytes");
        let segments = Segments::in_memory();
        #[expect(clippy::expect_used, reason = "memory has no disk to fail")]
        let index = Index::open(Engine::in_memory(&INDEX_KEYSPACES)).expect("an empty index opens");
        #[expect(clippy::expect_used, reason = "memory has no disk to fail")]
        let appender = Appender::new(segments.clone(), 0).expect("memory can be written to");
        Self::new(segments, index, appender, Arc::new(keyring))
    }

    /// Changes the record of an event in memory as nobody should, and makes the checksum of its frame
    /// right again.
    #[cfg(test)]
    pub(crate) fn change_record(&self, position: u64, change: impl FnOnce(&mut [u8])) {
        let located = self.index.locate(Position::new(position)).unwrap().unwrap();
        self.segments.change(|bytes| {
            let start = located.address as usize;
            let header = Header::decode(&bytes[start..], located.address).unwrap();
            let frame = &mut bytes[start..start + header.frame_bytes() as usize];
            let index = (position - header.first.get()) as usize;
            let (offset, record) = Frame { header, bytes: frame }.records().nth(index).unwrap();
            let range = offset as usize..offset as usize + record.len();
            change(&mut frame[range]);
            frame::reseal(frame);
        });
    }

    /// Space on disk, in bytes; 0 in memory.
    pub(crate) fn disk_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.segments.disk_bytes() + self.index.engine().disk_bytes()?)
    }

    pub(crate) fn keyring_ref(&self) -> &Keyring {
        &self.keyring
    }

    /// The record.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The index.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    fn decode_event(&self, bytes: &[u8]) -> Result<RecordedEvent, StoreError> {
        record::decode(bytes, &self.keyring).map_err(damaged("the record of an event"))
    }

    /// Shows the records after a position, ascending, until there are no more or enough.
    fn visit_after(
        &self,
        after: Position,
        kept: &mut Kept,
        visit: &mut VisitRecord<'_>,
    ) -> Result<(), StoreError> {
        #[cfg(test)]
        self.segments.meet(crate::segment::faulty::Moment::Read)?;
        let head = self.index.end().head.position;
        let mut next = after.max(self.begins_after).next();
        if let Some(walk) = kept.0.take().and_then(|walked| walked.go_on(next, head)) {
            return self.walk_on(walk, (next, head), kept, visit);
        }
        while next <= head {
            let located = self.index.locate(next)?.ok_or(StoreError::MissingEvent { position: next })?;
            let Some(bytes) = &located.frame else {
                let walk = Walk::new(self.segments.clone(), located.address, Some(located.commit.first));
                return self.walk_on(walk, (next, head), kept, visit);
            };
            let header = Header::decode(bytes, located.address)
                .map_err(|flaw| self.segments.damaged(located.address, flaw))?;
            if show_from(&Frame { header, bytes }, next, visit)?.is_break() {
                return Ok(());
            }
            next = located.commit.last.next();
        }
        Ok(())
    }

    /// Shows records from the segments, from a position on, up to the head.
    fn walk_on(
        &self,
        mut walk: Walk,
        (from, head): (Position, Position),
        kept: &mut Kept,
        visit: &mut VisitRecord<'_>,
    ) -> Result<(), StoreError> {
        let mut next = from;
        while next <= head {
            let frame = walk.next()?.ok_or(StoreError::MissingEvent { position: next })?;
            let header = frame.header;
            if show_from(&frame, next, visit)?.is_break() {
                // Where it was left in the middle of the frame, what was shown is passed over next time.
                walk.back_to(&header);
                break;
            }
            next = header.commit().last.next();
        }
        kept.0 = Some(Walked { walk, head });
        Ok(())
    }

    /// Reads events where the index says they are, as long as there is room.
    fn fetch(&self, sources: &[Source]) -> Result<Vec<RecordedEvent>, StoreError> {
        #[cfg(test)]
        self.segments.meet(crate::segment::faulty::Moment::Read)?;
        let mut room = Room::of(sources.len());
        let mut fits = |source: &&Source| {
            let is_left = room.is_left();
            room.take(match source {
                Source::Stored(location) => location.length as usize,
                Source::Memory(record) => record.bytes().len(),
            });
            is_left
        };
        let count = sources.iter().take_while(|source| fits(source)).count();
        let sources = sources.get(..count).unwrap_or_default();
        let mut events = Vec::with_capacity(sources.len());
        let stored: Vec<Location> = sources
            .iter()
            .map_while(|source| match source {
                Source::Stored(location) => Some(*location),
                Source::Memory(_) => None,
            })
            .collect();
        self.segments.read_many(&stored, &mut |_, record| {
            events.push(self.decode_event(record)?);
            Ok::<_, StoreError>(())
        })?;
        for source in sources.iter().skip(stored.len()) {
            match source {
                Source::Memory(record) => events.push(self.decode_event(record.bytes())?),
                Source::Stored(location) => self.segments.read_many(&[*location], &mut |_, record| {
                    events.push(self.decode_event(record)?);
                    Ok::<_, StoreError>(())
                })?,
            }
        }
        Ok(events)
    }
}

/// Shows the records of a frame from a position on.
fn show_from(
    frame: &Frame<'_>,
    from: Position,
    visit: &mut VisitRecord<'_>,
) -> Result<ControlFlow<()>, StoreError> {
    let skipped = from.get().saturating_sub(frame.header.first.get());
    for (_, record) in frame.records().skip(usize::try_from(skipped).unwrap_or(usize::MAX)) {
        if visit(record)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl LogStore for SegmentStore {
    fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }

    fn on_segments(&self) -> Option<&Self> {
        Some(self)
    }

    fn head(&self) -> Result<Head, StoreError> {
        Ok(self.index.end().head)
    }

    fn commit_at(&self, last: Position) -> Result<Option<Commit>, StoreError> {
        self.index.commit_at(last)
    }

    fn commit(&self, group: CommitGroup) -> Result<(), StoreError> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Writing { appender, frame } = &mut *writing;
        frame::encode(frame, &group);
        let address = appender.place(frame.len())?;
        if !frame::finish(frame, address, &group.commit, group.keys.len()) {
            return Err(crate::segment::SegmentError::TooLarge { bytes: frame.len() }.into());
        }
        appender.append(frame)?;
        let bytes: Arc<[u8]> = Arc::from(frame.as_slice());
        frame.shrink_to(BUFFER_BYTES_KEPT);
        self.index.add(entries::of_group(group, address, bytes))
    }

    fn tail(&self, stream: &StreamId) -> Result<Option<Tail>, StoreError> {
        self.index.tail(stream)
    }

    fn key_use(&self, stream: &StreamId, key: &IdempotencyKey) -> Result<Option<KeyUse>, StoreError> {
        self.index.key_use(keys::idempotency::hash(stream, key))
    }

    fn read_all(&self, after: Position, limit: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let (mut events, mut room) = (Vec::new(), Room::of(limit));
        if room.is_left() {
            self.visit_after(after, &mut Kept::default(), &mut |record| {
                room.take(record.len());
                events.push(self.decode_event(record)?);
                Ok(flow(room.is_left()))
            })?;
        }
        Ok(events)
    }

    fn replay(
        &self,
        after: Position,
        limit: usize,
        kept: &mut Kept,
        visit: &mut Replayed<'_>,
    ) -> Result<(), StoreError> {
        let mut left = limit;
        if left == 0 {
            return Ok(());
        }
        self.visit_after(after, kept, &mut |record| {
            left -= 1;
            let shown = visit(self.decode_event(record)?, record::hashed(record));
            Ok(flow(left > 0 && shown.is_continue()))
        })
    }

    fn read_stream(
        &self,
        stream: &StreamId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, StoreError> {
        self.fetch(&self.index.stream_places(keys::stream_entry::hash(stream), after, limit)?)
    }

    fn read_run(&self, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let stream = StreamId::Thread(query.thread_id.clone());
        let run = ScopeId(keys::run_entry::hash(&stream, &query.run_id));
        if let Found::Destroyed = self.keyring.find(run).map_err(StoreError::Keys)? {
            return Ok(Vec::new());
        }
        match &query.filter.task_id {
            Some(task_id) => self.read_task(Task { stream: &stream, run_id: &query.run_id, task_id }, query),
            None => self.read_whole_run(run, query),
        }
    }

    fn run_first(&self, run: RunHash) -> Result<Option<Position>, StoreError> {
        let places = self.index.run_places(*run.as_bytes(), Seq::ZERO, 1, &|_, _| true)?;
        let mut first = None;
        let mut note = |record: &[u8]| first = record::position(record);
        match places.first() {
            Some(Source::Memory(record)) => note(record.bytes()),
            Some(Source::Stored(location)) => self.segments.read_many(&[*location], &mut |_, record| {
                note(record);
                Ok::<_, StoreError>(())
            })?,
            None => {}
        }
        Ok(first)
    }

    fn run_events(&self, run: RunHash) -> Result<u64, StoreError> {
        self.index.run_count(*run.as_bytes())
    }

    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        self.index.streams(after, limit)
    }
}

impl SegmentStore {
    /// The covering copies of one task.
    fn read_task(&self, task: Task<'_>, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let (mut events, mut room) = (Vec::new(), Room::of(query.limit));
        if !room.is_left() {
            return Ok(events);
        }
        #[cfg(test)]
        self.segments.meet(crate::segment::faulty::Moment::Read)?;
        self.index.task_records(keys::task_event::hash(task), query.after, &mut |record| {
            let event = self.decode_event(record)?;
            let is_wanted = event.stream == *task.stream
                && event.scope.run_id.as_ref() == Some(task.run_id)
                && query.filter.matches(&event);
            if is_wanted {
                room.take(record.len());
                events.push(event);
            }
            Ok(flow(room.is_left()))
        })?;
        Ok(events)
    }

    /// Filters in the index, then reads what is wanted.
    fn read_whole_run(&self, run: ScopeId, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let wanted = self.wanted_types(run, query)?;
        let delegation_id = query.filter.delegation_id;
        let places = self.index.run_places(run.0, query.after, query.limit, &|delegation, event_type| {
            wanted.as_ref().is_none_or(|wanted| wanted.admit(event_type))
                && delegation_id.is_none_or(|wanted| delegation == Some(wanted))
        })?;
        self.fetch(&places)
    }

    /// The types that the query wants, as the index may hold them; none if it wants all.
    fn wanted_types(&self, run: ScopeId, query: &RunQuery) -> Result<Option<WantedTypes>, StoreError> {
        let Some(names) = query.filter.event_types.clone() else {
            return Ok(None);
        };
        let tags = match self.keyring.find(run).map_err(StoreError::Keys)? {
            Found::Live(key) => names.iter().map(|name| seal::type_tag(&key, name)).collect(),
            Found::Destroyed | Found::Missing => Vec::new(),
        };
        Ok(Some(WantedTypes { names, tags }))
    }
}

/// Event types by their names and by their tags.
struct WantedTypes {
    names: Vec<String>,
    tags: Vec<TypeTag>,
}

impl WantedTypes {
    fn admit(&self, event_type: TypeRef<'_>) -> bool {
        match event_type {
            TypeRef::Plain(name) => self.names.iter().any(|wanted| wanted == name),
            TypeRef::Tag(tag) => self.tags.contains(&tag),
        }
    }
}

fn flow(goes_on: bool) -> ControlFlow<()> {
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

fn damaged(what: &'static str) -> impl Fn(DecodeError) -> StoreError {
    move |source| StoreError::Damaged { what: what.to_owned(), source }
}
