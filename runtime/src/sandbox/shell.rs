//! Runs one shell line to its end, within a time limit and with bounded memory.

use std::{
    io::{self, PipeReader},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};

use tokio::{io::AsyncReadExt, net::unix::pipe, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Confinement, Excess, ThreadFolders,
    confinement::LaunchFailure,
    mask::StreamMask,
    processes::{self, Running},
};
use crate::{tool_work::WorkList, tools::capture::Capture};

/// How much is read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// How long output is still awaited when the shell has ended and a process in the background
/// keeps the pipe open.
const DRAIN_MAX: Duration = Duration::from_millis(500);
/// How long killed processes may take to be gone. One that waits for a broken disk may take for
/// ever, and the call must not.
const REAP_MAX: Duration = Duration::from_secs(5);

/// When a shell line has to stop.
pub(crate) struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) cancel: CancellationToken,
    /// Where the line is listed until all that it started is gone.
    pub(crate) work: WorkList,
}

/// How a shell line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellEnd {
    /// With this exit code; 128 and the signal's number where a signal ended it.
    Exited(i32),
    /// Because it took too much of the machine; everything that it had started was killed.
    Exceeded(Excess),
    /// At its time limit; everything that it had started was killed.
    TimedOut,
    /// Because the call was cancelled; everything that it had started was killed.
    Cancelled,
}

/// Why the line stopped being read.
#[derive(Clone, Copy)]
enum Stop {
    Exited,
    TimedOut,
    Cancelled,
}

/// Runs the line. Dropping the future kills everything that it has started.
pub(crate) async fn run(
    confinement: &Arc<Confinement>,
    folders: &ThreadFolders,
    line: &str,
    bounds: &Bounds,
    capture: Capture,
) -> Result<(ShellEnd, Capture), LaunchFailure> {
    let deadline = Instant::now() + bounds.timeout;
    let (reader, writer) = io::pipe().map_err(LaunchFailure::Start)?;
    let running = {
        let (confinement, folders) = (Arc::clone(confinement), folders.clone());
        processes::start(confinement, folders, line.to_owned(), writer, bounds.work.begin()).await?
    };
    let mut output = Output::new(reader, folders, &running, capture).map_err(LaunchFailure::Start)?;
    let Running { group, temp, mut exited, reaped } = running;
    drop(temp);
    let stop = tokio::select! {
        biased;
        () = bounds.cancel.cancelled() => Stop::Cancelled,
        () = tokio::time::sleep_until(deadline) => Stop::TimedOut,
        _ = &mut exited => Stop::Exited,
        () = output.read_for_ever() => Stop::Cancelled,
    };
    output
        .drain(match stop {
            Stop::Exited => DRAIN_MAX,
            Stop::TimedOut | Stop::Cancelled => Duration::ZERO,
        })
        .await;
    drop(group);
    let reaped = tokio::time::timeout(REAP_MAX, reaped).await.ok().and_then(Result::ok);
    let excess = reaped.as_ref().and_then(|reaped| reaped.excess);
    let end = match stop {
        Stop::Exited => match excess {
            Some(excess) => ShellEnd::Exceeded(excess),
            None => ShellEnd::Exited(reaped.and_then(|reaped| reaped.status).map_or(-1, exit_code)),
        },
        Stop::TimedOut => ShellEnd::TimedOut,
        Stop::Cancelled => ShellEnd::Cancelled,
    };
    Ok((end, output.finish()))
}

fn exit_code(status: ExitStatus) -> i32 {
    const SIGNAL_BASE: i32 = 128;
    status.code().or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal)).unwrap_or(-1)
}

/// What the line prints, as the agent may read it.
struct Output {
    pipe: pipe::Receiver,
    chunk: Vec<u8>,
    mask: StreamMask,
    capture: Capture,
    is_ended: bool,
}

impl Output {
    fn new(
        reader: PipeReader,
        folders: &ThreadFolders,
        running: &Running,
        capture: Capture,
    ) -> io::Result<Self> {
        let [workspace, uploads, outputs] = folders.roots();
        let mask = StreamMask::new([workspace, uploads, outputs, ("/tmp", running.temp.path())]);
        Ok(Self {
            pipe: pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?,
            chunk: vec![0; CHUNK_BYTES],
            mask,
            capture,
            is_ended: false,
        })
    }

    /// Takes what is printed, and never returns: the end of the output is not the shell's end.
    async fn read_for_ever(&mut self) {
        self.read_to_end().await;
        std::future::pending().await
    }

    /// Takes what is printed until nobody can print any more. May be stopped at any await.
    async fn read_to_end(&mut self) {
        while !self.is_ended {
            match self.pipe.read(&mut self.chunk).await {
                Ok(0) => self.is_ended = true,
                Ok(length) => {
                    let printed = self.chunk.get(..length).unwrap_or_default();
                    self.capture.take(&self.mask.push(printed));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read a shell's output");
                    self.is_ended = true;
                }
            }
        }
    }

    /// Takes what was printed before the end, for no longer than this.
    async fn drain(&mut self, longest: Duration) {
        // An elapsed timer still polls the read once, so what is in the pipe is taken.
        drop(tokio::time::timeout(longest, self.read_to_end()).await);
    }

    fn finish(self) -> Capture {
        let mut capture = self.capture;
        capture.take(&self.mask.finish());
        capture
    }
}
