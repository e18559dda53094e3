//! Watches how much of the machine the processes of one shell line take together, and kills them
//! when it is too much.
//!
//! The system's own limits hold for each process alone, and the one for their number does not hold
//! for root. Looking from time to time catches what grows for longer than that.

use std::{
    collections::{HashMap, HashSet},
    fs,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use rustix::{param::page_size, process::Pid};

use super::limits::PROCESSES_MAX;

/// How often is looked. Most lines have ended before the first time.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Memory that the processes of one line may fill together, in bytes: 8 GiB. What they share counts
/// for each.
const MEMORY_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

/// Of what there was too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// More than [`PROCESSES_MAX`] processes and threads.
    Processes,
    /// More than [`MEMORY_BYTES_MAX`] of memory.
    Memory,
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Processes => write!(f, "it had more than {PROCESSES_MAX} processes and threads"),
            Self::Memory => write!(f, "it filled more than {} GiB of memory", MEMORY_BYTES_MAX >> 30),
        }
    }
}

/// Looks until the other end of the channel is gone, or there is too much. `is_stray` knows the
/// line's processes among those that have lost their parent.
pub(super) fn watch(leader: Pid, ended: &Receiver<()>, is_stray: impl Fn(i32) -> bool) -> Option<Excess> {
    while matches!(ended.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout)) {
        let excess = excess(&line_of(leader.as_raw_pid(), &processes(), &is_stray));
        if excess.is_some() {
            return excess;
        }
    }
    None
}

fn excess(line: &[Process]) -> Option<Excess> {
    let threads: u64 = line.iter().map(|process| process.threads).sum();
    let pages: u64 = line.iter().map(|process| process.pages).sum();
    if threads > PROCESSES_MAX as u64 {
        return Some(Excess::Processes);
    }
    (pages.saturating_mul(page_size() as u64) > MEMORY_BYTES_MAX).then_some(Excess::Memory)
}

/// What is looked at of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    number: i32,
    parent: i32,
    group: i32,
    /// Not merely waiting for its parent to take note of its end.
    is_alive: bool,
    threads: u64,
    /// Memory that it fills, in pages.
    pages: u64,
}

/// The processes that descend from the leader, are in its group, or are strays of the line.
fn line_of(leader: i32, all: &[Process], is_stray: &impl Fn(i32) -> bool) -> Vec<Process> {
    const INIT: i32 = 1;
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process.number);
    }
    let is_root = |process: &&Process| {
        process.number == leader
            || process.group == leader
            || process.parent == INIT && is_stray(process.number)
    };
    let mut next: Vec<i32> = all.iter().filter(is_root).map(|process| process.number).collect();
    let mut found = HashSet::new();
    while let Some(number) = next.pop() {
        if found.insert(number) {
            next.extend(children.get(&number).into_iter().flatten());
        }
    }
    all.iter().filter(|process| found.contains(&process.number)).copied().collect()
}

fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(read).collect()
}

fn read(number: i32) -> Option<Process> {
    parse(number, &fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

/// Whether the process is in the leader's group and has not ended.
pub(super) fn is_alive_in_group(number: i32, leader: Pid) -> bool {
    read(number).is_some_and(|process| process.is_alive && process.group == leader.as_raw_pid())
}

/// Reads `/proc/N/stat`; a name may hold spaces and brackets, so reading begins after it.
fn parse(number: i32, stat: &str) -> Option<Process> {
    const STATE: usize = 0;
    const ENDED: [&str; 2] = ["Z", "X"];
    const PARENT: usize = 1;
    const GROUP: usize = 2;
    const THREADS: usize = 17;
    const PAGES: usize = 21;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process {
        number,
        parent: fields.get(PARENT)?.parse().ok()?,
        group: fields.get(GROUP)?.parse().ok()?,
        is_alive: !ENDED.contains(fields.get(STATE)?),
        threads: fields.get(THREADS)?.parse().ok()?,
        pages: fields.get(PAGES)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(number: i32, parent: i32, group: i32) -> Process {
        Process { number, parent, group, is_alive: true, threads: 1, pages: 1 }
    }

    #[test]
    fn a_line_is_its_descendants_its_group_and_its_strays() {
        let all = [
            process(1, 0, 1),
            process(10, 1, 10),
            process(20, 10, 20),
            process(21, 20, 20),
            process(22, 21, 22),
            process(30, 1, 20),
            process(40, 1, 40),
            process(41, 40, 40),
            process(50, 1, 50),
        ];
        let line = line_of(20, &all, &|number| number == 40);
        let numbers: Vec<_> = line.iter().map(|process| process.number).collect();
        assert_eq!(numbers, [20, 21, 22, 30, 40, 41]);
    }

    #[test]
    fn too_much_is_told_by_its_kind() {
        let of = |threads, pages| [Process { threads, pages, ..process(2, 1, 2) }];
        let most = MEMORY_BYTES_MAX / page_size() as u64;
        assert_eq!(excess(&[]), None);
        assert_eq!(excess(&of(PROCESSES_MAX as u64, most)), None);
        assert_eq!(excess(&of(PROCESSES_MAX as u64 + 1, 1)), Some(Excess::Processes));
        assert_eq!(excess(&of(1, most + 1)), Some(Excess::Memory));
    }

    #[test]
    fn this_process_is_read() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = processes().into_iter().find(|process| process.number == own).unwrap();
        assert!(found.parent > 0 && found.threads > 0 && found.pages > 0, "{found:?}");
        let strange = "7 (a) b (c)) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 6 0 100 4096 8 0";
        let read = Process { number: 7, parent: 3, group: 4, is_alive: true, threads: 6, pages: 8 };
        assert_eq!(parse(7, strange), Some(read));
        assert_eq!(parse(7, &strange.replace(") S", ") Z")), Some(Process { is_alive: false, ..read }));
    }
}
