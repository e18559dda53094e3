//! The adapter against a scripted server on this machine's loopback.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use domain::message::{Message, ToolArgs};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Notify,
};

use super::*;
use crate::models::{AgentTag, Provider, anthropic::Anthropic, gemini::Gemini, no_deltas, openai::OpenAi};

const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n\
    data: [DONE]\n\n";

/// What the server does with a connection once it has read the request.
#[derive(Clone)]
enum Then {
    Close,
    KeepOpen,
}

struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    closed_by_client: Arc<Notify>,
}

/// Answers every request with the same bytes.
async fn server(answer: Vec<u8>, then: Then) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server {
        url: format!("http://{}/v1/", listener.local_addr().unwrap()),
        requests: Arc::default(),
        connections: Arc::default(),
        closed_by_client: Arc::default(),
    };
    let (requests, connections) = (Arc::clone(&server.requests), Arc::clone(&server.connections));
    let closed = Arc::clone(&server.closed_by_client);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            let request = read_request(&mut stream).await;
            requests.lock().unwrap().push(request);
            let _ = stream.write_all(&answer).await;
            match then {
                Then::Close => drop(stream),
                Then::KeepOpen => {
                    let closed = Arc::clone(&closed);
                    tokio::spawn(async move {
                        let _ = stream.read(&mut [0]).await;
                        closed.notify_one();
                    });
                }
            }
        }
    });
    server
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let mut buffer = [0; 4_096];
        match stream.read(&mut buffer).await.unwrap() {
            0 => return text,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn http(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// A success that ends when the connection does.
fn open_ended(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}").into_bytes()
}

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(80);
const PATIENT: TimeLimits = TimeLimits { request: LONG, connect: LONG, first_byte: LONG, chunk: LONG };

fn model(url: &str, limits: TimeLimits) -> HttpModel {
    model_of(&OpenAi, url, limits)
}

fn model_of(dialect: &'static dyn Dialect, url: &str, limits: TimeLimits) -> HttpModel {
    let settings = ModelSettings {
        base_url: Some(url.to_owned()),
        model: Some("qwen".into()),
        extra_body: json!({"thinking": {"type": "enabled"}}).as_object().unwrap().clone(),
        ..ModelSettings::new("local", Provider::Openai)
    };
    let secrets = Secrets {
        key: Some(Secret::new("sk-hidden")),
        headers: vec![("X-Team".into(), Secret::new("the-header-secret"))],
    };
    HttpModel::with_limits(dialect, &settings, secrets, limits).unwrap()
}

#[test]
fn an_object_is_laid_over_another_key_by_key() {
    let mut body = json!({"a": {"b": 1, "c": [1]}, "d": 2});
    lay_over(&mut body, json!({"a": {"c": [2], "e": {}}, "d": {"f": 1}, "g": null}).as_object().unwrap());
    assert_eq!(body, json!({"a": {"b": 1, "c": [2], "e": {}}, "d": {"f": 1}, "g": null}));
}

async fn ask(model: &HttpModel) -> Result<AssistantMessage, ModelError> {
    let request =
        ModelRequest { messages: vec![Message::human("hello")], tools: [].into(), agent: AgentTag::Lead };
    model.call(&request, &no_deltas).await
}

#[tokio::test]
async fn a_call_sends_one_request_and_reads_the_stream() {
    let server = server(open_ended(STREAM), Then::Close).await;
    let reply = ask(&model(&server.url, PATIENT)).await.unwrap();
    assert_eq!((reply.content.as_str(), reply.usage.unwrap().total_tokens), ("Hi", 4));
    let requests = server.requests.lock().unwrap().clone();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer sk-hidden"), "{request}");
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        body,
        json!({"model": "qwen", "messages": [{"role": "user", "content": "hello"}],
            "stream": true, "stream_options": {"include_usage": true}, "thinking": {"type": "enabled"}})
    );
}

#[tokio::test]
async fn an_answer_that_ends_without_done_and_stays_open_is_not_waited_for_long() {
    let body = STREAM.replace("data: [DONE]\n\n", "");
    let server = server(open_ended(&body), Then::KeepOpen).await;
    let limits = TimeLimits { chunk: SHORT, ..PATIENT };
    assert_eq!(ask(&model(&server.url, limits)).await.unwrap().content, "Hi");
}

#[track_caller]
fn assert_shows(error: &ModelError, port_of: &str, what: &str) {
    let expected = format!("calling model local (qwen at {port_of}chat/completions): {what}");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn refusals_are_sorted_by_words_and_status() {
    for (status, headers, body, kind, wait_ms, what) in [
        (
            "400 Bad Request",
            "",
            r#"{"error":{"message":"bad model"}}"#,
            ModelErrorKind::Generic,
            None,
            "the provider answered 400: bad model",
        ),
        (
            "401 Unauthorized",
            "",
            r#"{"error":{"message":"Incorrect API key provided: sk-hidden. the-header-secret","code":"invalid_api_key"}}"#,
            ModelErrorKind::Auth,
            None,
            "the provider answered 401: Incorrect API key provided: [secret]. [secret] (code invalid_api_key)",
        ),
        (
            "429 Too Many Requests",
            "retry-after: 2\r\n",
            r#"{"error":{"message":"slow down"}}"#,
            ModelErrorKind::Transient,
            Some(2_000),
            "the provider answered 429: slow down",
        ),
        (
            "429 Too Many Requests",
            "",
            r#"{"error":{"message":"no credit left"}}"#,
            ModelErrorKind::Quota,
            None,
            "the provider answered 429: no credit left",
        ),
        (
            "500 Oops",
            "retry-after-ms: 250\r\n",
            "",
            ModelErrorKind::Transient,
            Some(250),
            "the provider answered 500",
        ),
    ] {
        let server = server(http(status, headers, body), Then::Close).await;
        let error = ask(&model(&server.url, PATIENT)).await.unwrap_err();
        assert_shows(&error, &server.url, what);
        assert_eq!((error.kind, error.retry_after.map(|wait| wait.as_millis())), (kind, wait_ms));
        assert_eq!(error.status, status.split(' ').next().and_then(|status| status.parse().ok()));
    }
}

const ANTHROPIC_STREAM: &str = "event: message_start\n\
    data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n\
    event: ping\ndata: {\"type\":\"ping\"}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";
const GEMINI_STREAM: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}]}\n\n\
    data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n\
    data: {\"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":1}}\n\n";

/// Every provider, with a good answer of its.
const PROVIDERS: [(&dyn Dialect, &str); 3] =
    [(&OpenAi, STREAM), (&Anthropic, ANTHROPIC_STREAM), (&Gemini, GEMINI_STREAM)];

#[tokio::test]
async fn every_provider_is_asked_where_and_as_it_wants() {
    for ((dialect, stream), (path, header)) in PROVIDERS.into_iter().zip([
        ("/v1/chat/completions", "authorization: Bearer sk-hidden\r\n"),
        ("/v1/messages", "x-api-key: sk-hidden\r\n"),
        ("/v1/models/qwen:streamGenerateContent?alt=sse", "x-goog-api-key: sk-hidden\r\n"),
    ]) {
        // What follows the reply is its usage, and nobody waits long for the end of the connection.
        let server = server(open_ended(stream), Then::Close).await;
        let reply = ask(&model_of(dialect, &server.url, PATIENT)).await.unwrap();
        assert_eq!((reply.content.as_str(), reply.usage.unwrap().total_tokens), ("Hi", 4), "{path}");
        let requests = server.requests.lock().unwrap().clone();
        let [request] = requests.as_slice() else { panic!("{requests:?}") };
        assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
        assert!(request.contains(header), "{request}");
        assert!(request.contains("x-team: the-header-secret\r\n"), "{request}");
        assert_eq!(request.contains("anthropic-version: 2023-06-01\r\n"), path == "/v1/messages");
    }
}

#[tokio::test]
async fn every_provider_may_leave_the_connection_open_behind_its_reply() {
    for (dialect, stream) in PROVIDERS {
        let server = server(open_ended(stream), Then::KeepOpen).await;
        let limits = TimeLimits { chunk: SHORT, ..PATIENT };
        assert_eq!(ask(&model_of(dialect, &server.url, limits)).await.unwrap().content, "Hi");
    }
}

// The list of adapters' tests: a connection that drops, in the head, in an event and between events.
#[tokio::test]
async fn a_connection_that_breaks_before_the_end_is_a_passing_error_with_every_provider() {
    for (dialect, stream) in PROVIDERS {
        for end in [0, 1, stream.len() / 3] {
            let mut answer = http("200 OK", "content-type: text/event-stream\r\n", stream);
            answer.truncate(answer.len() - stream.len() + end);
            let server = server(answer, Then::Close).await;
            let error = ask(&model_of(dialect, &server.url, PATIENT)).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Transient, "{end} {error}");
        }
    }
}

// The list of adapters' tests: Retry-After as seconds and as a date, and Google's in the body.
#[tokio::test]
async fn every_provider_says_when_to_come_again() {
    let date = httpdate::fmt_http_date(std::time::SystemTime::now() + Duration::from_secs(90));
    let anthropic = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let google = r#"{"error":{"code":429,"message":"You exceeded your current quota","details":[{"retryDelay":"7s"}]}}"#;
    for (dialect, _) in PROVIDERS {
        for (status, header, body, kind, seconds) in [
            ("429 No", "retry-after: 2\r\n".to_owned(), anthropic, ModelErrorKind::Transient, 2..=2),
            ("429 No", format!("retry-after: {date}\r\n"), anthropic, ModelErrorKind::Transient, 60..=90),
            ("529 No", "retry-after: 3\r\n".to_owned(), overloaded, ModelErrorKind::Busy, 3..=3),
            ("429 No", String::new(), google, ModelErrorKind::Transient, 7..=7),
        ] {
            let server = server(http(status, &header, body), Then::Close).await;
            let error = ask(&model_of(dialect, &server.url, PATIENT)).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(seconds.contains(&error.retry_after.unwrap().as_secs()), "{error} {header}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = server(open_ended(STREAM), Then::Close).await;
    let headers = format!("location: {}\r\n", elsewhere.url);
    let server = server(http("307 Elsewhere", &headers, ""), Then::Close).await;
    let error = ask(&model(&server.url, PATIENT)).await.unwrap_err();
    assert_shows(&error, &server.url, "the provider answered 307: redirects are not followed");
    assert_eq!(elsewhere.connections.load(Ordering::SeqCst), 0);
}

// The connection is cut at several bytes; the length in the header says that more was to come.
#[tokio::test]
async fn a_cut_connection_is_a_passing_error_until_the_reply_is_complete() {
    let complete_at = STREAM.find("data: {\"choices\":[],").unwrap();
    for end in [0, 1, 20, 60, complete_at - 2, complete_at, complete_at + 5, STREAM.len() - 3] {
        let mut answer = http("200 OK", "content-type: text/event-stream\r\n", STREAM);
        answer.truncate(answer.len() - STREAM.len() + end);
        let server = server(answer, Then::Close).await;
        match ask(&model(&server.url, PATIENT)).await {
            Ok(reply) => assert!(end >= complete_at && reply.content == "Hi", "{end}"),
            Err(error) => {
                assert!(end < complete_at, "{end} {error}");
                assert_eq!(error.kind, ModelErrorKind::Transient, "{end}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_cut_in_its_arguments_is_never_believed() {
    let body = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\
        \"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]}}]}\n\n";
    let cut = server(open_ended(body), Then::Close).await;
    let error = ask(&model(&cut.url, PATIENT)).await.unwrap_err();
    assert_shows(&error, &cut.url, "the stream ended before the reply did");
    let whole = server(open_ended(&format!("{body}data: [DONE]\n\n")), Then::Close).await;
    let reply = ask(&model(&whole.url, PATIENT)).await.unwrap();
    assert_eq!(reply.tool_calls[0].args, ToolArgs::parse("{}"));
}

#[tokio::test]
async fn every_wait_has_its_limit() {
    let silent = server(Vec::new(), Then::KeepOpen).await;
    let only_head = server(open_ended(""), Then::KeepOpen).await;
    let half = server(open_ended(&STREAM[..70]), Then::KeepOpen).await;
    let first_byte = TimeLimits { first_byte: SHORT, ..PATIENT };
    let chunk = TimeLimits { chunk: SHORT, ..PATIENT };
    let request = TimeLimits { request: SHORT, ..PATIENT };
    for (server, limits, kind, what) in [
        (&silent, first_byte, ModelErrorKind::Transient, "the first byte of the reply took longer than 80ms"),
        (
            &only_head,
            first_byte,
            ModelErrorKind::Transient,
            "the first byte of the reply took longer than 80ms",
        ),
        (&half, chunk, ModelErrorKind::StreamStalled, "the next piece of the reply took longer than 80ms"),
        (&half, request, ModelErrorKind::Transient, "the whole call took longer than 80ms"),
    ] {
        let error = ask(&model(&server.url, limits)).await.unwrap_err();
        assert_shows(&error, &server.url, what);
        assert_eq!(error.kind, kind);
    }
}

/// A server that nobody can reach: as many wait for it to take them as its system lets wait, so that
/// whoever comes now gets no answer at all.
async fn unreachable_server() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(SHORT, TcpStream::connect(address)).await {
        waiting.push(stream);
    }
    (listener, waiting)
}

#[tokio::test]
async fn connecting_has_its_limit() {
    let (listener, _waiting) = unreachable_server().await;
    let url = format!("http://{}", listener.local_addr().unwrap());
    let error = ask(&model(&url, TimeLimits { connect: SHORT, ..PATIENT })).await.unwrap_err();
    assert!(error.to_string().contains("connecting took too long"), "{error}");
    assert_eq!(error.kind, ModelErrorKind::Transient);
}

#[tokio::test]
async fn no_server_at_all_is_a_passing_error_without_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1?key=sk-in-query", listener.local_addr().unwrap());
    drop(listener);
    let error = ask(&model(&url, PATIENT)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Transient);
    assert!(error.to_string().ends_with("could not connect while sending the request"), "{error}");
    assert!(!format!("{error:?}").contains("sk-"), "{error:?}");
}

// Field report 16, on our side: a dropped call closes its connection.
#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let server = server(open_ended(&STREAM[..70]), Then::KeepOpen).await;
    let model = model(&server.url, PATIENT);
    tokio::select! {
        outcome = ask(&model) => panic!("{outcome:?}"),
        () = async {
            while server.requests.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    tokio::time::timeout(LONG, server.closed_by_client.notified()).await.unwrap();
}
