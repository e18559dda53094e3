use axum::{http::StatusCode, response::IntoResponse as _};
use contracts::wire::{run::CreateRun, thread::CreateThread};

use super::*;

fn request(content_type: Option<&str>, body: impl Into<Body>) -> Request {
    let mut request = Request::new(body.into());
    if let Some(content_type) = content_type {
        request.headers_mut().insert(header::CONTENT_TYPE, content_type.parse().unwrap());
    }
    request
}

async fn check_refused<T: DeserializeOwned>(request: Request, status: u16, words: &str) {
    let Err(refusal) = JsonBody::<T>::from_request(request, &()).await else { panic!("taken, not {status}") };
    let shown = format!("{refusal:?}");
    assert!(shown.contains(words), "{shown} does not say {words:?}");
    assert_eq!(refusal.into_response().status(), StatusCode::from_u16(status).unwrap());
}

#[tokio::test]
async fn json_by_any_of_its_names_is_taken() {
    for content_type in ["application/json", "application/json; charset=utf-8", "Application/vnd.x+JSON"] {
        let JsonBody(body) =
            JsonBody::<CreateThread>::from_request(request(Some(content_type), r#"{"thread_id": "t"}"#), &())
                .await
                .unwrap_or_else(|refusal| panic!("{content_type}: {refusal:?}"));
        assert_eq!(body.thread_id.as_deref(), Some("t"));
    }
}

#[tokio::test]
async fn other_types_and_sizes_are_refused() {
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("json"),
        Some("text/x+json"),
    ] {
        check_refused::<CreateThread>(request(content_type, "{}"), 415, "application/json").await;
    }
    let json = Some("application/json");
    let filled = |bytes: usize| format!(r#"{{"thread_id": "t"{}}}"#, " ".repeat(bytes - 18));
    let at_the_limit = request(json, filled(BODY_BYTES_MAX));
    assert!(JsonBody::<CreateThread>::from_request(at_the_limit, &()).await.is_ok());
    check_refused::<CreateThread>(request(json, filled(BODY_BYTES_MAX + 1)), 413, "2097152").await;
    let mut announced = request(json, "{}");
    announced.headers_mut().insert(header::CONTENT_LENGTH, "2097153".parse().unwrap());
    check_refused::<CreateThread>(announced, 413, "2097152").await;
}

#[tokio::test]
async fn what_is_not_json_is_refused_with_its_place() {
    let json = Some("application/json");
    for (body, place) in [
        ("", "line 1 column 0"),
        ("{\n  \"thread_id\": \"t\",\n}", "line 3 column 1"),
        ("{} {}", "line 1 column 4"),
        ("{\"metadata\": NaN}", "line 1"),
    ] {
        check_refused::<CreateThread>(request(json, body), 400, place).await;
    }
    let deep = format!("{{\"metadata\": {{\"a\": {}", "[".repeat(200));
    check_refused::<CreateThread>(request(json, deep), 400, "recursion limit").await;
}

#[tokio::test]
async fn a_field_that_is_unknown_or_of_the_wrong_shape_is_named() {
    let json = Some("application/json");
    for (body, words) in [
        (r#"{"thread": "t"}"#, "unknown field `thread`"),
        (r#"{"thread_id": 1}"#, "thread_id"),
        ("[]", "body"),
        ("null", "body"),
    ] {
        check_refused::<CreateThread>(request(json, body), 422, words).await;
    }
    for (body, words) in [
        (r#"{"recursion_limit": 1}"#, "recursion_limit"),
        (r#"{"config": {"tags": []}}"#, "tags"),
        (r#"{"config": {"configurable": {"max_total_subagents": "6"}}}"#, "config.configurable"),
        (r#"{"input": {"messages": [{"role": "user"}]}}"#, "input.messages[0]"),
        (r#"{"input": {"messages": [{"role": "user", "content": "x", "name": "y"}]}}"#, "name"),
        (r#"{"multitask_strategy": "queue"}"#, "multitask_strategy"),
    ] {
        check_refused::<CreateRun>(request(json, body), 422, words).await;
    }
}

#[tokio::test]
async fn an_optional_body_may_be_left_out_but_not_mistyped() {
    let OptionalJsonBody(body) = OptionalJsonBody::<CreateThread>::from_request(request(None, ""), &())
        .await
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    assert_eq!(body, CreateThread::default());
    let mistyped =
        OptionalJsonBody::<CreateThread>::from_request(request(Some("text/plain"), "{}"), &()).await;
    assert_eq!(mistyped.err().map(|refusal| refusal.into_response().status().as_u16()), Some(415));
}

#[tokio::test]
async fn what_is_no_object_is_not_taken_for_one() {
    let json = Some("application/json");
    for (body, words) in [
        (r#"["lead"]"#, "invalid body: invalid type: a list, expected a JSON object at line 1"),
        ("[5]", "invalid body: invalid type: a list, expected a JSON object"),
        ("5", "invalid body: invalid type: integer `5`, expected a JSON object"),
        (r#"{"input": [[{"role": "user", "content": "x"}]]}"#, "invalid input: invalid type: a list"),
        (r#"{"input": {"messages": [["user", "x"]]}}"#, "invalid input.messages[0]: invalid type: a list"),
        (
            r#"{"input": {"messages": {}}}"#,
            "invalid input.messages: invalid type: an object, expected a list",
        ),
        (r#"{"config": [{}]}"#, "invalid config: invalid type: a list, expected a JSON object"),
        (r#"{"config": {"configurable": []}}"#, "invalid config.configurable: invalid type: a list"),
        (r#"{"context": []}"#, "invalid context: invalid type: a list"),
        (r#"{"metadata": []}"#, "invalid metadata: invalid type: a list, expected a JSON object"),
        (r#"{"stream_mode": 5}"#, "invalid stream_mode: expected a mode or a list of modes"),
        (r#"{"config": {"configurable": {"max_total_subagents": 1.5}}}"#, "expected a whole number"),
        (r#"{"multitask_strategy": 5}"#, "invalid multitask_strategy: "),
        (r#"{"on_disconnect": []}"#, "invalid on_disconnect: "),
    ] {
        check_refused::<CreateRun>(request(json, body), 422, words).await;
        let refusal = JsonBody::<CreateRun>::from_request(request(json, body), &()).await.err().unwrap();
        let shown = format!("{refusal:?}");
        for ours in [
            "struct ",
            "enum ",
            "CreateRun",
            "RunInput",
            "StreamModes",
            "MultitaskStrategy",
            "OnDisconnect",
            "i64",
        ] {
            let detail = shown.split("detail: ").nth(1).unwrap();
            assert!(!detail.contains(ours), "{body} gives {shown}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_given_up() {
    let beginning = futures::stream::iter([Ok::<_, std::io::Error>("{")]);
    let body = Body::from_stream(futures::StreamExt::chain(beginning, futures::stream::pending()));
    check_refused::<CreateThread>(request(Some("application/json"), body), 400, "within 32 s").await;
}
