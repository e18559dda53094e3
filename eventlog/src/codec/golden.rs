//! Recorded bytes, and what today's code makes of them. The bytes are never changed: a new shape
//! gets a new file beside them. `REMIT_REGENERATE=1` writes what is made of them anew.

use std::{fs, path::PathBuf, sync::Arc};

use serde_json::{Value, json};

use super::{record, typed};
use crate::{
    chain,
    json::Json,
    keyring::{Keyring, ScopeId},
    keys,
    new_event::{NewEvent, Scope},
    position::{Position, Seq},
    recorded::{Place, RecordedEvent},
    sample,
    seal::{self, Opened, Seal},
    secret::SecretKey,
    stream_id::StreamId,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/records")
}

/// The keys that the files were sealed with.
fn keyring() -> Keyring {
    let keyring = Keyring::in_memory().unwrap();
    let thread = ScopeId(keys::stream_entry::hash(&sample::thread("t")));
    keyring.insert(thread, thread, SecretKey::new([1; 32]));
    let run = ScopeId(keys::run_entry::hash(&sample::thread("t"), &sample::run_id("run-1")));
    keyring.insert(thread, run, SecretKey::new([2; 32]));
    keyring
}

fn made_of(bytes: &[u8], keyring: &Keyring) -> Value {
    let recorded = record::decode(bytes, keyring).unwrap();
    let fact = typed::decode(&recorded).map_err(|error| error.to_string()).map(|logged| {
        let encoded = typed::encode(&logged.event).unwrap();
        json!({
            "event_type": encoded.event_type,
            "schema_version": encoded.schema_version,
            "category": encoded.category,
            "content": encoded.content.to_value().unwrap(),
            "metadata": encoded.metadata.to_value().unwrap(),
        })
    });
    // Through text, since a value would lose the exact content.
    let recorded: Value = serde_json::from_str(&serde_json::to_string(&recorded).unwrap()).unwrap();
    json!({ "recorded": recorded, "fact": fact.unwrap_or_else(Value::String) })
}

fn check(name: &str, keyring: &Keyring, suffix: &str) {
    let hex = fs::read_to_string(folder().join(format!("{name}.hex"))).unwrap();
    let made = made_of(&hex::decode(hex.trim()).unwrap(), keyring);
    let text = serde_json::to_string_pretty(&made).unwrap() + "\n";
    let path = folder().join(format!("{name}{suffix}.json"));
    if std::env::var_os("REMIT_REGENERATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap(), "{}", path.display());
}

#[test]
fn recorded_bytes_are_read_for_ever() {
    let erased = keyring();
    erased.destroy_thread(ScopeId(keys::stream_entry::hash(&sample::thread("t"))), true).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "hex") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            check(name, &keyring(), "");
            check(name, &erased, ".erased");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} files of recorded bytes");
}

fn bytes(event: NewEvent, stream: StreamId, key: Option<u8>) -> Vec<u8> {
    let (position, seq) = (Position::new(258), Seq::new(3));
    let mut event = RecordedEvent::new(event, Place { position, stream, seq, recorded_at: sample::time() });
    if let Some(key) = key {
        let (scope_key, nonce) = (SecretKey::new([key; 32]), [9; 24]);
        let type_tag = seal::type_tag(&scope_key, &event.event_type);
        event.seal = Seal::Opened(Opened { nonce, type_tag, key: seal::body_key(&scope_key, &nonce) });
    }
    let mut bytes = record::encode(&event).unwrap();
    let hash = chain::event_hash(&chain::START, &bytes);
    bytes.extend_from_slice(&hash);
    bytes
}

/// What is written today is what the files of today's version hold.
#[test]
fn today_writes_the_bytes_of_its_version() {
    let created = NewEvent {
        event_type: "thread.created".to_owned(),
        category: "thread".to_owned(),
        content: Json::parse("{\"metadata\":{\"a\":1}}").unwrap(),
        ..sample::note(7)
    };
    let mut foreign = sample::note(7);
    foreign.schema_version = 0;
    foreign.event_type = "somebody.elses".to_owned();
    foreign.content = Json::parse("{\"n\":[\"\u{2028}\",\"\\ud83d\\ude00\"]}").unwrap();
    let mut in_run = created.clone();
    in_run.scope = Scope {
        run_id: Some(sample::run_id("run-1")),
        task_id: Some(sample::task_id("call_1")),
        delegation_id: Some(sample::delegation_id(13)),
    };
    in_run.correlation_id = Some("trace-1".to_owned());
    let thread = || sample::thread("t");
    let files: [(&str, Vec<u8>); 5] = [
        ("1-plain-registry", bytes(sample::note(7), StreamId::Registry, None)),
        ("1-plain-thread-created", bytes(created.clone(), thread(), None)),
        ("2-sealed-thread-created", bytes(created, thread(), Some(1))),
        ("2-sealed-run", bytes(in_run, thread(), Some(2))),
        ("2-sealed-foreign", bytes(foreign, thread(), Some(1))),
    ];
    for (name, bytes) in files {
        let path = folder().join(format!("{name}.hex"));
        let made: Arc<str> = (hex::encode(bytes) + "\n").into();
        if std::env::var_os("REMIT_REGENERATE").is_some() && !path.exists() {
            fs::write(&path, made.as_bytes()).unwrap();
        }
        assert_eq!(*made, *fs::read_to_string(&path).unwrap(), "{name}");
    }
}
