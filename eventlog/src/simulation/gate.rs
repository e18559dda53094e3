//! Holds the writer's thread between two groups, so that a history is the same each time.
//!
//! The writer asks the clock once for each group that it has gathered, before it plans it. The gate
//! is that clock: the writer waits in it, while requests are queued for the group after. So who shares
//! a commit depends on nothing but the seed.

use std::{
    pin::pin,
    sync::{Arc, Condvar, Mutex},
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
    time::{Duration, Instant},
};

use crate::{options::Clock, sample};

const WRITER: &str = "remit-log-writer";
/// Only a writer that hangs takes as long.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether the writer will never come back.
const LOOK_EVERY: Duration = Duration::from_micros(100);

#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    may_pass: bool,
    is_open: bool,
    is_waited_at: bool,
}

impl Gate {
    /// A clock that stands still, and the writer with it.
    pub(super) fn clock(self: &Arc<Self>) -> Clock {
        let gate = Arc::clone(self);
        Arc::new(move || {
            if std::thread::current().name() == Some(WRITER) {
                gate.stall();
            }
            sample::time()
        })
    }

    fn stall(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_waited_at = true;
        self.changed.notify_all();
        while !state.is_open && !state.may_pass {
            state = self.changed.wait(state).unwrap();
        }
        state.may_pass = false;
        state.is_waited_at = false;
    }

    /// Waits until the writer waits, or will never again.
    pub(super) fn wait(&self, is_over: impl Fn() -> bool) {
        let began = Instant::now();
        let mut state = self.state.lock().unwrap();
        while !(state.is_open || state.is_waited_at && !state.may_pass || is_over()) {
            assert!(began.elapsed() < PATIENCE, "the writer hangs");
            state = self.changed.wait_timeout(state, LOOK_EVERY).unwrap().0;
        }
    }

    /// Lets one group pass, and waits for the next.
    pub(super) fn step(&self, is_over: impl Fn() -> bool) {
        self.state.lock().unwrap().may_pass = true;
        self.changed.notify_all();
        self.wait(is_over);
    }

    /// Lets everything pass from now on.
    pub(super) fn open(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let began = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        assert!(began.elapsed() < PATIENCE, "the log hangs");
        std::thread::park_timeout(PATIENCE);
    }
}
