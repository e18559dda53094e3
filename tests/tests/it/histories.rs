//! Recorded histories, replayed for ever: their hashes hold, their states are those that the log
//! gives for each moment, and what was recorded is what the agents ask for.

use std::{fs, path::PathBuf};

use domain::{
    event::{CompactionOutcome, Event, Logged, ModelEvent, RunEvent, SubagentEvent},
    message::Message,
    recheck::{Difference, Recheck, Rechecked},
};
use eventlog::{Append, EventLog, Expected, NewEvent, Options, RecordedEvent, Seq, chain, verify_stream};
use projections::{ThreadReplay, as_of};

/// A history with its name.
struct History {
    name: String,
    events: Vec<RecordedEvent>,
}

impl History {
    fn facts(&self) -> Vec<Logged> {
        self.events.iter().map(|event| eventlog::decode(event).unwrap()).collect()
    }
}

fn histories() -> Vec<History> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("histories");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "histories are never removed: {files:?}");
    let read = |path: PathBuf| History {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        events: fs::read_to_string(&path)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{path:?}: {error}")))
            .collect(),
    };
    files.into_iter().map(read).collect()
}

fn recheck<'a>(facts: impl IntoIterator<Item = &'a Logged>) -> Result<Rechecked, Box<Difference>> {
    let mut recheck = Recheck::default();
    for logged in facts {
        recheck.take(logged)?;
    }
    Ok(recheck.checked())
}

#[test]
fn the_records_of_every_history_still_have_their_hashes() {
    for history in histories() {
        verify_stream(chain::START, &history.events)
            .unwrap_or_else(|broken| panic!("{}: {broken}", history.name));
    }
}

#[test]
fn every_history_is_what_its_agents_ask_for() {
    for history in histories() {
        let facts = history.facts();
        let checked = recheck(&facts).unwrap_or_else(|difference| panic!("{}: {difference}", history.name));
        assert!(checked.runs >= 1 && checked.delegations >= 3 && checked.effects > 30, "{checked:?}");
        // A process that stopped anywhere left a history that holds as far as it goes.
        for end in (0..facts.len()).step_by(7) {
            recheck(&facts[..end]).unwrap();
        }
    }
}

/// Whether the event is an outcome without which the rest does not follow.
fn is_outcome(event: &Event) -> bool {
    if let Event::Subagent(SubagentEvent::Message(captured)) = event {
        return matches!(captured.message, Message::Assistant(_) | Message::Tool(_));
    }
    matches!(event, Event::Model(ModelEvent::AiResponse(_) | ModelEvent::ToolResult(_)))
}

#[test]
fn an_outcome_that_is_missing_is_noticed_by_what_follows_it() {
    for history in histories() {
        let facts = history.facts();
        let outcomes: Vec<usize> = (0..facts.len()).filter(|at| is_outcome(&facts[*at].event)).collect();
        assert!(outcomes.len() > 20);
        for at in outcomes {
            let left = facts[..at].iter().chain(&facts[at + 1..]);
            let difference = recheck(left).expect_err(&format!("{} without {}", history.name, facts[at].seq));
            assert!(difference.seq > facts[at].seq, "{difference}");
            assert_eq!(Some(&difference.run_id), facts[at].scope.run_id.as_ref());
        }
    }
}

#[test]
fn an_end_that_says_something_else_is_named() {
    for history in histories() {
        let facts = history.facts();
        for at in 0..facts.len() {
            let mut changed = facts.clone();
            let event = &mut changed[at].event;
            let who = if let Event::Run(RunEvent::Ended(end)) = event {
                end.result.insert_str(0, "Not ");
                "lead"
            } else if let Event::Subagent(SubagentEvent::Ended(end)) = event
                && end.result.is_some()
            {
                end.result = Some("Something else.".to_owned());
                "subagent"
            } else {
                continue;
            };
            let difference = recheck(&changed).unwrap_err();
            assert_eq!((difference.seq, difference.who), (facts[at].seq, who), "{difference}");
            assert!(difference.to_string().contains("the result"), "{difference}");
        }
    }
}

/// What a compaction leaves is decided by the agent, and so can be made again.
#[test]
fn a_compaction_that_keeps_something_else_is_named() {
    let mut changed_ones = 0;
    for history in histories() {
        let facts = history.facts();
        for at in 0..facts.len() {
            let mut changed = facts.clone();
            let event = &mut changed[at].event;
            let compaction = if let Event::Run(RunEvent::Compacted(compaction)) = event {
                compaction
            } else if let Event::Subagent(SubagentEvent::Compacted(compacted)) = event {
                &mut compacted.compaction
            } else {
                continue;
            };
            let CompactionOutcome::Compacted(done) = &mut compaction.outcome else { continue };
            done.kept += 1;
            let difference = recheck(&changed).unwrap_err();
            assert_eq!(difference.seq, facts[at].seq, "{difference}");
            assert!(difference.to_string().contains("a compaction of"), "{difference}");
            changed_ones += 1;
        }
    }
    assert!(changed_ones > 3, "{changed_ones}");
}

/// The states of a replay are those that the log gives for each moment.
#[tokio::test]
async fn every_state_is_what_it_was_at_that_moment() {
    for history in histories() {
        let log = EventLog::in_memory(Options { redactor: None, ..Options::default() });
        let stream = history.events[0].stream.clone();
        let thread_id = stream.thread_id().unwrap().clone();
        for event in &history.events {
            let event = NewEvent {
                event_id: event.event_id,
                event_type: event.event_type.clone(),
                schema_version: event.schema_version,
                category: event.category.clone(),
                scope: event.scope.clone(),
                owner: event.owner.clone(),
                causation_id: event.causation_id,
                correlation_id: event.correlation_id.clone(),
                created_at: event.created_at,
                content: event.content.clone(),
                metadata: event.metadata.clone(),
            };
            let append = Append {
                stream: stream.clone(),
                expected: Expected::Any,
                idempotency_key: None,
                events: vec![event],
            };
            log.append(append).await.unwrap();
        }
        let views = projections::Projections::in_memory(log.clone()).unwrap();
        views.catch_up().unwrap();
        let mut replay = ThreadReplay::default();
        for event in log.read_stream(&stream, Seq::ZERO, usize::MAX).unwrap() {
            replay.take(&eventlog::decode(&event).unwrap());
            if event.seq.get().is_multiple_of(5) {
                let runs = as_of::runs_as_of(&views, &thread_id, event.seq, None, usize::MAX).unwrap();
                assert_eq!(replay.runs(), runs.iter().collect::<Vec<_>>(), "{} {}", history.name, event.seq);
                let ledger = as_of::ledger_as_of(&views, &thread_id, None, event.seq).unwrap();
                assert_eq!(replay.delegations(), ledger.iter().collect::<Vec<_>>());
            }
        }
    }
}
