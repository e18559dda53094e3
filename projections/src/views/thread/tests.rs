use domain::event::{ForeignEvent, Scope, ThreadCreated};
use serde_json::json;

use super::*;

fn at(seq: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap()
}

fn logged(seq: u64, owner: &str, event: Event) -> Logged {
    Logged {
        position: seq,
        seq,
        thread_id: ThreadId::new("t").unwrap(),
        owner: UserId::new(owner).unwrap(),
        scope: Scope::default(),
        recorded_at: at(seq),
        labels: None,
        event,
    }
}

fn created(name: &str) -> Event {
    let metadata = Map::from_iter([("name".to_owned(), json!(name))]);
    Event::Thread(ThreadEvent::Created(ThreadCreated { metadata, workspace: Some(format!("/{name}")) }))
}

fn foreign() -> Event {
    Event::Foreign(ForeignEvent {
        event_type: "x".into(),
        category: "x".into(),
        content: json!(1),
        metadata: Map::new(),
    })
}

#[test]
fn the_first_event_makes_a_thread_and_every_one_moves_it() {
    let row = ThreadRow::fold(None, &logged(1, "ada", foreign()), None);
    assert_eq!((row.owner.as_str(), row.created_at, row.runs), ("ada", at(1), 0));
    assert_eq!((row.metadata.len(), &row.workspace), (0, &None));
    let row = ThreadRow::fold(Some(row), &logged(2, "bob", created("w")), None);
    assert_eq!((row.owner.as_str(), row.created_at, row.updated_at), ("ada", at(1), at(2)));
    assert_eq!((row.metadata.get("name"), row.workspace.as_deref()), (Some(&json!("w")), Some("/w")));
    let (first, second) = (RunId::new("r1").unwrap(), RunId::new("r2").unwrap());
    let row = ThreadRow::fold(Some(row), &logged(3, "ada", foreign()), Some(&first));
    let row = ThreadRow::fold(Some(row), &logged(4, "ada", foreign()), Some(&second));
    let row = ThreadRow::fold(Some(row), &logged(5, "ada", foreign()), None);
    assert_eq!((row.runs, row.last_run_id, row.last_seq), (2, Some(second), 5));
}
