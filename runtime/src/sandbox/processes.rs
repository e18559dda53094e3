//! Starting the processes of one shell line, and making sure that none of them outlives it, nor the
//! server by more than its next start.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    process::ExitStatus,
    sync::{Arc, mpsc},
};

use domain::digest::sha256_hex;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, pidfd_send_signal,
        waitid,
    },
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    Confinement, ThreadFolders,
    confinement::{Launch, LaunchFailure, MARK_VARIABLE},
    private_temp::PrivateTemp,
    watchman::{self, Excess},
};
use crate::tool_work::AtWork;

/// How often the process list is searched for what a dying process may just have started.
const SEARCHES_MAX: usize = 5;
/// How long is waited for a killed process to end. Only one that hangs in the kernel takes longer.
const ENDING_MAX: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// How much of a process's environment is searched for the mark; the shell's is far smaller.
const ENVIRONMENT_BYTES_MAX: u64 = 64 * 1024;

/// A process group that still runs. Dropping it kills the group; the thread that watches it then
/// ends the processes that had left the group, and reaps.
pub(super) struct Group {
    leader: Pid,
    /// Held until the group may be reaped, so that the number cannot belong to another before.
    _hold: mpsc::Sender<()>,
}

impl Drop for Group {
    fn drop(&mut self) {
        kill_group(self.leader);
    }
}

/// What the caller holds of a shell line that was started.
pub(super) struct Running {
    pub(super) group: Group,
    /// Where its temporary files are.
    pub(super) temp: Arc<PrivateTemp>,
    /// Tells that the shell itself has ended; it is not reaped yet.
    pub(super) exited: oneshot::Receiver<()>,
    /// Tells that everything has ended, after the group was dropped.
    pub(super) reaped: oneshot::Receiver<Reaped>,
}

/// How a shell line ended.
pub(super) struct Reaped {
    pub(super) status: Option<ExitStatus>,
    /// Why it was killed, if it took too much.
    pub(super) excess: Option<Excess>,
}

/// Starts a shell line under a thread of its own that watches it to its end, and counts as work until
/// then.
pub(super) async fn start(
    confinement: Arc<Confinement>,
    folders: ThreadFolders,
    line: String,
    out: io::PipeWriter,
    at_work: AtWork,
) -> Result<Running, LaunchFailure> {
    let (started, is_started) = oneshot::channel();
    let watch = move || {
        let _at_work = at_work;
        watch(&confinement, &folders, &line, out, started);
    };
    std::thread::Builder::new().name("shell-line".to_owned()).spawn(watch).map_err(LaunchFailure::Start)?;
    is_started.await.map_err(|_| LaunchFailure::ThreadEnded)?
}

fn watch(
    confinement: &Confinement,
    folders: &ThreadFolders,
    line: &str,
    out: io::PipeWriter,
    started: oneshot::Sender<Result<Running, LaunchFailure>>,
) {
    let temp = match PrivateTemp::create() {
        Ok(temp) => Arc::new(temp),
        Err(error) => return drop(started.send(Err(LaunchFailure::Temp(error)))),
    };
    let mark = format!("{}{}", mark_of_data(folders.data()), Uuid::now_v7());
    let launch = Launch { folders, temp: &temp, line, mark: &mark };
    let mut child = match confinement.start(&launch, Some(out)) {
        Ok(child) => child,
        Err(failure) => return drop(started.send(Err(failure))),
    };
    let leader = Pid::from_child(&child);
    let (hold, held) = mpsc::channel();
    let (exited, when_exited) = oneshot::channel();
    let (reaped, when_reaped) = oneshot::channel();
    let group = Group { leader, _hold: hold };
    // A caller that has gone away never takes the group, and dropping it here kills it as well.
    drop(started.send(Ok(Running {
        group,
        temp: Arc::clone(&temp),
        exited: when_exited,
        reaped: when_reaped,
    })));
    let excess = std::thread::scope(|scope| {
        let (running, ended) = mpsc::channel();
        let watchman =
            std::thread::Builder::new().name("shell-watchman".to_owned()).spawn_scoped(scope, || {
                let ended = ended;
                watchman::watch(leader, &ended, |number| is_marked(number, mark_variable(&mark).as_bytes()))
                    .inspect(|_| kill_group(leader))
            });
        wait_without_reaping(leader);
        // Whoever no longer listens has dropped the group.
        let _ = exited.send(());
        // Nothing is ever sent: this waits for the group to be dropped.
        let _ = held.recv();
        end_all(leader, &mark);
        drop(running);
        // Without a watchman the line's own limits hold alone.
        watchman.ok().and_then(|watchman| watchman.join().ok()).flatten()
    });
    let status = child.wait().inspect_err(|error| tracing::warn!(%error, "cannot reap a shell")).ok();
    drop(temp);
    let _ = reaped.send(Reaped { status, excess });
}

/// Returns when the process has ended; its number stays taken.
fn wait_without_reaping(leader: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(error) = waitid(WaitId::Pid(leader), options) {
        if error != rustix::io::Errno::INTR {
            tracing::warn!(%error, "cannot wait for a shell");
            return;
        }
    }
}

fn kill_group(leader: Pid) {
    match kill_process_group(leader, Signal::KILL) {
        // Nobody is left.
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(%error, "cannot kill a shell line's processes"),
    }
}

/// What the marks of all lines begin with that a server of this data folder has started.
pub(crate) fn mark_of_data(data: &Path) -> String {
    const DIGITS: usize = 32;
    let mut digest = sha256_hex(data.as_os_str().as_bytes());
    digest.truncate(DIGITS);
    digest + "."
}

/// Kills what a server of this data folder has left behind that died with its shell lines at work, and
/// waits until it has ended. Nobody else may use the folder meanwhile. Gives the number of processes.
pub(crate) fn end_leftovers(data: &Path) -> usize {
    // A folder that is not there has had no server.
    let Ok(data) = fs::canonicalize(data) else { return 0 };
    let mark = mark_variable(&mark_of_data(&data));
    let is_left = |number: i32| has_variable(number, |variable| variable.starts_with(mark.as_bytes()));
    let mut count = 0;
    for _ in 0..SEARCHES_MAX {
        let killed = kill_all(&is_left);
        if killed.is_empty() {
            break;
        }
        killed.iter().for_each(wait_for_end);
        count += killed.len();
    }
    count
}

fn mark_variable(mark: &str) -> String {
    format!("{MARK_VARIABLE}={mark}")
}

/// Kills what is left of a shell line, and waits until it has ended: who is told that the line is over
/// relies on nothing of it writing any more.
fn end_all(leader: Pid, mark: &str) {
    let mark = mark_variable(mark);
    let is_of_line =
        |number: i32| is_marked(number, mark.as_bytes()) || watchman::is_alive_in_group(number, leader);
    for _ in 0..SEARCHES_MAX {
        kill_group(leader);
        let killed = kill_all(&is_of_line);
        if killed.is_empty() {
            return;
        }
        killed.iter().for_each(wait_for_end);
    }
}

/// Kills every process of which this holds. Gives a handle of each.
fn kill_all(is_meant: &impl Fn(i32) -> bool) -> Vec<OwnedFd> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| kill_if(number, is_meant)).collect()
}

/// Gives a handle of the process if it was meant, and alive.
fn kill_if(number: i32, is_meant: &impl Fn(i32) -> bool) -> Option<OwnedFd> {
    // Looked at first without a handle: most processes are not ours.
    if !is_meant(number) {
        return None;
    }
    let handle = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
    (is_meant(number) && pidfd_send_signal(&handle, Signal::KILL).is_ok()).then_some(handle)
}

fn wait_for_end(process: &OwnedFd) {
    let ended = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&ENDING_MAX));
    if !matches!(ended, Ok(1) | Err(rustix::io::Errno::INTR)) {
        tracing::warn!("a process of a shell line was killed and has not ended");
    }
}

fn is_marked(number: i32, mark: &[u8]) -> bool {
    has_variable(number, |variable| variable == mark)
}

fn has_variable(number: i32, is_meant: impl Fn(&[u8]) -> bool) -> bool {
    let mut environment = Vec::new();
    let Ok(file) = File::open(format!("/proc/{number}/environ")) else { return false };
    // A zombie's environment reads as empty.
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).is_ok()
        && environment.split(|byte| *byte == 0).any(is_meant)
}
