use serde_json::json;

use super::*;

fn settings() -> ModelSettings {
    serde_json::from_value(json!({"name": "local", "provider": "openai", "api_key": "sk-very-secret"}))
        .unwrap()
}

#[track_caller]
fn check_refused(change: impl FnOnce(&mut ModelSettings), expected: &str) {
    let mut settings = settings();
    change(&mut settings);
    assert_eq!(settings.validate().unwrap_err().to_string(), expected);
}

#[test]
fn what_is_not_said_has_its_default() {
    let settings = settings();
    settings.validate().unwrap();
    assert_eq!(
        [
            settings.request_timeout_seconds,
            settings.connect_timeout_seconds,
            settings.first_byte_timeout_seconds,
            settings.chunk_timeout_seconds
        ],
        [120, 10, 60, 60]
    );
}

#[test]
fn a_value_out_of_its_range_is_named_with_the_range() {
    check_refused(
        |settings| settings.request_timeout_seconds = 0,
        "models.local.request_timeout_seconds is 0, but must be from 1 to 3600",
    );
    check_refused(
        |settings| settings.chunk_timeout_seconds = 3_601,
        "models.local.chunk_timeout_seconds is 3601, but must be from 1 to 3600",
    );
    check_refused(
        |settings| settings.temperature = Some(2.5),
        "models.local.temperature is 2.5, but must be from 0 to 2",
    );
    check_refused(
        |settings| settings.temperature = Some(f64::NAN),
        "models.local.temperature is NaN, but must be from 0 to 2",
    );
    check_refused(
        |settings| settings.max_tokens = Some(0),
        "models.local.max_tokens is 0, but must be from 1 to 1000000",
    );
    check_refused(|settings| settings.name.clear(), "models.name must be 1 to 64 printable characters");
}

#[test]
fn unknown_keys_and_providers_are_refused() {
    for bad in [
        json!({"name": "a", "provider": "openai", "base_ulr": "x"}),
        json!({"name": "a", "provider": "telepathy"}),
        json!({"provider": "openai"}),
    ] {
        assert!(serde_json::from_value::<ModelSettings>(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_key_is_never_shown() {
    let settings = settings();
    let shown = format!("{settings:?} {}", serde_json::to_string(&settings).unwrap());
    assert!(!shown.contains("very-secret"), "{shown}");
    assert!(shown.contains(HIDDEN));
}

#[test]
fn the_conversation_is_nobody_else_s_to_say() {
    for field in ["messages", "contents", "model", "tools", "stream"] {
        check_refused(
            |settings| drop(settings.extra_body.insert(field.into(), json!(1))),
            &format!("models.local.extra_body.{field} is what Remit itself sends; take it out"),
        );
    }
    let mut settings = settings();
    settings.extra_body.insert("reasoning_effort".into(), json!("low"));
    settings.validate().unwrap();
}
