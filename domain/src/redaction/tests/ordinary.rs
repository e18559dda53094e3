//! Text that has no secrets stays as it is, to the byte.

use super::*;

#[track_caller]
fn check_kept(text: &str) {
    assert_eq!(Redactor::standard().redact_text(text), None, "{text}");
    let json = json!({"text": text, "lines": [text]}).to_string();
    assert_eq!(Redactor::standard().redact_json(&json), None, "{json}");
}

#[test]
fn prose_about_secrets_stays() {
    for text in [
        "The password must have 12 characters. Password: required. Token: expired; secret: none.",
        "Bearer authentication is like Basic authentication; a bearer of bad news, basic understanding.",
        "Authorization: required for every call. Authorization: Bearer <token>, or Authorization: Basic $CREDS.",
        "What is the key: patience. One key = one door. The keys: C major, A minor.",
        "The author: Jane Doe. A token: the smallest piece. Tokens: 4096. passwords: many.",
        "Set api_key=$ACME_KEY or api_key=${ACME_KEY}, password={{ password }}, token=<your token>.",
        "password=****** secret=xxxxxxxx api_key=... token=[REDACTED]",
        "Deleted secret: not found. Token count: 12345678. tokens=12345678 max_tokens: 200000",
        "3 tests pass: 12345; compass: north; bypass=12345",
        "https://example.com:8080/users/me@example.com and http://user@host/path, git@github.com:org/repo.git",
        "postgres://app:$DB_PASSWORD@db/main and postgres://app:${DB_PASSWORD}@db/main",
    ] {
        check_kept(text);
    }
}

#[test]
fn code_stays() {
    for text in [
        "let token = next_token(&mut lexer); let key = map.keys().next(); fn secret(token: Token) -> Secret {",
        "def f(token: str, api_key: Optional[str] = None, password: str = \"\") -> bool:",
        "api_key = os.environ[\"ACME_API_KEY\"]; api_key=settings.OPENAI_API_KEY; token=self.token2",
        "if (token === TokenKind.Identifier2) { return this.password; }",
        "client = Client(api_key=api_key, token=token, password=user_password)",
        "primary_key=user_id2, foreign_key: \"orders_2026_items\", cache_key=\"v2/items/20261130\"",
        "Authorization: `Bearer ${token}`",
        "<label for=\"password\">Password</label><input type=password name=token2>",
        ".sk-container-id-1 div.sk-toggleable-content-fitted { } sk-estimator-doc-link-fitted",
        "idempotency_key: \"order-20261130-000123-abcdef\" next_page_token=\"CAUQAAabcdef0123456789\"",
        "api_key_env: ACME_API_KEY_2, private_key_path=/etc/ssl/private/key1.pem, key_file: ./keys/server1.key",
        "ssl_key: /etc/ssl/private/server1.pem, secret: ./secrets/token1.txt",
        "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAtT1xq2\n-----END CERTIFICATE-----",
        "grep -c 'BEGIN RSA PRIVATE KEY' and -----BEGIN PRIVATE KEY----- in a sentence",
        "task-abcdefghijklmnopqrstuvwx1234 disk-usage-report-2026-11-30-final risk-assessment-v2",
    ] {
        check_kept(text);
    }
}

#[test]
fn names_digests_and_ids_stay() {
    for text in [
        "[r3 bash] and [r12 read_file], see r1",
        "args_sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "output_sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b by a@b.c",
        "sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08==",
        "image data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "0198f000-0000-7000-8000-0000000000aa call_abc123DEF456ghi789 toolu_01A09q90qw90lq917835lq9",
        "/mnt/user-data/workspace/report.md:12:3 C:\\Users\\me\\key1.txt ~/.ssh/id_rsa.pub",
        "[redacted:api_key:sha256=ab12cd34]",
    ] {
        check_kept(text);
    }
    let receipt = r#"{"id":"r1","tool_name":"bash","tool_call_id":"call_1","args_sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","usage":{"input_tokens":12345678,"output_tokens":9007199254740993},"idempotency_key":"a1b2c3d4e5f60718"}"#;
    assert_eq!(Redactor::standard().redact_json(receipt), None);
}

proptest! {
    #[test]
    fn words_digests_ids_and_paths_stay(
        words in prop::collection::vec("[a-z]{1,12}", 1..30),
        hex in "[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}",
        uuid in "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
        path in "(/[a-z_]{1,10}){1,5}\\.(rs|md|py)",
        number in any::<u64>(),
    ) {
        let prose = words.join(" ");
        let text = format!("{prose}: {hex} {uuid}, {path}:{number} [r{} bash] sha256={hex}", number % 64);
        let names = ["args_sha256", "id", "event_id", "path", "seq", "count", "hash", "input_tokens"];
        for name in names {
            let json = json!({name: text, "n": {name: hex, "m": [number, uuid.as_str(), path.as_str()]}}).to_string();
            let redacted = Redactor::standard().redact_json(&json);
            prop_assert!(redacted.is_none() || names_a_secret(&prose), "{redacted:?}");
        }
    }

    /// Whatever it is given, what comes out of JSON is JSON of the same shape, and stays.
    #[test]
    fn json_stays_json(value in any_json()) {
        let json = value.to_string();
        let once = redact_json(&json);
        let read: Value = serde_json::from_str(&once).unwrap();
        prop_assert!(is_same_shape(&value, &read), "{json} became {once}");
        prop_assert_eq!(redact_json(&once), once);
    }

    #[test]
    fn any_text_is_settled_after_once(text in text_with_words()) {
        let once = redact(&text);
        prop_assert_eq!(redact(&once), once);
    }

    /// The quick look says no only to what has no secrets.
    #[test]
    fn the_quick_look_misses_nothing(text in text_with_words()) {
        let rules = &*RULES;
        let mut found = Vec::new();
        rules.patterns.collect(&rules.trigger, &text, &mut found);
        rules.assignments.collect(&text, &mut found);
        prop_assert!(found.is_empty() || rules.trigger.is_in(&text), "{text:?}");
        let raw = serde_json::to_string(&text).unwrap();
        prop_assert!(found.is_empty() || rules.trigger.is_in(&raw), "{raw:?}");
    }
}

/// Random words may be one of ours by chance, before the colon.
fn names_a_secret(prose: &str) -> bool {
    prose.split(' ').any(|word| names::class(word).is_some())
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("password".to_owned()),
        Just("api_key".to_owned()),
        Just("Authorization".to_owned()),
        Just("Bearer ".to_owned()),
        Just("=".to_owned()),
        Just(": ".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("'".to_owned()),
        Just("\n".to_owned()),
        Just("://u:".to_owned()),
        Just("@h".to_owned()),
        Just("sk-".to_owned()),
        Just("AKIAIOSFODNN7EXAMPLE".to_owned()),
        Just("--token ".to_owned()),
        Just("<secret>".to_owned()),
        Just("eyJ".to_owned()),
        Just(".".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----".to_owned()),
        Just("-----END PRIVATE KEY-----".to_owned()),
        Just("[redacted:secret:sha256=0123abcd]".to_owned()),
        Just("\u{1F600}é".to_owned()),
        "[A-Za-z0-9+/]{1,40}",
        "[a-z]{1,8}",
        ".{0,4}",
    ]
}

fn text_with_words() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..14).prop_map(|pieces| pieces.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text_with_words().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop_oneof![text_with_words(), piece()], inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn is_same_shape(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same_shape(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.keys().eq(other.keys())
                && one.values().zip(other.values()).all(|(one, other)| is_same_shape(one, other))
        }
        (Value::String(_) | Value::Number(_), Value::String(_)) => true,
        _ => one == other,
    }
}
