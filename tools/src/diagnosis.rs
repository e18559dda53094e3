//! What is wrong with a data folder, found by looking only.

use std::path::Path;

use domain::causes::with_causes;
use eventlog::{
    BlobInspection, Inspection, OpenError, Options,
    engine::Engine,
    repair::{self, Cut, RepairError, RepairPlan},
};
use serde::Serialize;

use crate::{failure::Exit, output::program, render::units};

pub(crate) mod server;
mod trouble;

/// With less, the next segment or table of the log may not fit.
const FREE_BYTES_MIN: u64 = 512 * 1024 * 1024;

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// As it should be.
    Ok,
    /// It works, and somebody should know.
    Warning,
    /// The folder cannot be used like this.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at.
    pub(crate) check: &'static str,
    /// How it is.
    pub(crate) state: State,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) advice: Option<String>,
    /// The exit code that says the same.
    #[serde(skip)]
    pub(crate) exit: Exit,
}

impl Finding {
    /// All is well.
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, state: State::Ok, found: found.into(), advice: None, exit: Exit::Done }
    }

    /// Something that does not stop anybody.
    pub(crate) fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let (found, advice) = (found.into(), Some(advice.into()));
        Self { check, state: State::Warning, found, advice, exit: Exit::Done }
    }

    /// Something that must be seen to first.
    pub(crate) fn problem(
        check: &'static str,
        exit: Exit,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { check, state: State::Problem, found: found.into(), advice: Some(advice.into()), exit }
    }
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    /// In the order in which it was looked at.
    pub(crate) findings: Vec<Finding>,
    /// Where the server that holds the folder listens, if one does.
    pub(crate) server: Option<String>,
}

impl Diagnosis {
    /// The code of the first problem.
    pub(crate) fn exit(&self) -> Exit {
        let first = self.findings.iter().find(|finding| finding.state == State::Problem);
        first.map_or(Exit::Done, |finding| finding.exit)
    }
}

/// Looks at a data folder. Nothing in it is changed.
pub(crate) fn diagnose(data: &Path, options: &Options) -> Diagnosis {
    let mut diagnosis = Diagnosis { findings: Vec::new(), server: None };
    let is_free = match repair::plan_repair(data, options) {
        Err(RepairError::Open(error)) => diagnosis.add_trouble(&error),
        Err(error) => {
            diagnosis.findings.push(Finding::problem(
                "record",
                Exit::Failed,
                with_causes(&error),
                "look at the disk and at the permissions of the folder",
            ));
            true
        }
        Ok(RepairPlan::Cut(cut)) => {
            diagnosis.findings.push(Finding::ok("lock", "nobody has the folder open"));
            diagnosis.findings.push(torn(&cut));
            true
        }
        Ok(RepairPlan::Nothing) => diagnosis.inspect(data, options, None),
        Ok(RepairPlan::Refused { reason }) => diagnosis.inspect(data, options, Some(reason)),
    };
    if is_free {
        diagnosis.findings.extend(views(&data.join("views")));
    }
    diagnosis.findings.extend(disk(data));
    diagnosis
}

impl Diagnosis {
    /// Looks at the log. Says whether nobody else has the folder.
    fn inspect(&mut self, data: &Path, options: &Options, refused: Option<String>) -> bool {
        match (eventlog::inspect(data, options), refused) {
            (Err(error), _) => self.add_trouble(&error),
            (Ok(_), Some(reason)) => {
                let advice = trouble::restore_advice();
                self.findings.push(Finding::ok("lock", "nobody has the folder open"));
                self.findings.push(Finding::problem("record", Exit::Integrity, reason, advice));
                true
            }
            (Ok(found), None) => {
                self.findings.extend(whole(&found));
                self.findings.push(erasures(data, options));
                true
            }
        }
    }

    /// Adds what opening the folder would refuse. Says whether nobody else has the folder.
    fn add_trouble(&mut self, error: &OpenError) -> bool {
        let is_held = trouble::is_held(error);
        if !is_held {
            self.findings.push(Finding::ok("lock", "nobody has the folder open"));
        }
        if let OpenError::Held { address, .. } = error {
            self.server.clone_from(address);
        }
        self.findings.push(trouble::of_open(error));
        !is_held
    }
}

/// A folder that opens.
fn whole(found: &Inspection) -> Vec<Finding> {
    let head = found.head.map_or(0, eventlog::Position::get);
    let events = units::counted(head, "event", "events");
    let version = found.format_version.map_or("new".to_owned(), |version| version.to_string());
    let noted = match found.noted {
        None if head > 0 => Finding::warning(
            "head",
            "the head file is missing, so nothing outside the log says how far it went",
            format!("run `{} verify`; the file is made again when the folder is next used", program()),
        ),
        None | Some(_) => Finding::ok("head", "the log goes as far as it is known to have gone"),
    };
    vec![
        Finding::ok("lock", "nobody has the folder open"),
        Finding::ok("record", "whole to its end"),
        Finding::ok("format", version),
        Finding::ok("keys", "the master key opens them"),
        noted,
        Finding::ok(
            "log",
            format!("{events}, {}; the last commits are whole", units::bytes(found.disk_bytes)),
        ),
        blobs(&found.blobs),
    ]
}

/// Blobs and files that a finding names at most.
const NAMED_MAX: usize = 5;

fn blobs(found: &BlobInspection) -> Finding {
    let count = units::counted(found.blobs, "blob", "blobs");
    let space = units::bytes(found.disk_bytes);
    let problem = |what| Finding::problem("blobs", Exit::Integrity, what, trouble::restore_advice());
    if !found.named.is_empty() {
        let number = units::counted(found.named.len() as u64, "blob", "blobs");
        return problem(format!("{number} that events name cannot be read: {}", listed(&found.named)));
    }
    if !found.damaged.is_empty() {
        let damaged = units::counted(found.damaged.len() as u64, "file is", "files are");
        return problem(format!("{damaged} damaged: {}", listed(&found.damaged)));
    }
    if found.erased > 0 {
        let files = units::counted(found.erased, "file", "files");
        let what = format!("{count}, and {files} of erased threads or runs, which nobody can open");
        return Finding::warning("blobs", what, "start the server: it carries on erasures that were cut off");
    }
    Finding::ok("blobs", format!("{count}, {space}"))
}

/// The first of them, and how many more there are.
fn listed(all: &[impl ToString]) -> String {
    let first: Vec<String> = all.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    match all.len().saturating_sub(NAMED_MAX) {
        0 => first.join("; "),
        more => format!("{}; and {more} more", first.join("; ")),
    }
}

/// What was erased stays so, unless somebody puts older keys back.
fn erasures(data: &Path, options: &Options) -> Finding {
    match revived(data, options) {
        Ok(0) => Finding::ok("erasures", "nothing that was erased can be read"),
        Ok(count) => Finding::problem(
            "erasures",
            Exit::Integrity,
            format!(
                "{} can be read again: an older copy of the keys was put back",
                units::counted(count as u64, "erased thread or run", "erased threads and runs")
            ),
            format!(
                "`{} doctor --repair` destroys the keys again, and so does the next command that opens the folder",
                program()
            ),
        ),
        Err(error) => Finding::warning(
            "erasures",
            format!("they could not be looked at: {error:#}"),
            format!("run `{} verify`", program()),
        ),
    }
}

/// How many erasures have their end, and their keys all the same.
pub(crate) fn revived(data: &Path, options: &Options) -> anyhow::Result<usize> {
    let (registry, sealer) = eventlog::peek_registry(data, options)?;
    Ok(runtime::revived(&registry, &sealer)?.len())
}

fn torn(cut: &Cut) -> Finding {
    let bytes = units::bytes(cut.cut_bytes);
    let found = format!("a torn end of {bytes} in {}, which was never acknowledged", cut.segment.display());
    let advice = format!("`{} doctor --repair` shows it and cuts it off", program());
    Finding::warning("record", found, advice)
}

/// Views are copies: whatever is wrong with them, they can be made again.
fn views(folder: &Path) -> Option<Finding> {
    if !folder.is_dir() {
        return Some(Finding::ok("views", "not made yet"));
    }
    // Without keyspaces: the engine reads what it needs to open, and makes nothing.
    match Engine::open(folder, &[]) {
        Ok(_) => Some(Finding::ok("views", "can be opened")),
        Err(error) => Some(Finding::warning(
            "views",
            format!("they cannot be opened: {}", with_causes(&error)),
            format!("delete {}: they are made again from the log", folder.display()),
        )),
    }
}

fn disk(data: &Path) -> Option<Finding> {
    let free = match eventlog::free_bytes(data) {
        Ok(free) => free,
        Err(error) => {
            let advice = "look at the disk";
            return Some(Finding::warning("disk", format!("its space cannot be measured: {error}"), advice));
        }
    };
    Some(disk_finding(free))
}

fn disk_finding(free: u64) -> Finding {
    let found = format!("{} free", units::bytes(free));
    if free < FREE_BYTES_MIN {
        Finding::warning("disk", found, "free some space before appends fail")
    } else {
        Finding::ok("disk", found)
    }
}

#[cfg(test)]
mod tests;
