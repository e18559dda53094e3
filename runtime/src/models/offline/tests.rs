use std::{collections::BTreeSet, sync::Mutex};

use domain::{
    message::{ToolMessage, ToolStatus},
    tool_spec::ToolSpec,
};

use super::*;
use crate::models::no_deltas;

fn lead() -> AgentTag {
    AgentTag::Lead
}

fn subagent(name: &str) -> AgentTag {
    AgentTag::Subagent(SubagentType::new(name).unwrap())
}

fn request(agent: AgentTag, messages: Vec<Message>, tools: &[&str]) -> ModelRequest {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: String::new(),
        parameters: serde_json::json!({"type": "object"}),
    };
    ModelRequest { messages, tools: tools.iter().map(spec).collect(), agent }
}

async fn ask(model: &OfflineModel, request: &ModelRequest) -> AssistantMessage {
    model.call(request, &no_deltas).await.unwrap()
}

async fn ask_lead(yaml: &str) -> Result<AssistantMessage, ModelError> {
    let model = OfflineModel::from_yaml("s", yaml).unwrap();
    model.call(&request(lead(), vec![Message::human("do it")], &["ls"]), &no_deltas).await
}

/// A folder as the tools show it.
#[derive(Clone, Default)]
struct Folder {
    /// Whether nothing in it may be read.
    is_closed: bool,
    /// Name and text; a file without text is not text at all.
    files: Vec<(String, Option<String>)>,
}

impl Folder {
    fn of(files: &[(&str, Option<&str>)]) -> Self {
        let own = |&(name, text): &(&str, Option<&str>)| (name.to_owned(), text.map(str::to_owned));
        Self { files: files.iter().map(own).collect(), ..Self::default() }
    }

    /// What the tool of this name returns.
    fn run(&self, call: &ToolCall) -> Result<String, String> {
        let ToolArgs::Object(args) = &call.args else { panic!("{call:?}") };
        let arg = |key: &str| args.get(key).and_then(Value::as_str).map(str::to_owned);
        match call.name.as_str() {
            "ls" if self.is_closed => {
                Err("Error: could not list /mnt/user-data/workspace: permission denied".into())
            }
            "bash" if self.is_closed => {
                Ok("ls: cannot open directory '.': Permission denied\nfind: '.': Permission denied\n0".into())
            }
            "ls" => Ok(self.listing()),
            "read_file" => {
                let path = arg("path").unwrap();
                let name = path.strip_prefix("/mnt/user-data/workspace/").unwrap();
                let found = self.files.iter().find(|(known, _)| known == name);
                let text = found.and_then(|(_, text)| text.clone());
                text.ok_or_else(|| format!("Error: {path} is not text"))
            }
            "glob" | "grep" => {
                assert!(arg("path").is_some() && !arg("pattern").unwrap().is_empty(), "{call:?}");
                Ok(format!("no files match {:?} in .", arg("pattern").unwrap()))
            }
            "bash" => {
                assert!(arg("command").is_some() && arg("description").is_some(), "{call:?}");
                Ok(format!("total 0\n{}", self.files.len()))
            }
            "write_file" => {
                assert_eq!(arg("path").unwrap(), "/mnt/user-data/outputs/report.md");
                Ok(arg("content").unwrap())
            }
            other => panic!("no tool {other}"),
        }
    }

    fn listing(&self) -> String {
        if self.files.is_empty() {
            return "(empty)".into();
        }
        let line = |(name, text): &(String, Option<String>)| {
            format!("{name}\t{}", text.as_ref().map_or(7, String::len))
        };
        self.files.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// What an agent did.
struct Played {
    calls: Vec<ToolCall>,
    results: Vec<String>,
    answer: String,
    is_capped: bool,
}

/// Plays an agent to its end or to `turns_max`; `task` calls play the subagent that they name.
async fn play(
    model: &OfflineModel,
    agent: AgentTag,
    task: &str,
    folder: &Folder,
    turns_max: usize,
) -> Played {
    let tools = ["ls", "read_file", "write_file", "str_replace", "grep", "glob", "bash", "task"];
    let mut messages = vec![Message::system("s"), Message::human(task)];
    let mut played =
        Played { calls: Vec::new(), results: Vec::new(), answer: String::new(), is_capped: true };
    for _ in 0..turns_max {
        let reply = ask(model, &request(agent.clone(), messages.clone(), &tools)).await;
        assert_eq!(reply.response_metadata.model_name.as_deref(), Some(OFFLINE_MODEL_NAME));
        messages.push(Message::Assistant(reply.clone()));
        played.answer.clone_from(&reply.content);
        if reply.tool_calls.is_empty() {
            played.is_capped = false;
            break;
        }
        for call in reply.tool_calls {
            let outcome = match (call.name.as_str(), &call.args) {
                ("task", ToolArgs::Object(args)) => {
                    let name = args["subagent_type"].as_str().unwrap();
                    let prompt = args["prompt"].as_str().unwrap();
                    let child = Box::pin(play(model, subagent(name), prompt, folder, 12)).await;
                    Ok(child.answer)
                }
                _ => folder.run(&call),
            };
            let status = if outcome.is_ok() { ToolStatus::Success } else { ToolStatus::Error };
            let content = outcome.unwrap_or_else(|error| error);
            played.results.push(content.clone());
            messages.push(Message::Tool(ToolMessage {
                content,
                tool_call_id: call.id.clone(),
                name: call.name.clone(),
                status,
                ..ToolMessage::default()
            }));
            played.calls.push(call);
        }
    }
    played
}

fn folders() -> Vec<Folder> {
    let many = (0..5_000).map(|number| (format!("f{number}.txt"), Some("line\n".into()))).collect();
    vec![
        Folder::default(),
        Folder::of(&[("one.md", Some("# One\ntext"))]),
        Folder::of(&[("bin.dat", None), ("strange", None), ("x.png", None)]),
        Folder::of(&[
            ("mit leer.txt", Some("ä {{ nothing }} ``` 漢字")),
            ("日本/語.md", Some("\n\n")),
            ("empty.txt", Some("")),
        ]),
        Folder { files: many, ..Folder::default() },
    ]
}

#[tokio::test]
async fn the_default_scenario_works_on_any_folder_and_says_what_it_is() {
    let model = OfflineModel::from_settings(&ModelSettings::offline("offline")).unwrap();
    for folder in folders() {
        let played = play(&model, lead(), "What is {{ this }}?", &folder, 20).await;
        let names: Vec<&str> = played.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["ls", "task"]);
        assert!(played.answer.contains("not from a language model"), "{}", played.answer);
        assert!(played.answer.contains("What is {{ this }}?"), "{}", played.answer);
        assert!(played.results[1].contains("[r1 ls]"), "{}", played.results[1]);
        assert!(!played.is_capped);
    }
}

#[tokio::test]
async fn the_default_scenario_calls_only_tools_that_it_was_given() {
    let model = OfflineModel::from_settings(&ModelSettings::offline("offline")).unwrap();
    for agent in [lead(), subagent("reviewer")] {
        let reply = ask(&model, &request(agent, vec![Message::human("hi")], &[])).await;
        assert!(reply.tool_calls.is_empty() && !reply.content.is_empty());
    }
}

fn demo() -> OfflineModel {
    OfflineModel::from_settings(&ModelSettings {
        scenario: Some("builtin:demo".into()),
        ..ModelSettings::offline("demo")
    })
    .unwrap()
    .without_pauses()
}

#[tokio::test]
async fn the_demo_delegates_three_tasks_and_writes_a_report_for_any_folder() {
    for folder in folders() {
        let played = play(&demo(), lead(), "Look around", &folder, 20).await;
        let names: Vec<&str> = played.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["ls", "task", "task", "task", "write_file"]);
        let [_, survey, deep, count, report] = played.results.as_slice() else { panic!() };
        assert!(survey.contains("[r1 ls]"), "{survey}");
        assert!(deep.contains("Notes after"), "{deep}");
        assert!(count.contains("[r1 bash]"), "{count}");
        assert!(
            report.contains("no language model was asked") && report.contains("Read in depth"),
            "{report}"
        );
        assert!(played.answer.contains("3 of 3 subagents"), "{}", played.answer);
        assert!(!played.answer.contains("```") && !played.answer.contains("`:"), "{}", played.answer);
        let files = folder.files.len();
        let counted = format!("The folder holds {files} {}", if files == 1 { "file" } else { "files" });
        assert!(count.contains(&counted) && played.answer.contains(&counted), "{}", played.answer);
        assert!(!played.is_capped);
    }
}

// The loop guard stops repeated calls; the demo wants the turn cap to be seen, so none repeats.
#[tokio::test]
async fn the_deep_reader_of_the_demo_never_ends_and_never_repeats_a_call() {
    for folder in folders() {
        let played =
            play(&demo(), subagent("general-purpose"), "Keep reading until you are stopped.", &folder, 120)
                .await;
        assert!(played.is_capped && !played.answer.is_empty());
        let distinct: BTreeSet<String> =
            played.calls.iter().map(|call| format!("{:?}", (&call.name, &call.args))).collect();
        assert_eq!((distinct.len(), played.calls.len()), (120, 120));
        let ids: BTreeSet<&str> = played.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), 120);
    }
}

#[tokio::test]
async fn the_survey_of_the_demo_cites_the_receipts_of_what_it_read() {
    let folder = Folder::of(&[("a.md", Some("# Title\nmore")), ("b", None), ("c.md", Some("one"))]);
    let played = play(&demo(), subagent("general-purpose"), "Survey", &folder, 9).await;
    let names: Vec<&str> = played.calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["ls", "glob", "read_file", "read_file", "read_file"]);
    assert_eq!(
        played.answer,
        "Survey of /mnt/user-data/workspace.\n\n\
        - The folder has 3 entries, 3 of them files [r1 ls].\n\
        - `a.md` has 2 lines that are not blank and begins \"# Title\" [r3 read_file].\n\
        - `c.md` has 1 line that is not blank and begins \"one\" [r4 read_file].\n\
        - `b` could not be read: Error: /mnt/user-data/workspace/b is not text [r5 read_file]."
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_is_an_error_in_every_report_of_the_demo() {
    let folder = Folder { is_closed: true, ..Folder::default() };
    let played = play(&demo(), lead(), "Look around", &folder, 20).await;
    let [_, survey, deep, count, report] = played.results.as_slice() else { panic!() };
    let listing = "could not be listed";
    assert!(survey.contains("**Error:**") && survey.contains("permission denied"), "{survey}");
    assert!(count.contains("as far as it can be read") && count.contains("**Error:** ls: "), "{count}");
    assert!(deep.contains("1 failed."), "{deep}");
    assert!(report.contains("**Error:** the workspace could not be listed."), "{report}");
    assert!(played.answer.contains("**Error:**") && played.answer.contains(listing), "{}", played.answer);
    for text in [survey, deep] {
        assert!(!text.contains("has 0 entries") && !text.contains("gave 1 lines"), "{text}");
    }
}

#[tokio::test]
async fn the_deep_reader_tells_finding_nothing_from_finding_something() {
    let notes = async |turns| {
        let folder = Folder::of(&[("a.md", Some("one"))]);
        play(&demo(), subagent("general-purpose"), "Keep reading until you are stopped.", &folder, turns)
            .await
            .answer
    };
    assert_eq!(
        notes(3).await,
        "Notes after 2 tool calls: 2 found something, 0 found nothing, 0 failed. \
         The last was read_file on `a.md` [r2 read_file], which gave 1 line. I go on."
    );
    assert_eq!(
        notes(4).await,
        "Notes after 3 tool calls: 2 found something, 1 found nothing, 0 failed. \
         The last was grep on `workspace` [r3 grep], which found nothing. I go on."
    );
}

#[tokio::test]
async fn the_same_question_has_the_same_reply() {
    let model = OfflineModel::from_settings(&ModelSettings::offline("offline")).unwrap();
    let request = request(lead(), vec![Message::human("hi")], &["ls", "task"]);
    assert_eq!(ask(&model, &request).await, ask(&model, &request).await);
}

#[tokio::test]
async fn a_turn_says_calls_and_reports_what_it_is_told_to() {
    let yaml = r#"
agents:
  - agent: lead
    turns:
      - say: "{{ task }}!"
        calls:
          - tool: read_file
            for_each: "['a', 'b']"
            args: { path: "{{ item }}.txt", start_line: { $value: "index + 1" } }
          - tool: never
            when: "'bash' in tools"
"#;
    let reply = ask_lead(yaml).await.unwrap();
    assert_eq!(reply.content, "do it!");
    let calls: Vec<String> = reply.tool_calls.iter().map(|call| format!("{:?}", call.args)).collect();
    assert_eq!(calls.len(), 2);
    assert!(calls[1].contains("b.txt") && calls[1].contains("Number(2)"), "{calls:?}");
    assert_eq!(reply.response_metadata.finish_reason.as_deref(), Some("tool_calls"));
    // 5 characters were asked; 6 and twice `read_file` with its arguments came back.
    let call_chars = "read_file".len() + r#"{"path":"a.txt","start_line":1}"#.len();
    assert_eq!(reply.usage, Some(Usage::new(2, (6 + 2 * call_chars).div_ceil(4) as u64)));
}

#[tokio::test]
async fn usage_finish_reason_and_failure_can_be_set() {
    let turn = |keys: &str| format!("agents: [{{agent: lead, turns: [{{say: x, {keys}}}]}}]");
    assert_eq!(ask_lead(&turn("usage: absent")).await.unwrap().usage, None);
    let set = ask_lead(&turn("usage: {tokens: {input: 7, output: 8}}, finish_reason: length")).await.unwrap();
    assert_eq!(
        (set.usage, set.response_metadata.finish_reason.as_deref()),
        (Some(Usage::new(7, 8)), Some("length"))
    );
    let failed = ask_lead(&turn("error: 'no {{ task }}'")).await.unwrap_err();
    assert_eq!(
        (failed.kind, failed.to_string().as_str()),
        (ModelErrorKind::Generic, "calling model s: no do it")
    );
}

#[tokio::test]
async fn the_last_turn_may_repeat_and_otherwise_the_end_is_said() {
    for (repeat, expected) in [
        ("repeat: forever", "turn 1"),
        (
            "pause_ms: 0",
            "This is the offline scenario player, not a language model. The scenario s has no turn 2 for lead_agent, so it ends here.",
        ),
    ] {
        let yaml = format!("agents: [{{agent: lead, turns: [{{say: 'turn {{{{ turn }}}}', {repeat}}}]}}]");
        let model = OfflineModel::from_yaml("s", &yaml).unwrap();
        let call = ToolCall { id: "1".into(), name: "ls".into(), args: ToolArgs::parse("") };
        let before = AssistantMessage { tool_calls: vec![call], ..AssistantMessage::default() };
        let messages = vec![Message::human("hi"), Message::Assistant(before)];
        assert_eq!(ask(&model, &request(lead(), messages, &[])).await.content, expected);
    }
}

#[tokio::test]
async fn the_first_part_that_fits_is_played() {
    let yaml = r#"
agents:
  - {agent: reviewer, task_matches: "(?i)deep", turns: [{say: deep reviewer}]}
  - {agent: reviewer, turns: [{say: reviewer}]}
  - {agent: "*", turns: [{say: any}]}
"#;
    let model = OfflineModel::from_yaml("s", yaml).unwrap();
    for (agent, task, expected) in [
        (subagent("reviewer"), "go DEEP", "deep reviewer"),
        (subagent("reviewer"), "go", "reviewer"),
        (subagent("bash"), "go deep", "any"),
        (
            lead(),
            "go",
            "This is the offline scenario player, not a language model. The scenario s has no part for lead_agent, so it ends here.",
        ),
    ] {
        assert_eq!(ask(&model, &request(agent, vec![Message::human(task)], &[])).await.content, expected);
    }
}

#[tokio::test]
async fn what_fails_while_playing_names_the_place() {
    let turn = |keys: &str| format!("agents: [{{agent: lead, turns: [{{{keys}}}]}}]");
    for (keys, expected) in [
        ("say: '{{ nobody }}'", "agents[0].turns[0].say: undefined value"),
        (
            "calls: [{tool: ls, for_each: '[1] * 40'}]",
            "agents[0].turns[0].calls[0]: for_each has 40 items; at most 32",
        ),
        (
            "calls: [{tool: ls, args: {path: '{{ nobody }}'}}]",
            "agents[0].turns[0].calls[0].args.path: undefined value",
        ),
    ] {
        let error = ask_lead(&turn(keys)).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::InvalidReply);
        assert!(error.to_string().starts_with("playing scenario s for model s: "), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[track_caller]
fn check_refused(yaml: &str, expected: &str) {
    let error = OfflineModel::from_yaml("s.yaml", yaml).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_bad_scenario_names_the_file_and_the_place() {
    check_refused("agents:\n  - agent: lead\n    trns: []\n", "reading scenario s.yaml, line 3: ");
    check_refused("agents: [", "reading scenario s.yaml, line 1: ");
    check_refused("{}", "reading scenario s.yaml");
    check_refused(
        "agents: [{agent: lead, turns: []}]",
        "checking scenario s.yaml: agents[0].turns: must be 1 to 200 turns, is 0",
    );
    check_refused(
        "agents: [{agent: lead, turns: [{say: '{{ a'}]}]",
        "checking scenario s.yaml: agents[0].turns[0].say: syntax error",
    );
    check_refused(
        "agents: [{agent: lead, turns: [{repeat: forever}, {say: a}]}]",
        "checking scenario s.yaml: agents[0].turns[0].repeat: only the last turn can be repeated",
    );
    check_refused(
        "agents: [{agent: lead, task_matches: '(', turns: [{say: a}]}]",
        "checking scenario s.yaml: agents[0].task_matches: regex parse error",
    );
    check_refused(
        "agents: [{agent: lead, turns: [{calls: [{tool: ls, when: 'a b'}]}]}]",
        "checking scenario s.yaml: agents[0].turns[0].calls[0].when: syntax error",
    );
    let missing = ModelSettings { scenario: Some("no/such.yaml".into()), ..ModelSettings::offline("o") };
    let error = OfflineModel::from_settings(&missing).unwrap_err();
    assert_eq!(error.to_string(), "models.o.scenario cannot be used");
}

#[tokio::test]
async fn a_reply_arrives_in_pieces_first() {
    let model = OfflineModel::from_yaml(
        "s",
        "agents: [{agent: lead, turns: [{say: \"a\\nb\", calls: [{tool: ls}]}]}]",
    )
    .unwrap();
    let seen = Mutex::new(Vec::new());
    let deltas = |delta| seen.lock().unwrap().push(delta);
    model.call(&request(lead(), vec![Message::human("hi")], &[]), &deltas).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [Delta::Text("a\n".into()), Delta::Text("b".into()), Delta::ToolCallStarted("ls".into())]
    );
}
