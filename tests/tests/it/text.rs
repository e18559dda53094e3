//! Text that other systems trip over, through every door: in over HTTP, out by pages, streams and the
//! command line, and back from disk. Nothing is lost, nothing is changed, and whatever comes out is
//! JSON that every reader takes.

use reqwest::Method;
use serde_json::{Value, json, value::RawValue};
use tests::{
    client::Client,
    process::{Remit, Served},
    sse::Frame,
};

/// Each is one text as JSON spells it, and what it must be read as.
fn texts() -> Vec<(String, String)> {
    let same = |text: &str| (serde_json::to_string(text).unwrap(), text.to_owned());
    let mut texts: Vec<_> = [
        // What Unicode, Python, JavaScript and terminals take for the end of a line.
        "a\nb",
        "a\rb",
        "a\r\nb",
        "a\u{b}b",
        "a\u{c}b",
        "a\u{1c}b",
        "a\u{1d}b",
        "a\u{1e}b",
        "a\u{85}b",
        "a\u{2028}b",
        "a\u{2029}b",
        // What ends a string, a field or a frame elsewhere.
        "a\u{0}b",
        "\u{0}",
        "data: x\n\nid: 7\n\n",
        "\u{1b}[31mred",
        "a\u{7f}b",
        "\u{feff}mark",
        "a\u{fffe}b",
        // Characters beyond the first plane, and characters of several.
        "\u{1F600}",
        "\u{10FFFF}",
        "e\u{301}",
        "\u{e9}",
        "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
        "Z\u{351}\u{36b}\u{343}",
        // Direction.
        "\u{202E}txt.exe",
        "\u{2066}a\u{2069}",
        "\u{200F}\u{200E}",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        // What JSON and HTML quote.
        "\"\\/</script>&'",
        "  spaces  ",
        "{}",
        "null",
    ]
    .into_iter()
    .map(same)
    .collect();
    // Escapes that stand for what is written otherwise above, and halves of pairs, which stand for
    // nothing and become U+FFFD.
    for (spelt, read) in [
        (r#""\u2028\u0085\u000b""#, "\u{2028}\u{85}\u{b}"),
        (r#""\ud83d\ude00""#, "\u{1F600}"),
        (r#""a\ud800b""#, "a\u{fffd}b"),
        (r#""\udc00\ud800""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1F600}"),
        (r#""\u0000""#, "\u{0}"),
    ] {
        texts.push((spelt.to_owned(), read.to_owned()));
    }
    texts
}

/// The text in the short fields too, where it fits, with the spelling that it was given.
fn event(spelt: &str, read: &str, number: usize) -> String {
    let type_or = |chars_max, other: &str| {
        if read.chars().count() <= chars_max { spelt.to_owned() } else { json!(other).to_string() }
    };
    format!(
        r#"{{"run_id":"r","event_type":{},"category":{},"task_id":{spelt},"content":{{"text":{spelt},{spelt}:[{spelt}]}},"metadata":{{{spelt}:{spelt}}},"idempotency_key":"{number}"}}"#,
        type_or(32, "long"),
        type_or(16, "long"),
    )
}

/// What an event must be read as.
#[track_caller]
fn check(event: &Value, read: &str) {
    let short = |chars_max| if read.chars().count() <= chars_max { read } else { "long" };
    assert_eq!(event["event_type"], short(32), "{read:?}");
    assert_eq!(event["category"], short(16), "{read:?}");
    assert_eq!(event["task_id"], read, "{read:?}");
    assert_eq!(event["metadata"], json!({read: read}), "{read:?}");
    let expected = if read == "text" { json!({"text": [read]}) } else { json!({"text": read, read: [read]}) };
    assert_eq!(event["content"], expected, "{read:?}");
}

#[track_caller]
fn check_all(events: &[Value], texts: &[(String, String)]) {
    assert_eq!(events.len(), texts.len());
    for (event, (_, read)) in events.iter().zip(texts) {
        check(event, read);
    }
}

async fn raw(client: &Client, path: &str) -> String {
    let response = client.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200);
    String::from_utf8(response.bytes().await.unwrap().to_vec()).unwrap()
}

/// The bytes of a stream's first frames, read by the letter of the standard: a line ends with CR, LF or
/// both, and an empty one ends a frame.
async fn frames(client: &Client, path: &str, count: usize) -> Vec<Value> {
    let mut response = client.request(Method::GET, path).send().await.unwrap();
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n");
        let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        let data: Vec<Value> = whole.split("\n\n").filter_map(data_of).collect();
        if data.len() >= count {
            return data;
        }
        bytes.extend_from_slice(
            &response.chunk().await.unwrap().unwrap_or_else(|| panic!("it ended: {text}")),
        );
    }
}

/// The record in a frame that has an id.
fn data_of(frame: &str) -> Option<Value> {
    let field = |name: &str| frame.split('\n').filter_map(|line| line.strip_prefix(name)).collect::<Vec<_>>();
    let (ids, data) = (field("id: "), field("data: "));
    if ids.is_empty() {
        return None;
    }
    assert_eq!((ids.len(), data.len()), (1, 1), "a text has broken out of its line: {frame:?}");
    Some(serde_json::from_str(data[0]).unwrap())
}

async fn start() -> (Remit, Served, Client) {
    let remit = super::remit();
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    (remit, served, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_survives_every_door() {
    let (remit, served, client) = start().await;
    let texts = texts();
    for (number, (spelt, read)) in texts.iter().enumerate() {
        let request = client.request(Method::POST, "/api/threads/t/events").body(event(spelt, read, number));
        let answered = client.send(request.header("content-type", "application/json")).await.ok();
        check(&answered, read);
    }
    check_all(&client.thread_events("t").await, &texts);
    check_all(&client.events("t", "r").await, &texts);
    check_all(client.get("/api/events?limit=500").await.ok().as_array().unwrap(), &texts);
    check_all(&frames(&client, "/api/threads/t/runs/r/stream", texts.len()).await, &texts);

    // Content keeps the bytes that it was given, but for halves of pairs.
    let page = raw(&client, "/api/threads/t/events?limit=500").await;
    let records: Vec<&RawValue> = serde_json::from_str(&page).unwrap();
    for (record, (spelt, _)) in records.iter().zip(&texts) {
        let is_half =
            spelt.contains(r"\ud800") || spelt.contains(r"\udc00") || spelt.contains(r"\ud83d\ud83d");
        assert!(is_half || record.get().contains(&format!("\"text\":{spelt},")), "{spelt}: {}", record.get());
        assert!(!record.get().contains(r"\ud800") && !record.get().contains(r"\udc00"), "{}", record.get());
    }

    // One event by its text.
    for (number, (_, read)) in texts.iter().enumerate().filter(|(_, (_, read))| read.chars().count() <= 32) {
        let mut url = reqwest::Url::parse(&format!("{}/api/threads/t/runs/r/events", client.base)).unwrap();
        url.query_pairs_mut().append_pair("task_id", read);
        let path = format!("{}?{}", url.path(), url.query().unwrap());
        let found = client.get(&path).await.ok();
        let seqs: Vec<_> =
            found.as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert!(seqs.contains(&(number as u64 + 1)), "{read:?}: {seqs:?}");
    }

    // The command line, of the server and of the folder itself after a restart.
    let words = ["events", "--thread", "t", "--json"];
    let there = remit.run(&[&words[..], &["--server", &served.url]].concat()).await.exited(0).json();
    check_all(there.as_array().unwrap(), &texts);
    assert_eq!(served.stop("-TERM").await, Some(0));
    let here = remit.run(&words).await.exited(0);
    check_all(here.json().as_array().unwrap(), &texts);
    // For people nothing is obeyed that a terminal would obey.
    let shown = remit.run(&["events", "--thread", "t"]).await.exited(0).stdout;
    let obeyed = |letter: char| {
        matches!(letter, '\u{1b}' | '\u{0}' | '\u{202E}' | '\u{2066}' | '\u{85}' | '\u{2028}' | '\r')
    };
    assert!(!shown.contains(obeyed), "{shown:?}");
    assert_eq!(remit.run(&["verify", "--json"]).await.exited(0).json()["whole"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_can_be_said_to_an_agent_and_kept_of_a_thread() {
    let (_remit, served, client) = start().await;
    for (number, (spelt, read)) in texts().into_iter().enumerate() {
        let thread = format!("t{number}");
        let body = format!(r#"{{"thread_id":"{thread}","metadata":{{"title":{spelt}}}}}"#);
        let request = client.request(Method::POST, "/api/threads").body(body);
        client.send(request.header("content-type", "application/json")).await.ok();
        let kept = client.get(&format!("/api/threads/{thread}")).await.ok();
        assert_eq!(kept["metadata"]["title"], read.as_str(), "{kept}");
        if read.trim().is_empty() {
            continue;
        }
        let body = format!(
            r#"{{"assistant_id":"lead","input":{{"messages":[{{"role":"user","content":{spelt}}}]}},"metadata":{{"note":{spelt}}}}}"#
        );
        let request = client.request(Method::POST, &format!("/api/threads/{thread}/runs")).body(body);
        let run = client.send(request.header("content-type", "application/json")).await.ok();
        let run_id = run["run_id"].as_str().unwrap();
        let ended = client.ended(&thread, run_id).await;
        assert_eq!(
            (&ended["status"], &ended["metadata"]["note"]),
            (&json!("success"), &json!(read)),
            "{read:?}"
        );
        let events = client.events(&thread, run_id).await;
        let said = events.iter().find(|event| event["event_type"] == "llm.human.input").unwrap();
        assert_eq!(said["content"]["content"], read.as_str(), "{said}");
        let frames = client.follow(&thread, run_id, None).await.rest().await;
        let of_frames: Vec<&Value> =
            frames.iter().filter(|frame: &&Frame| frame.id.is_some()).map(|frame| &frame.data).collect();
        assert_eq!(of_frames, events.iter().collect::<Vec<_>>(), "{read:?}");
    }
    served.crash().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_secret_in_a_query_or_a_header_is_never_logged() {
    let remit = super::remit().with("REMIT_LOG", "trace");
    let mut served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    for path in
        ["/api/threads?access_token=Zq7xQuery", "/api/events?token=Zq7xQuery", "/healthz?api_key=Zq7xQuery"]
    {
        let request = client.request(Method::GET, path).header("authorization", "Bearer Zq7xHeader");
        client.send(request).await;
    }
    let pid = served.child.id().unwrap().to_string();
    assert!(tokio::process::Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    let mut said = served.said.clone();
    while let Some(line) = served.lines.next_line().await.unwrap() {
        said.push(line);
    }
    assert!(said.iter().any(|line| line.contains("/api/events")), "requests are logged: {said:?}");
    let telling: Vec<_> = said.iter().filter(|line| line.contains("Zq7x")).collect();
    assert_eq!(telling, Vec::<&String>::new());
}
