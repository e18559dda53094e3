//! A process at work: its log, and who waits for answers of it.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::super::{
    gate::{Gate, block_on},
    requests::Request,
};
use crate::{AppendError, Appended, EraseError, EventLog, StreamId};

pub(super) enum Answer {
    Append(Result<Appended, AppendError>),
    Erase(Result<bool, EraseError>),
}

/// A request that may have been answered.
pub(super) struct Sent {
    pub(super) request: Request,
    answer: Pin<Box<dyn Future<Output = Answer>>>,
    /// The answer, once it is there.
    pub(super) ready: Option<Answer>,
}

impl Sent {
    pub(super) fn wait(self) -> (Request, Answer) {
        let Self { request, answer, ready } = self;
        (request, ready.unwrap_or_else(|| block_on(answer)))
    }
}

/// A process at work.
pub(super) struct Life {
    pub(super) log: EventLog,
    pub(super) gate: Arc<Gate>,
    pub(super) sent: VecDeque<Sent>,
}

/// Whoever drops the log waits for its writer.
impl Drop for Life {
    fn drop(&mut self) {
        self.gate.open();
    }
}

impl Life {
    /// Puts a request into the writer's queue.
    pub(super) fn send(&mut self, request: Request) {
        let (log, asked) = (self.log.clone(), request.clone());
        let mut answer: Pin<Box<dyn Future<Output = Answer>>> = Box::pin(async move {
            match asked {
                Request::Append(append) => Answer::Append(log.append(append).await),
                Request::Erase(StreamId::Thread(thread_id)) => {
                    Answer::Erase(log.destroy_thread_key(&thread_id).await)
                }
                Request::Erase(other) => panic!("{other} is no thread"),
            }
        });
        // The first look at it puts it into the queue, which has room.
        let ready = match poll(answer.as_mut()) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        let is_first = self.sent.is_empty();
        self.sent.push_back(Sent { request, answer, ready });
        if is_first {
            let log = self.log.clone();
            self.gate.wait(|| log.is_poisoned());
        }
    }

    /// Takes the answers that are there.
    pub(super) fn receive(&mut self) {
        for sent in self.sent.iter_mut().filter(|sent| sent.ready.is_none()) {
            sent.ready = match poll(sent.answer.as_mut()) {
                Poll::Ready(answer) => Some(answer),
                // Everybody gets the answer that the log is poisoned, some later.
                Poll::Pending if self.log.is_poisoned() => Some(block_on(sent.answer.as_mut())),
                Poll::Pending => break,
            };
        }
    }

    /// Whether an erasure is among what is answered.
    pub(super) fn has_erased(&self) -> bool {
        let answered = self.sent.iter().filter(|sent| sent.ready.is_some());
        answered.map(|sent| &sent.request).any(|request| matches!(request, Request::Erase(_)))
    }
}

/// What was asked and answered, without what the system's randomness and clocks had a part in.
pub(super) fn told(request: &Request, answer: &Answer) -> String {
    let asked = match request {
        Request::Append(append) => format!("{} events to {}", append.events.len(), append.stream),
        Request::Erase(stream) => format!("to erase {stream}"),
    };
    match answer {
        Answer::Append(Ok(appended)) => {
            let places: Vec<_> = appended.events.iter().map(|one| (one.position, one.seq)).collect();
            format!("{asked}: {places:?}, again: {}", appended.is_repeat)
        }
        Answer::Append(Err(error)) => format!("{asked}: {:?}", std::mem::discriminant(error)),
        Answer::Erase(Ok(was_live)) => format!("{asked}: {was_live}"),
        Answer::Erase(Err(error)) => format!("{asked}: {:?}", std::mem::discriminant(error)),
    }
}

pub(super) fn poll<T>(future: Pin<&mut (dyn Future<Output = T> + '_)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
