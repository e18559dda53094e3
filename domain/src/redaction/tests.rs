use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod ordinary;
mod planted;

fn redact(text: &str) -> String {
    Redactor::standard().redact_text(text).map_or_else(|| text.to_owned(), |redacted| redacted.text)
}

fn redact_json(json: &str) -> String {
    Redactor::standard().redact_json(json).map_or_else(|| json.to_owned(), |redacted| redacted.text)
}

/// Masks the part between `«` and `»`, and nothing else.
#[track_caller]
fn check(kind: &str, marked: &str) {
    let (before, rest) = marked.split_once('«').unwrap();
    let (secret, after) = rest.split_once('»').unwrap();
    let text = format!("{before}{secret}{after}");
    let hash = &crate::digest::sha256_hex(secret.as_bytes())[..8];
    let expected = format!("{before}[redacted:{kind}:sha256={hash}]{after}");
    assert_eq!(redact(&text), expected, "of {text}");
    assert_eq!(redact(&expected), expected);
    // The same within JSON, once and twice.
    let json = serde_json::to_string(&[&text]).unwrap();
    let masked: Vec<String> = serde_json::from_str(&redact_json(&json)).unwrap();
    assert_eq!(masked, [expected]);
    let nested = serde_json::to_string(&[&json]).unwrap();
    let inner: Vec<String> = serde_json::from_str(&redact_json(&nested)).unwrap();
    assert!(!inner[0].contains(secret) || secret.len() < 8, "{inner:?}");
    assert!(serde_json::from_str::<Value>(&inner[0]).is_ok(), "{inner:?}");
}

// Field report 102: a bearer header, an assignment of an unknown vendor, a PEM block, an AWS secret.
#[test]
fn each_kind_of_secret_is_masked_where_it_stands() {
    check("authorization", "curl -H 'Authorization: Bearer «abc.DEF-123_456~x+/=»' http://x");
    check("authorization", "Authorization: Basic «dXNlcjpwYXNzd29yZA==»\nAccept: */*");
    check("authorization", "sent bearer «9f8e7d6c5b4a3210» to it");
    check("authorization", "Authorization: «0123456789abcdef0123»");
    check("secret", "api_key=«zz9pluralzalpha7»&page=2");
    check("secret", "GET /v1?api_key=«acme_live_0123456789abcdef» HTTP/1.1");
    check("secret", "{\"apiKey\": \"«q8sF0aXz71Lk»\", \"n\": 1}");
    check("secret", "SECRET_TOKEN: «0123456789abcdef»");
    check("secret", "x-api-key: «a1b2c3d4e5f6»");
    check("secret", "export ACME_API_KEY='«a1b2c3d4e5f6»'");
    check("secret", "headers[\"X-Auth-Token\"] = \"«a1b2c3d4e5f6»\"");
    check("secret", "const API_KEY: &str = \"«a1b2c3d4e5f6»\";");
    check("secret", "client_secret => '«a1b2c3d4-e5f6-7890-abcd-ef0123456789»'");
    check("secret", "deploy --token «a1b2c3d4e5f6» --yes");
    check("secret", "aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»");
    check("secret", "<ApiKey>«a1b2c3d4e5f6»</ApiKey>");
    check("password", "password=«hunter2»");
    check("password", "PGPASSWORD=«letmein» psql");
    check("password", "password: «p@ssw0rd!» # for now");
    check("password", "Server=db;User Id=sa;Password=«Str0ng;»".replace(";»", "»;").as_str());
    check("password", "{\"dbPassword\":\"«correct-horse»\"}");
    check("password", "passphrase: \"«correct horse battery staple»\"");
    check("api_key", "key sk-«»x".replace("sk-«»x", "«sk-abcdefghijklmnopqrst1234»").as_str());
    check("api_key", "«ghp_abcdefghijklmnopqrstuvwxyz0123456789»");
    check("api_key", "(«xoxb-1234567890-abcdefghij»)");
    check("api_key", "id «AKIAIOSFODNN7EXAMPLE» here");
    check("api_key", "?key=«AIzaSyA1234567890abcdefghijklmnopqrstuv»&x");
    check("api_key", "«glpat-abcdefghij0123456789»");
    check("api_key", "«npm_abcdefghijklmnopqrstuvwxyz0123456789»");
    check("api_key", "«sk-live-abcdefghijklmnop»");
    check("jwt", "cookie «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF-123_x» set");
    check("url_password", "postgres://app:«s3cr3t»@db:5432/main");
    check("url_password", "redis://:«p@ss»@cache");
    check(
        "private_key",
        "a «-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAtT1xq2\nabc=\n-----END RSA PRIVATE KEY-----» b",
    );
    check(
        "private_key",
        "«-----BEGIN PRIVATE KEY-----\\nMIIEowIBAAKCAQEAtT1xq2\\n-----END PRIVATE KEY-----»\\n",
    );
    check("private_key", "cut «-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAtT1xq2\nMIIEowIBAAKC»");
    check("private_key", "…«AAKCAQEAtT1xq2abcd\nMIIEowIBAAKC\n-----END PRIVATE KEY-----»\n");
}

#[test]
fn an_aws_secret_is_known_by_its_neighbour() {
    let text = redact("AKIAIOSFODNN7EXAMPLE,wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n");
    assert!(text.contains("[redacted:api_key:") && text.contains(",[redacted:aws_secret_key:"), "{text}");
    let alone = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    assert_eq!(redact(alone), alone);
}

#[test]
fn members_of_json_are_masked_by_their_names_and_the_rest_keeps_its_bytes() {
    let json = r#"{ "b" : 1.50e+2,"password":"hunter2","a":[9007199254740993 , "A"],"pin_password": 12345678,"api_keys":["a1b2c3d4e5", "x"],"max_tokens":4096,"token":"T","b":2}"#;
    let expected = json
        .replace("hunter2", "[redacted:password:sha256=f52fbd32]")
        .replace("12345678", "\"[redacted:password:sha256=ef797c81]\"")
        .replace("a1b2c3d4e5", "[redacted:secret:sha256=cb1f5c1c]");
    let masked = Redactor::standard().redact_json(json).unwrap();
    assert_eq!(masked.masks, 3);
    let hash = |text: &str| crate::digest::sha256_hex(text.as_bytes())[..8].to_owned();
    let expected = expected
        .replace("f52fbd32", &hash("hunter2"))
        .replace("ef797c81", &hash("12345678"))
        .replace("cb1f5c1c", &hash("a1b2c3d4e5"));
    assert_eq!(masked.text, expected);
    let header = redact_json(r#"{"Authorization":"Bearer abc123def456"}"#);
    assert!(header.starts_with(r#"{"Authorization":"Bearer [redacted:authorization:"#), "{header}");
}

#[test]
fn escapes_hide_nothing() {
    for json in [
        r#"{"p\u0061ssword":"hunter2"}"#,
        r#"["pass\u0077ord=hunter2"]"#,
        r#"["password\u003dhunter2 \ud83d\ude00 \ud800"]"#,
        r#"["{\"pass\":1,\"password\":\"hunter2\"}"]"#,
        r#"["\u0022password\u0022:\u0022hunter2\u0022"]"#,
        r#"["{\\u0022password\\u0022:\\u0022hunter2\\u0022}"]"#,
        r#"["a\tpassword\t=\thunter2"]"#,
        r#"{"password":"hunte\u0072\u0032"}"#,
    ] {
        let masked = redact_json(json);
        assert!(masked.contains("[redacted:password:sha256=f52fbd32]"), "{json} became {masked}");
        assert!(!masked.contains("hunter2"), "{masked}");
    }
    let masked = redact_json(r#"["\u00e9 password=hunter2 \u00e9\ud83d\ude00\ud800"]"#);
    assert_eq!(masked, r#"["\u00e9 password=[redacted:password:sha256=f52fbd32] \u00e9\ud83d\ude00\ud800"]"#);
}

#[test]
fn a_mark_hides_nothing_that_stands_beside_it() {
    let mark = "[redacted:secret:sha256=0123abcd]";
    for text in [format!("password={mark}"), format!("api_key: \"{mark}\""), format!("redis://:{mark}@c")] {
        assert_eq!(redact(&text), text);
    }
    assert!(!redact(&format!("password={mark}hunter2")).contains("hunter2"));
}

#[test]
fn the_owner_adds_patterns_and_allows_texts() {
    let settings = RedactionSettings {
        extra_patterns: vec!["ACME-([0-9]{6})".to_owned(), "(?i)project bluebird".to_owned()],
        allow: vec!["test-[a-z0-9]+".to_owned()],
        ..RedactionSettings::default()
    };
    let redactor = Redactor::new(&settings).unwrap();
    let text = redactor.redact_text("ACME-123456 of Project Bluebird, api_key=test-1234567890").unwrap().text;
    assert!(text.starts_with("ACME-[redacted:custom:sha256="), "{text}");
    assert!(text.contains(" of [redacted:custom:") && text.ends_with("api_key=test-1234567890"), "{text}");
    assert!(redactor.redact_text("api_key=test-1234567890x!").is_some());
    let off = Redactor::new(&RedactionSettings { enabled: false, ..RedactionSettings::default() }).unwrap();
    assert_eq!(off.redact_json(r#"{"password":"hunter2"}"#), None);
}

#[test]
fn settings_that_cannot_be_used_are_refused_by_name() {
    #[track_caller]
    fn check(extra_patterns: Vec<String>, allow: Vec<String>, words: &str) {
        let settings = RedactionSettings { enabled: true, extra_patterns, allow };
        let error = Redactor::new(&settings).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    check(vec!["(".to_owned()], vec![], "extra_patterns is \"(\": it must be a regular expression (");
    check(vec![], vec![")|(".to_owned()], "allow is \")|(\": it must be a regular expression (");
    check(vec!["a*".to_owned()], vec![], "does not match nothing at all");
    check(vec!["a".repeat(1_001)], vec![], "at most 1000 characters");
    check(vec!["a".to_owned(); 65], vec![], "extra_patterns is a list of 65: it must be at most 64 patterns");
    check(vec!["(a{1000}){1000}".to_owned()], vec![], "regular expression");
}
