use std::sync::Arc;

use domain::ids::{DelegationId, RunId, ToolCallId};
use eventlog::Json;

use super::*;
use crate::testing;

#[tokio::test]
async fn the_record_has_the_frozen_names_and_exact_bodies() {
    let log = testing::log();
    let mut new = testing::event("x.y", r#"{"b": 9007199254740993, "a":1.0e+2}"#);
    new.metadata = Json::parse(r#"{"auth_token":"s3cret","n":18446744073709551617}"#).unwrap();
    new.scope.run_id = Some(RunId::new("r").unwrap());
    new.scope.task_id = Some(ToolCallId::new("call_1").unwrap());
    new.scope.delegation_id = Some("0198f000-0000-7000-8000-000000000001".parse::<DelegationId>().unwrap());
    let recorded: Arc<RecordedEvent> = testing::append(&log, "t", vec![new]).await.remove(0);

    let text = to_text(&recorded).unwrap();
    let expected = format!(
        concat!(
            r#"{{"thread_id":"t","run_id":"r","seq":1,"event_type":"x.y","category":"trace","#,
            r#""content":{{"b": 9007199254740993, "a":1.0e+2}},"metadata":{{"n":18446744073709551617}},"#,
            r#""created_at":"{created}","position":1,"event_id":"{id}","schema_version":1,"recorded_at":"{recorded}","#,
            r#""task_id":"call_1","delegation_id":"0198f000-0000-7000-8000-000000000001","user_id":"default","hash":"{hash}"}}"#
        ),
        created = recorded.created_at,
        id = recorded.event_id,
        recorded = recorded.recorded_at,
        hash = hex(&recorded.hash),
    );
    assert_eq!(text, expected);
    assert_eq!(hex(&recorded.hash).len(), 64);
    // Facts §12 line 111: what is stored keeps the token.
    assert!(recorded.metadata.get().contains("s3cret"));
}
