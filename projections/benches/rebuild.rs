//! All views from a log on disk: `cargo bench -p projections --bench rebuild [-- EVENTS]`.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot run has nothing to say")]

use eventlog::{EventLog, Options};
use projections::bench;

/// As in the `remit` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// With the folder of a log that is there, only makes its views, several times: for a profiler.
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = tempfile::tempdir_in(".").unwrap();
    match arguments.iter().position(|argument| argument == "--log").and_then(|at| arguments.get(at + 1)) {
        Some(log) => {
            let log = EventLog::open(log.as_ref(), Options::default()).unwrap();
            for number in 0..5 {
                let report = bench::measure(&log, &folder.path().join(number.to_string())).unwrap();
                println!("{}", serde_json::to_string(&report).unwrap());
            }
        }
        None => {
            let events = arguments.iter().filter_map(|argument| argument.parse().ok()).next();
            let report = bench::rebuild(&folder.path().join("bench"), events.unwrap_or(100_000)).unwrap();
            println!("{}", serde_json::to_string_pretty(&report).unwrap());
        }
    }
}
