//! An output that is far too large for an event, from the shell to whoever asks for it.

use std::fs;

use domain::{digest::sha256_hex, limits::TOOL_OUTPUT_CHARS_MAX};
use serde_json::json;
use tests::{
    client::Client,
    record::{of_type, only, text},
    stub_model::{Asked, Call, Reply, StubModel},
};

use super::remit;

const OUTPUT_BYTES: usize = 50 * 1024 * 1024;
/// What the server may need more for such an output. All of it at once would not fit.
const MEMORY_KIB_MAX: u64 = 24 * 1024;

// Field report 94: 50 MB of output are kept whole, in bounded memory, and asked for once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_megabytes_can_be_had_whole_and_take_no_memory() {
    let command = format!("yes 0123456789abcdef | head -c {OUTPUT_BYTES}; echo END");
    let stub = StubModel::start(move |asked: &Asked| match (asked.is_about("warm up"), asked.turn) {
        (true, 0) => Reply::calls([Call::new("bash", json!({"command": "seq 1 9000"}))]).into(),
        (false, 0) => Reply::calls([Call::new("bash", json!({"command": command}))]).into(),
        (_, _) => Reply::says("done").into(),
    })
    .await;
    let remit = remit();
    let model = format!(
        "models:\n  - {{name: stub, provider: openai, base_url: \"{}\", api_key: k}}\n",
        stub.base_url()
    );
    remit.write("remit.yaml", &(model + "sandbox: { allow_host_bash: true }\n"));
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    assert_eq!(text(&client.run_to_end("warm up").await.1, "status"), "success");
    let before = served.peak_kib();
    let (thread_id, run) = client.run_to_end("print a lot").await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    let events = client.thread_events(&thread_id).await;
    let result = only(&events, "llm.tool.result");
    let kept = &result["content"]["additional_kwargs"]["output_blob"];
    let sha256 = text(kept, "sha256").to_owned();
    assert_eq!((kept["bytes"].as_u64(), &kept["truncated"]), (Some(OUTPUT_BYTES as u64 + 4), &json!(false)));
    assert_eq!(result["metadata"]["blobs"], json!([{"sha256": sha256, "bytes": OUTPUT_BYTES + 4}]));
    // The model is told of it once, within bounds, and by the name under which it is kept.
    let told = stub.requests().pop().unwrap().results();
    assert_eq!((told.len(), of_type(&events, "tool.started").len()), (1, 1));
    assert!(told[0].1.contains(&sha256) && told[0].1.chars().count() <= TOOL_OUTPUT_CHARS_MAX);
    // Whoever asks gets all of it, over HTTP and by the command.
    let url = format!("{}/api/threads/{thread_id}/blobs/{sha256}", served.url);
    let whole = reqwest::get(&url).await.unwrap().bytes().await.unwrap();
    assert_eq!((whole.len(), sha256_hex(&whole)), (OUTPUT_BYTES + 4, sha256.clone()));
    let more = served.peak_kib() - before;
    assert!(more < MEMORY_KIB_MAX, "{more} KiB more");
    remit.run(&["blob", &sha256, "--out", "over-http", "--server", &served.url]).await.exited(0);
    assert_eq!(served.stop("-TERM").await, Some(0));
    let words = ["blob", &sha256, "--thread", &thread_id, "--out", "from-folder", "--json"];
    let written = remit.run(&words).await.exited(0).json();
    assert_eq!((&written["sha256"], &written["bytes"]), (&json!(sha256), &json!(OUTPUT_BYTES + 4)));
    for name in ["over-http", "from-folder"] {
        assert!(fs::read(remit.folder().join(name)).unwrap() == whole, "{name}");
    }
    assert!(!remit.folder().join("from-folder.part").exists());
    let verified = remit.run(&["verify", "--json"]).await.exited(0).json();
    assert_eq!((&verified["whole"], &verified["blobs"]), (&json!(true), &json!(2)));
    // An export of the thread has it in plain where it is wanted, and is proven without the folder.
    let words = ["export", "--out", "audit", "--thread", &thread_id, "--with-blobs"];
    let told = remit.run(&words).await.exited(0);
    assert!(told.stdout.contains("OUTPUTS    1 in plain"), "{}", told.stdout);
    assert!(fs::read(remit.folder().join("audit/outputs").join(&sha256)).unwrap() == whole);
    remit.run(&["verify", "audit"]).await.exited(0);
    // What an event names and is not there is damage.
    let (blobs, aside) = (remit.data().join("blobs"), remit.folder().join("aside"));
    fs::rename(&blobs, &aside).unwrap();
    let missing = remit.run(&["blob", &sha256, "--thread", &thread_id, "--out", "x"]).await.exited(5);
    assert!(missing.stderr.contains("is missing, and an event of thread"), "{}", missing.stderr);
    let doctor = remit.run(&["doctor", "--json"]).await.exited(5);
    assert!(doctor.stdout.contains(&format!("the blob {sha256} that the event names is missing")));
    fs::remove_dir_all(&blobs).unwrap_or_default();
    fs::rename(&aside, &blobs).unwrap();
    // What is erased cannot be had, and what is not there is not found.
    remit.run(&["erase", &thread_id, "--yes"]).await.exited(0);
    remit.run(&["blob", &sha256, "--thread", &thread_id, "--out", "x"]).await.exited(3);
    remit.run(&["blob", &"ab".repeat(32), "--out", "x"]).await.exited(3);
    remit.run(&["blob", "no digest", "--out", "x"]).await.exited(2);
    remit.run(&["blob", &sha256, "--json"]).await.exited(2);
    let verified = remit.run(&["verify", "--json"]).await.exited(0).json();
    assert_eq!(verified["blobs"], json!(1));
}
