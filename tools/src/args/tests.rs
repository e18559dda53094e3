use clap::{CommandFactory as _, error::ErrorKind};

use super::*;

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("remit").chain(line.split_whitespace()))
}

#[track_caller]
fn check_refused(line: &str, kind: ErrorKind) {
    match parse(line) {
        Ok(parsed) => panic!("{line:?} gave {parsed:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{line:?}: {error}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    for line in ["--json --data d ledger", "ledger --json --data d", "--json ledger --data d"] {
        let parsed = parse(line).unwrap();
        assert!(parsed.global.json && parsed.global.data == Some(PathBuf::from("d")), "{line}");
    }
}

#[test]
fn a_task_is_named_in_one_of_two_places() {
    for line in ["card call_1", "card --task-id call_1", "--json card call_1 --thread t --run r --as-of 3"] {
        let Command::Card(card) = parse(line).unwrap().command else { panic!("{line} is no card") };
        assert_eq!(card.task.name().map(ToolCallId::as_str), Some("call_1"), "{line}");
    }
    let Command::Receipts(receipts) = parse("receipts").unwrap().command else { panic!("no receipts") };
    assert_eq!(receipts.task.name(), None);
    check_refused("card", ErrorKind::MissingRequiredArgument);
    check_refused("card a --task-id b", ErrorKind::ArgumentConflict);
}

#[test]
fn event_types_are_a_list() {
    let line = "events --event-types run.end,subagent.end --after-seq 4 --limit 2";
    let Command::Events(events) = parse(line).unwrap().command else { panic!("no events") };
    assert_eq!(events.event_types, Some(vec!["run.end".to_owned(), "subagent.end".to_owned()]));
    assert_eq!((events.after_seq, events.limit), (4, Some(2)));
}

#[test]
fn usage_is_summed_up_by_a_list() {
    let Command::Usage(usage) = parse("usage").unwrap().command else { panic!("no usage") };
    assert_eq!(usage.by, ["model"]);
    let line = "usage --by day,caller --from 2026-11-01 --to 2026-11-30 --caller subagent";
    let Command::Usage(usage) = parse(line).unwrap().command else { panic!("no usage") };
    assert_eq!((usage.by.len(), usage.from.map(|day| day.to_string())), (2, Some("2026-11-01".into())));
    check_refused("usage --by moon", ErrorKind::InvalidValue);
    check_refused("usage --from yesterday", ErrorKind::ValueValidation);
    check_refused("caps --axis moon", ErrorKind::InvalidValue);
    check_refused("receipts --outcome good", ErrorKind::InvalidValue);
    check_refused("messages --as-of 0", ErrorKind::ValueValidation);
}

#[test]
fn what_makes_no_sense_is_refused() {
    check_refused("", ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    check_refused("dance", ErrorKind::InvalidSubcommand);
    check_refused("run", ErrorKind::MissingRequiredArgument);
    check_refused("ledger --thread ../x", ErrorKind::ValueValidation);
    check_refused("events --after-seq -1", ErrorKind::ValueValidation);
    check_refused("runs --limit -1", ErrorKind::ValueValidation);
    check_refused("ledger --as-of 0", ErrorKind::ValueValidation);
    check_refused("card c --as-of -3", ErrorKind::ValueValidation);
    check_refused("runs --thread t --as-of 0", ErrorKind::ValueValidation);
    check_refused("events --limit many", ErrorKind::ValueValidation);
    check_refused("serve --listen nowhere", ErrorKind::ValueValidation);
    check_refused("ledger --server http://x --data d", ErrorKind::ArgumentConflict);
    check_refused("runs --as-of 3", ErrorKind::MissingRequiredArgument);
}

#[test]
fn help_and_version_are_not_errors() {
    for (line, kind) in [
        ("--help", ErrorKind::DisplayHelp),
        ("card --help", ErrorKind::DisplayHelp),
        ("--version", ErrorKind::DisplayVersion),
    ] {
        let error = parse(line).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (kind, 0), "{line}");
    }
    assert_eq!(parse("").unwrap_err().exit_code(), 2);
}
