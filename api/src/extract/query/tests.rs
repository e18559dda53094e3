use axum::http::{Request, StatusCode};
use axum::response::IntoResponse as _;

use super::*;

async fn read<T: FromQuery>(query: &str) -> Result<T, String> {
    let (mut parts, ()) = Request::builder().uri(format!("/x?{query}")).body(()).unwrap().into_parts();
    match Query::<T>::from_request_parts(&mut parts, &()).await {
        Ok(Query(value)) => Ok(value),
        Err(refusal) => {
            let shown = format!("{refusal:?}");
            assert_eq!(refusal.into_response().status(), StatusCode::UNPROCESSABLE_ENTITY, "{query}");
            Err(shown)
        }
    }
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(answer: Result<T, String>, name: &str) {
    let refusal = answer.unwrap_err();
    assert!(refusal.contains(name), "{refusal} does not name {name}");
}

// Facts §8: the list is split without trimming, and an empty one is no filter.
#[tokio::test]
async fn events_are_asked_for_by_type_task_limit_and_cursor() {
    let default = EventsQuery {
        event_types: None,
        task_id: None,
        limit: 500,
        after: Seq::ZERO,
        moment: Moment::default(),
    };
    assert_eq!(read("").await, Ok(default.clone()));
    assert_eq!(read("event_types=").await, Ok(default.clone()));
    let types = |types: &[&str]| Some(types.iter().map(|one| (*one).to_owned()).collect());
    let list = EventsQuery { event_types: types(&["a", " b", ""]), ..default.clone() };
    assert_eq!(read("event_types=a,%20b,").await, Ok(list));
    let whole = EventsQuery {
        event_types: types(&["subagent.step"]),
        task_id: Some(ToolCallId::new("call 1").unwrap()),
        limit: 2_000,
        after: Seq::new(u64::MAX),
        moment: Moment::default(),
    };
    let query = "limit=2000&after_seq=18446744073709551615&task_id=call+1&event_types=subagent.step";
    assert_eq!(read(query).await, Ok(whole));
}

// Facts §12 line 108, for the events route.
#[tokio::test]
async fn numbers_out_of_range_are_refused_by_name() {
    for bad in ["0", "2001", "-1", "", "x", "%2B5", "1.0", "18446744073709551616"] {
        check_refused(read::<EventsQuery>(&format!("limit={bad}")).await, "limit");
    }
    for bad in ["0", "-1", "", "x", "18446744073709551616"] {
        check_refused(read::<EventsQuery>(&format!("after_seq={bad}")).await, "after_seq");
        check_refused(read::<Moment>(&format!("as_of={bad}")).await, "as_of");
        check_refused(read::<Moment>(&format!("min_seq={bad}")).await, "min_seq");
    }
    for bad in ["0", "201"] {
        check_refused(read::<PageQuery>(&format!("limit={bad}")).await, "limit");
    }
}

#[tokio::test]
async fn what_is_unknown_or_repeated_is_refused_by_name() {
    check_refused(read::<()>("x=1").await, "unknown query parameter");
    check_refused(read::<EventsQuery>("limits=1").await, "limits");
    check_refused(read::<EventsQuery>("limit=1&limit=2").await, "limit");
    check_refused(read::<EventsQuery>("before_seq=1").await, "before_seq");
    check_refused(read::<EventsQuery>("task_id=").await, "task_id");
    check_refused(read::<DelegationsQuery>("run_id=a/b").await, "run_id");
    check_refused(read::<CancelQuery>("action=rollback").await, "action");
    check_refused(read::<CancelQuery>("wait=maybe").await, "wait");
}

#[tokio::test]
async fn cancelling_may_wait() {
    for (query, wait) in [("", false), ("wait=true", true), ("wait=0&action=interrupt", false)] {
        assert_eq!(read(query).await, Ok(CancelQuery { wait }), "{query}");
    }
}

// The parser would put a replacement character in its place.
#[tokio::test]
async fn what_is_percent_encoded_must_be_text() {
    check_refused(read::<EventsQuery>("task_id=%ff").await, "task_id");
    check_refused(read::<EventsQuery>("limit=5&event_types=a%C3").await, "event_types");
    check_refused(read::<EventsQuery>("%ff=1").await, "query");
    let asked = read::<EventsQuery>("task_id=%C3%A4%25").await.unwrap();
    assert_eq!(asked.task_id, Some(ToolCallId::new("ä%").unwrap()));
}
