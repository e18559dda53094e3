//! Events as folds read them: from their stored bytes straight into facts. A fold over a whole log
//! reads every event once and keeps none of its texts, so that a record in between would be waste.

use domain::{
    event::{Event, Logged},
    ids::{InvalidId, RunHash, RunId, ThreadId, ToolCallId, UserId},
};

use super::{
    DecodeError, sealed,
    typed::{self, Texts, UndecodableEvent},
};
use crate::{
    erase::run_hash, keyring::Keyring, new_event::Scope, position::Position, recorded::RecordedEvent,
    stream_id::StreamId,
};

/// An event with its place in the log, as a fold reads it.
#[derive(Debug)]
pub struct ReadFact {
    /// Its place in the whole log.
    pub position: Position,
    /// Its hash.
    pub hash: [u8; 32],
    /// What it says.
    pub said: Said,
}

/// What an event says to a fold.
#[derive(Debug)]
pub enum Said {
    /// A fact of a thread, and the hash of the run that it belongs to.
    Fact(Box<Logged>, Option<RunHash>),
    /// It is a thread's, and its content is not what its type promises.
    Undecodable {
        /// The thread.
        thread_id: ThreadId,
        /// The run that it belongs to.
        run: Option<RunHash>,
        /// What is wrong.
        error: UndecodableEvent,
    },
    /// A fact of the registry, which belongs to no thread.
    Beside(Event),
    /// Nothing that anybody can read: it was erased, or is one of the registry's from a later version.
    Nothing,
}

/// The names that were read last. Neighbouring events mostly have the same.
#[derive(Default)]
pub(crate) struct Names {
    stream: Option<(String, StreamId)>,
    run_id: Option<RunId>,
    task_id: Option<ToolCallId>,
    owner: Option<UserId>,
}

impl Names {
    fn stream(&mut self, text: &str) -> Result<StreamId, DecodeError> {
        match &self.stream {
            Some((known, stream)) if known == text => Ok(stream.clone()),
            Some(_) | None => {
                let stream: StreamId = text.parse()?;
                self.stream = Some((text.to_owned(), stream.clone()));
                Ok(stream)
            }
        }
    }
}

/// The id of a text, which is the known one or becomes it.
fn named<Id: Clone>(
    known: &mut Option<Id>,
    text: &str,
    as_str: fn(&Id) -> &str,
    new: fn(&str) -> Result<Id, InvalidId>,
) -> Result<Id, DecodeError> {
    match known {
        Some(id) if as_str(id) == text => Ok(id.clone()),
        Some(_) | None => Ok(known.insert(new(text)?).clone()),
    }
}

impl ReadFact {
    /// What a recorded event says.
    pub(crate) fn of(event: &RecordedEvent) -> Self {
        Self { position: event.position, hash: event.hash, said: Said::of(event) }
    }
}

impl Said {
    fn of(event: &RecordedEvent) -> Self {
        if event.is_erased() {
            return Self::Nothing;
        }
        let Some(thread_id) = event.stream.thread_id() else {
            return event.fact().map_or(Self::Nothing, Self::Beside);
        };
        let run = event.scope.run_id.as_ref().map(|run_id| run_hash(thread_id, run_id));
        match typed::decode(event) {
            Ok(fact) => Self::Fact(Box::new(fact), run),
            Err(error) => Self::Undecodable { thread_id: thread_id.clone(), run, error },
        }
    }
}

/// Reads a sealed record.
pub(super) fn read_sealed(
    bytes: &sealed::Bytes<'_>,
    keyring: &Keyring,
    names: &mut Names,
) -> Result<ReadFact, DecodeError> {
    let header = sealed::read_header_of(bytes.header, |text| names.stream(text))?;
    let (position, hash) = (header.position, *bytes.hash);
    let Some(key) = sealed::find_key(&header, keyring)? else {
        return Ok(ReadFact { position, hash, said: Said::Nothing });
    };
    let said = sealed::with_opened(bytes, header, &key, |header, body, _| {
        read_said(&header, &sealed::Body::read(body)?, names)
    })?;
    Ok(ReadFact { position, hash, said })
}

fn read_said(
    header: &sealed::Header,
    body: &sealed::Body<'_>,
    names: &mut Names,
) -> Result<Said, DecodeError> {
    let run_id =
        body.run_id.map(|text| named(&mut names.run_id, text, RunId::as_str, |text| RunId::new(text)));
    let task_id = body
        .task_id
        .map(|text| named(&mut names.task_id, text, ToolCallId::as_str, |text| ToolCallId::new(text)));
    let owner = named(&mut names.owner, body.owner, UserId::as_str, |text| UserId::new(text))?;
    let scope = Scope {
        run_id: run_id.transpose()?,
        task_id: task_id.transpose()?,
        delegation_id: header.delegation_id,
    };
    let texts = Texts {
        position: header.position,
        event_type: body.event_type,
        schema_version: header.schema_version,
        category: body.category,
        content: body.content,
        metadata: body.metadata,
    };
    let StreamId::Thread(thread_id) = &header.stream else {
        return Ok(texts.read().map_or(Said::Nothing, Said::Beside));
    };
    let (thread_id, run) = (thread_id.clone(), header.run.map(|run| RunHash::from_bytes(run.0)));
    Ok(match texts.read() {
        Ok(event) => {
            let labels = typed::labels(&texts, &event);
            let fact = Logged {
                position: header.position.get(),
                seq: header.seq.get(),
                thread_id,
                owner,
                scope,
                recorded_at: header.recorded_at,
                labels,
                event,
            };
            Said::Fact(Box::new(fact), run)
        }
        Err(error) => Said::Undecodable { thread_id, run, error },
    })
}
