//! The configuration that a server obeys can be asked for, with who set what and without secrets.

use serde_json::{Value, json};
use tests::client::Client;

use super::remit;

const CONFIG: &str = "
models:
  - name: local
    provider: openai
    base_url: http://127.0.0.1:9/v1
    api_key: hidden-1
    headers: { x-team: hidden-2 }
    extra_body: { api_key: sk-hidden4hidden4hidden4hidden4 }
subagents: { max_total_per_run: 7 }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_setting_is_shown_with_who_set_it_and_no_secret() {
    let remit = remit().with("REMIT__SUBAGENT_RUNTIME__MAX_RUNNING", "5");
    remit.write("remit.yaml", CONFIG);
    let served = remit.serve(&[]).await;
    let shown = Client::new(&served.url).get("/api/config").await.ok();
    assert!(!shown.to_string().contains("hidden"), "{shown}");
    let setting = |key: &str| -> Value {
        let settings = shown["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
    };
    let of_env = setting("subagent_runtime.max_running");
    let expected = json!({"key": "subagent_runtime.max_running", "value": 5, "set_by": "env",
        "name": "REMIT__SUBAGENT_RUNTIME__MAX_RUNNING"});
    assert_eq!(of_env, expected);
    let of_file = setting("subagents.max_total_per_run");
    assert_eq!((&of_file["value"], &of_file["set_by"]), (&json!(7), &json!("file")));
    assert!(of_file["name"].as_str().unwrap().ends_with("remit.yaml"), "{of_file}");
    let default = setting("subagents.timeout_seconds");
    assert_eq!(default, json!({"key": "subagents.timeout_seconds", "value": 1_800, "set_by": "default"}));
    assert_eq!(setting("server.listen")["set_by"], "flag");
    let capacity = Client::new(&served.url).get("/api/capacity").await.ok();
    assert_eq!(capacity["max_running"], of_env["value"]);
    served.crash().await;
}
