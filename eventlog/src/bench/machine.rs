//! What the system says about this process, and its caches.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::Duration,
};

use rustix::{
    fs::{Advice, fadvise},
    time::{ClockId, clock_gettime},
};

/// Processor time of all threads so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Memory that the process has now, in MiB.
pub(super) fn rss_mib() -> f64 {
    status("VmRSS:")
}

/// The most memory that the process had, in MiB.
pub fn peak_rss_mib() -> f64 {
    status("VmHWM:")
}

/// A line of the process's status that gives KiB; 0 where there is none.
fn status(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Drops the system's cached pages of every file below a folder.
pub(super) fn drop_page_cache(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_page_cache(&path)?;
        } else {
            let file = File::open(&path)?;
            file.sync_data()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
