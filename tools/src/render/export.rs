//! What an export holds, and what verifying one proves.

use std::{path::Path, time::Duration};

use eventlog::export::{ExportDamage, ExportReport, Filter, Made, Manifest};
use serde::Serialize;

use super::{
    units,
    verify::{hex, named},
};
use crate::screen::Screen;

/// A report with the time that it took.
pub(crate) struct VerifiedExport {
    /// What was found.
    pub(crate) report: ExportReport,
    /// Whether the person named the key that must have signed it.
    pub(crate) is_key_known: bool,
    /// How long it took.
    pub(crate) took: Duration,
}

/// What a program reads.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Record<'a> {
    whole: bool,
    position: u64,
    chain: String,
    events: u64,
    erased: u64,
    withheld: u64,
    streams: usize,
    filter: &'a Filter,
    signed_by: String,
    proves: Vec<String>,
    not_proven: Vec<String>,
    seconds: f64,
    damage: Option<DamageRecord>,
}

#[derive(Debug, PartialEq, Serialize)]
struct DamageRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    problem: String,
}

impl VerifiedExport {
    /// For a program. What is damaged proves nothing.
    pub(crate) fn record(&self) -> Record<'_> {
        let ExportReport { manifest, events, damage, .. } = &self.report;
        let is_whole = damage.is_none();
        let listed = |sentences: Vec<String>| if is_whole { sentences } else { Vec::new() };
        Record {
            whole: is_whole,
            position: manifest.position.get(),
            chain: hex(&manifest.chain),
            events: *events,
            erased: manifest.erased,
            withheld: manifest.withheld,
            streams: manifest.streams.len(),
            filter: &manifest.filter,
            signed_by: manifest.public_key.to_string(),
            proves: listed(proves(manifest)),
            not_proven: listed(self.not_proven()),
            seconds: self.took.as_secs_f64(),
            damage: damage.as_ref().map(damage_record),
        }
    }

    fn not_proven(&self) -> Vec<String> {
        let (manifest, mut open) = (&self.report.manifest, Vec::new());
        if !manifest.is_whole() {
            let withheld = units::counted(manifest.withheld, "withheld event", "withheld events");
            open.push(format!("that none of the {withheld} fits the filter; the signer says so"));
        }
        if !self.is_key_known {
            open.push(
                "whose key signed it: compare it with the one that you know, or pass it with --key"
                    .to_owned(),
            );
        }
        open
    }
}

fn damage_record(damage: &ExportDamage) -> DamageRecord {
    let (position, file, problem) = match damage {
        ExportDamage::Event(damage) => (Some(damage.position.get()), None, damage.kind.to_string()),
        ExportDamage::File { name } | ExportDamage::FileMissing { name } => {
            (None, Some(name.clone()), damage.to_string())
        }
        ExportDamage::Manifest { .. } | ExportDamage::Signature { .. } | ExportDamage::OtherKey { .. } => {
            (None, None, damage.to_string())
        }
    };
    DamageRecord { position, file, problem }
}

fn proves(manifest: &Manifest) -> Vec<String> {
    let head = format!("the chain of the log up to position {}", units::grouped(manifest.position.get()));
    if manifest.is_whole() {
        return vec![
            "every event is what was recorded, and none is missing".to_owned(),
            format!("every stream from its first event, and {head}"),
        ];
    }
    vec![
        "every event in it is what was recorded".to_owned(),
        format!("its place in its stream and in {head}"),
    ]
}

/// What is wanted, in words.
fn filter_text(filter: &Filter) -> String {
    let Filter { thread_id, run_id, owner, from, to, event_types } = filter;
    let words: Vec<String> = [
        thread_id.as_ref().map(|id| format!("thread {id}")),
        run_id.as_ref().map(|id| format!("run {id}")),
        owner.as_ref().map(|owner| format!("owner {owner}")),
        from.map(|from| format!("from {from}")),
        to.map(|to| format!("before {to}")),
        event_types.as_ref().map(|types| format!("types {}", types.join(","))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if words.is_empty() { "none: everything".to_owned() } else { words.join(", ") }
}

fn facts(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let mut rows =
        vec![("FILTER", filter_text(&manifest.filter)), ("EVENTS", units::grouped(manifest.events))];
    if manifest.erased > 0 {
        rows.push(("ERASED", format!("{} of them: places and hashes only", units::grouped(manifest.erased))));
    }
    if !manifest.is_whole() {
        rows.push(("WITHHELD", format!("{}: hashes only", units::grouped(manifest.withheld))));
    }
    if !manifest.outputs.is_empty() {
        let bytes = units::bytes(manifest.outputs.iter().map(|file| file.bytes).sum());
        rows.push((
            "OUTPUTS",
            format!("{} in plain, {bytes}", units::grouped(manifest.outputs.len() as u64)),
        ));
    }
    rows.push(("STREAMS", units::grouped(manifest.streams.len() as u64)));
    rows.push(("HEAD", units::grouped(manifest.position.get())));
    rows.push(("CHAIN", hex(&manifest.chain)));
    rows
}

/// The table of a new export.
pub(crate) fn made(screen: Screen, folder: &Path, made: &Made) -> String {
    let manifest = &made.manifest;
    let mut rows = vec![("EXPORT", folder.display().to_string())];
    if made.resumed_after.get() > 0 {
        rows.push(("RESUMED", format!("after position {}", units::grouped(made.resumed_after.get()))));
    }
    rows.extend(facts(manifest));
    rows.push(("SIZE", units::bytes(manifest.files.iter().map(|file| file.bytes).sum())));
    rows.push(("SIGNED BY", manifest.public_key.to_string()));
    named(screen, &rows)
}

/// The table of an export that is what was written.
pub(crate) fn verified(screen: Screen, verified: &VerifiedExport) -> String {
    let manifest = &verified.report.manifest;
    let mut rows = vec![("EXPORT", format!("whole, made {} by {}", manifest.made_at, manifest.made_by))];
    rows.extend(facts(manifest));
    rows.push(("SIGNED BY", manifest.public_key.to_string()));
    let took = u64::try_from(verified.took.as_millis()).unwrap_or(u64::MAX);
    rows.push(("TIME", units::duration(took)));
    rows.extend(proves(manifest).into_iter().map(|sentence| ("PROVEN", sentence)));
    rows.extend(verified.not_proven().into_iter().map(|sentence| ("NOT PROVEN", sentence)));
    named(screen, &rows)
}

#[cfg(test)]
mod tests {
    use eventlog::{Damage, DamageKind, Position, Seq, StreamId, backup::FileEntry, export::StreamEntry};
    use jiff::Timestamp;

    use super::*;

    fn manifest(filter: Filter) -> Manifest {
        let (withheld, erased) = if filter.is_empty() { (0, 3) } else { (1_204, 0) };
        Manifest {
            format: 1,
            log_format: 2,
            made_at: Timestamp::UNIX_EPOCH,
            made_by: "remit 0.1.0".to_owned(),
            filter,
            position: Position::new(1_240),
            chain: [0xab; 32],
            events: 1_240 - withheld,
            erased,
            withheld,
            streams: vec![StreamEntry {
                stream: StreamId::Registry,
                events: 1,
                erased: 0,
                first_seq: Seq::new(1),
                last_seq: Seq::new(1),
                hash: [1; 32],
            }],
            files: vec![FileEntry { name: "events.jsonl".into(), bytes: 1_300_000, blake3: [0; 32] }],
            blobs: Vec::new(),
            outputs: Vec::new(),
            public_key: "5c".repeat(32).parse().unwrap(),
        }
    }

    fn filter() -> Filter {
        Filter {
            thread_id: Some("notes".parse().unwrap()),
            from: Some(Timestamp::UNIX_EPOCH),
            event_types: Some(vec!["run.start".into(), "run.end".into()]),
            ..Filter::default()
        }
    }

    fn sample(filter: Filter, damage: Option<ExportDamage>) -> VerifiedExport {
        let manifest = manifest(filter);
        let (events, position) = (manifest.events, manifest.position);
        let report = ExportReport { manifest, events, position, damage };
        let is_key_known = report.manifest.is_whole();
        VerifiedExport { report, is_key_known, took: Duration::from_millis(2_500) }
    }

    #[test]
    fn an_export_is_described() {
        let screen = Screen::plain(Some(100));
        let whole = Made { manifest: manifest(Filter::default()), resumed_after: Position::new(512) };
        let filtered = Made { manifest: manifest(filter()), resumed_after: Position::ZERO };
        insta::assert_snapshot!("a_whole_export", made(screen, Path::new("audit"), &whole));
        insta::assert_snapshot!("a_filtered_export", made(screen, Path::new("audit"), &filtered));
    }

    #[test]
    fn what_is_proven_and_what_is_not_is_said() {
        let screen = Screen::plain(Some(100));
        insta::assert_snapshot!("a_proven_whole_export", verified(screen, &sample(Filter::default(), None)));
        insta::assert_snapshot!("a_proven_filtered_export", verified(screen, &sample(filter(), None)));
    }

    #[test]
    fn a_program_gets_the_first_bad_position_or_file() {
        let event = Damage { position: Position::new(17), kind: DamageKind::HashDiffers };
        insta::assert_json_snapshot!("a_damaged_export", sample(filter(), Some(event.into())).record());
        let file = ExportDamage::File { name: "keys".into() };
        insta::assert_json_snapshot!(
            "an_export_with_a_changed_file",
            sample(Filter::default(), Some(file)).record()
        );
        insta::assert_json_snapshot!("an_export_in_json", sample(filter(), None).record());
    }
}
