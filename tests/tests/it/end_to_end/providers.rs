//! The same work over each provider's own wire format, strict about requests and careless in replies.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{of_type, only, text},
    server::{Setup, TestServer},
    stub_model::{
        Answer, Asked, Call, Cut, Face, Finish, Fragments, IdSent, IndexSent, Reply, Seat, Strictness,
        StubModel, UsageSent,
    },
};

const STRICT: Strictness = Strictness { needs_reasoning: true };

/// A lead with two children at once, who each look before they report. Everybody thinks.
fn delegating(asked: &Asked) -> Answer {
    let thought = format!("thought {} größe 😀", asked.number);
    let reply = match (asked.seat, asked.turn) {
        (Seat::Lead, 0) => Reply::calls(
            ["one", "two"].map(|about| Call::task("general-purpose", &format!("look into {about}"))),
        )
        .and_says("Two at once."),
        (Seat::Lead, _) => {
            let reports: Vec<_> = asked.results().into_iter().map(|(_, report)| report).collect();
            Reply::says(reports.join("|"))
        }
        (_, 0) => Reply::calls([
            Call::new("ls", json!({})),
            Call::new("ls", json!({"path": "/mnt/user-data/workspace"})),
        ]),
        (_, _) => Reply::says(format!("report: {}", asked.task.contains("one"))),
    };
    reply.reasoning(thought).into()
}

// Issue: lead, parallel children, tools, thinking that must come back, usage. Field reports 87, 88, 90.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_and_its_children_work_over_every_provider() {
    for face in Face::ALL {
        let stub = StubModel::start_with(STRICT, delegating).await;
        let server = TestServer::start(Setup::with_face(&stub, face)).await;
        let (thread_id, run) = server.client.run_to_end("look into both").await;
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        stub.assert_strict();
        assert_eq!(text(&run, "status"), "success", "{face:?}: {run}");
        for report in ["report: true", "report: false"] {
            assert!(text(&run, "result").contains(report), "{face:?}: {run}");
        }
        let ends = of_type(&events, "subagent.end");
        assert_eq!(ends.len(), 2, "{face:?}");
        // Two turns of each of three agents, at 100 tokens in and 10 out.
        assert_eq!(stub.count(), 6, "{face:?}");
        let usage = server.client.get("/api/usage?group_by=caller").await.ok();
        assert_eq!(usage["total"]["usage"]["total_tokens"], 660, "{face:?}: {usage}");
        assert_eq!(usage["total"]["at_least"], false, "{face:?}: {usage}");
        assert!(stub.requests().iter().all(|asked| asked.face == face));
    }
}

// Field report 90: also in the next run, and after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thinking_comes_back_after_a_restart_on_every_provider() {
    for face in Face::ALL {
        let script = |asked: &Asked| match asked.turn {
            0 => Reply::calls([Call::new("ls", json!({}))]).reasoning("let me look").into(),
            _ => Reply::says("done").reasoning("that was it").into(),
        };
        let stub = StubModel::start_with(STRICT, script).await;
        let folder = tempfile::tempdir().unwrap();
        let setup = || Setup::with_face(&stub, face).in_folder(folder.path());
        let server = TestServer::start(setup()).await;
        let (thread_id, run) = server.client.run_to_end("look").await;
        assert_eq!(text(&run, "status"), "success", "{face:?}: {run}");
        server.stop().await;
        let server = TestServer::start(setup()).await;
        let second = server.client.start_run(&thread_id, "again").await;
        assert_eq!(text(&server.client.ended(&thread_id, &second).await, "status"), "success", "{face:?}");
        stub.assert_strict();
        let last = stub.requests().pop().unwrap();
        let thoughts: Vec<_> =
            last.messages().iter().filter_map(|message| message["reasoning_content"].as_str()).collect();
        assert_eq!(thoughts, ["let me look", "that was it", "let me look"], "{face:?}");
        server.stop().await;
    }
}

// Field report 90: what one provider signed is never shown to another, and its calls are understood.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_goes_from_provider_to_provider() {
    let script = |asked: &Asked| match asked.turn {
        0 => Reply::calls([Call::new("ls", json!({})).id("call_1"), Call::new("ls", json!({})).id("x.y:0")])
            .reasoning("secret of the provider")
            .into(),
        _ => Reply::says("done").reasoning("another secret").into(),
    };
    let stub = StubModel::start(script).await;
    let names = ["chat", "messages", "generate"];
    let settings: Vec<_> =
        Face::ALL.iter().zip(names).map(|(face, name)| stub.settings_as(*face, name)).collect();
    let models = runtime::models::Models::from_settings(&settings, None, &|_| None).unwrap();
    let server = TestServer::start(Setup { models, ..Setup::with_stub(&stub) }).await;
    let thread_id = server.client.create_thread().await;
    for name in names.iter().chain(&names) {
        let body = tests::client::run_body("look", json!({"model_name": name}));
        let run = server.client.post(&format!("/api/threads/{thread_id}/runs"), &body).await.ok();
        let run = server.client.ended(&thread_id, text(&run, "run_id")).await;
        assert_eq!(text(&run, "status"), "success", "{name}: {run}");
    }
    stub.assert_strict();
    let requests = stub.requests();
    // The last request of the second round: one model saw its own thoughts of both rounds, and no other.
    for (face, last) in Face::ALL.iter().zip([&requests[7], &requests[9], &requests[11]]) {
        assert_eq!(last.face, *face);
        let thoughts = last.messages().iter().filter(|message| !message["reasoning_content"].is_null());
        assert_eq!(thoughts.count(), 3, "{face:?}: {}", last.sent);
    }
}

/// One first answer, and what is to come of it.
struct Case {
    answer: Answer,
    status: &'static str,
    /// The reason in `llm.retry` or `llm.error`; empty when there is neither.
    reason: &'static str,
    /// The wait that the provider asks for.
    wait: Option<Duration>,
}

fn failures(face: Face) -> Vec<Case> {
    let case = |answer, status, reason| Case { answer, status, reason, wait: None };
    let event = |data: Value| match face {
        Face::Anthropic => format!("event: error\ndata: {data}\n\n").into_bytes(),
        Face::Openai | Face::Gemini => format!("data: {data}\n\n").into_bytes(),
    };
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let unavailable = json!({"error": {"code": 503, "message": "try later", "status": "UNAVAILABLE"}});
    let reply =
        || Reply::calls([Call::new("ls", json!({"path": "/mnt/user-data/workspace"}))]).and_says("I look.");
    let length = Answer::from(reply()).body_as(face, 1).len();
    vec![
        case(Answer::raw(200, event(overloaded.clone())), "success", "busy"),
        case(Answer::raw(200, event(unavailable)), "success", "transient"),
        case(Answer::raw(529, overloaded.to_string().into_bytes()), "success", "busy"),
        Case {
            wait: Some(Duration::from_secs(2)),
            ..case(Answer::refusal(429, "slow down").header("retry-after", "2"), "success", "transient")
        },
        case(Answer::refusal(401, "no"), "error", "auth"),
        case(Answer::refusal(403, "no"), "error", "auth"),
        case(Answer::refusal(400, "the request is malformed"), "error", "generic"),
        case(Answer::raw(200, b"<html>a captive portal</html>".to_vec()), "error", "generic"),
        case(reply().cut(Cut::Break(length / 2)), "success", "transient"),
        case(reply().cut(Cut::Close(length / 2)), "success", "transient"),
        case(reply().cut(Cut::Break(length / 4)), "success", "transient"),
        case(Answer::from(reply()).in_pieces_of(3), "success", ""),
        case(reply().whole(), "success", ""),
    ]
}

// The list of adapters' tests: an error in a 200 stream, a dropped connection in the middle of a call,
// Retry-After, and no half reply is ever done. Field report 30.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_told_and_tried_again_on_every_provider() {
    for face in Face::ALL {
        for (at, case) in failures(face).into_iter().enumerate() {
            let first = case.answer.clone();
            let script = move |asked: &Asked| match (asked.number, asked.turn) {
                (1, _) => first.clone(),
                (_, 0) => Reply::calls([Call::new("ls", json!({}))]).into(),
                _ => Reply::says("done").into(),
            };
            let stub = StubModel::start(script).await;
            let server = TestServer::start(Setup::with_face(&stub, face)).await;
            let (thread_id, run) = server.client.run_to_end("look").await;
            let events = server.client.thread_events(&thread_id).await;
            assert_whole(&events);
            stub.assert_strict();
            let what = format!("{face:?} {at}");
            assert_eq!(text(&run, "status"), case.status, "{what}: {run}");
            let told = [of_type(&events, "llm.retry"), of_type(&events, "llm.error")].concat();
            let reasons: Vec<_> = told.iter().map(|event| text(&event["content"], "reason")).collect();
            let expected: Vec<_> = [case.reason].into_iter().filter(|reason| !reason.is_empty()).collect();
            assert_eq!(reasons, expected, "{what}");
            assert!(case.wait.is_none_or(|wait| server.pauses.waits().contains(&wait)), "{what}");
            let results = of_type(&events, "llm.tool.result").len();
            assert_eq!(results, usize::from(case.status == "success"), "{what}: one call ran once");
        }
    }
}

// Field reports 79, 81, 83 and 85 on every provider that has fragments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn careless_replies_are_understood_on_every_provider() {
    let path = |at: usize| json!({"path": format!("/mnt/user-data/größe 😀 {at}")});
    for face in Face::ALL {
        let calls = || Reply::calls([Call::new("ls", path(0)), Call::new("ls", path(1))]);
        let cut = |piece_bytes, index, id| Fragments {
            piece_bytes,
            inside_characters: piece_bytes == 3,
            index,
            id,
            ..Fragments::default()
        };
        let mut replies = vec![
            calls().fragments(cut(3, IndexSent::Place, IdSent::First)),
            calls().fragments(cut(5, IndexSent::Zero, IdSent::First)),
            calls().fragments(cut(5, IndexSent::Missing, IdSent::Missing)),
            calls().finish(Finish::Said("stop")),
            calls().finish(Finish::Said("length")),
            calls().usage(UsageSent::WithFinish(1, 1)),
        ];
        // Without a reason to stop Messages need their own end, and Generate Content has no other.
        if face != Face::Gemini {
            replies.push(calls().finish(Finish::Null));
            replies.push(calls().finish(Finish::Absent));
        }
        if face != Face::Openai {
            replies.push(calls().without_done());
        }
        let count = replies.len();
        let script = move |asked: &Asked| match asked.turn {
            0 => replies[(asked.number - 1) / 2].clone().into(),
            _ => Reply::says("done").into(),
        };
        let stub = StubModel::start(script).await;
        let server = TestServer::start(Setup::with_face(&stub, face)).await;
        for at in 0..count {
            let (thread_id, run) = server.client.run_to_end("look").await;
            assert_eq!(text(&run, "status"), "success", "{face:?} {at}: {run}");
            let events = server.client.thread_events(&thread_id).await;
            assert_whole(&events);
            let reply = &of_type(&events, "llm.ai.response")[0]["content"];
            let args: Vec<_> =
                reply["tool_calls"].as_array().unwrap().iter().map(|call| call["args"].clone()).collect();
            assert_eq!(args, [path(0), path(1)], "{face:?} {at}");
        }
        stub.assert_strict();
    }
}

// Field report 85 and the promise that unfinished JSON never runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_calls_get_an_error_and_spoil_nothing_on_every_provider() {
    for face in Face::ALL {
        let script = |asked: &Asked| match asked.turn {
            0 => Reply::calls([
                Call::new("ls", json!({"path": "/mnt/user-data/workspace"})),
                Call::new("", json!({})),
                Call::raw("write_file", "{\"path\": \"/mnt/user-data/workspace/half"),
            ])
            .finish(Finish::Said("length"))
            .into(),
            _ => Reply::says("done").into(),
        };
        let stub = StubModel::start(script).await;
        let server = TestServer::start(Setup::with_face(&stub, face)).await;
        let (thread_id, run) = server.client.run_to_end("look").await;
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        stub.assert_strict();
        assert_eq!(text(&run, "status"), "success", "{face:?}: {run}");
        let states: Vec<_> = of_type(&events, "llm.tool.result")
            .iter()
            .map(|event| event["content"]["status"].as_str().unwrap_or("success").to_owned())
            .collect();
        assert_eq!(states, ["success", "error", "error"], "{face:?}");
        assert_eq!(of_type(&events, "tool.started").len(), 0, "{face:?}: nothing was written");
    }
}

// Field report 87, on every provider: unknown stays unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_that_is_not_reported_stays_unknown_on_every_provider() {
    for face in Face::ALL {
        for usage in [UsageSent::Absent, UsageSent::Null] {
            let stub = StubModel::start(move |_: &Asked| Reply::says("done").usage(usage).into()).await;
            let server = TestServer::start(Setup::with_face(&stub, face)).await;
            let (thread_id, run) = server.client.run_to_end("look").await;
            assert_eq!(text(&run, "status"), "success", "{face:?}: {run}");
            let events = server.client.thread_events(&thread_id).await;
            let reply = &only(&events, "llm.ai.response")["content"];
            assert_eq!(reply.get("usage_metadata"), None, "{face:?} {usage:?}: {reply}");
            let total = server.client.get("/api/usage").await.ok()["total"].clone();
            assert_eq!((&total["at_least"], &total["calls"]), (&json!(true), &json!(1)), "{face:?}: {total}");
        }
    }
}

// The list of adapters' tests: refusals, content filters. A safety stop is never a success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_safety_stop_is_a_failure_on_every_provider() {
    for face in Face::ALL {
        let script = |_: &Asked| Reply::says("half of it").finish(Finish::Said("content_filter")).into();
        let stub = StubModel::start(script).await;
        let server = TestServer::start(Setup::with_face(&stub, face)).await;
        let (_, run) = server.client.run_to_end("look").await;
        assert_eq!(text(&run, "status"), "error", "{face:?}: {run}");
        assert!(text(&run, "error").contains("for safety"), "{face:?}: {run}");
        assert!(text(&run, "error").contains("half of it"), "{face:?}: {run}");
    }
}
