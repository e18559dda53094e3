//! A secret never survives, wherever it is planted and however it is escaped.

use super::*;

/// A secret and the text that it stands in.
fn planted() -> impl Strategy<Value = (String, String)> {
    let random = "[A-Za-z][A-Za-z0-9]{9,22}[0-9][A-Za-z0-9]{8}";
    let in_notation = (random, 0..NOTATIONS.len()).prop_map(|(secret, notation)| {
        let text = NOTATIONS[notation].replace("@@", &secret);
        (secret, text)
    });
    let known = prop_oneof![
        "sk-[A-Za-z0-9]{24}[0-9]{3}",
        "ghp_[A-Za-z0-9]{36}",
        "xoxb-[0-9]{10}-[A-Za-z0-9]{24}",
        "AKIA[A-Z0-9]{16}",
        "AIza[A-Za-z0-9_-]{34}x",
        "glpat-[A-Za-z0-9]{20}",
        "npm_[A-Za-z0-9]{36}",
        "eyJ[A-Za-z0-9]{20}\\.[A-Za-z0-9]{20}\\.[A-Za-z0-9_-]{20}",
    ]
    .prop_map(|secret| (secret.clone(), secret));
    let pem = "[A-Za-z0-9+/]{64}".prop_map(|body| {
        let block = format!("-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----");
        (body, block)
    });
    prop_oneof![4 => in_notation, 2 => known, 1 => pem]
}

const NOTATIONS: &[&str] = &[
    "Authorization: Bearer @@",
    "authorization: basic @@",
    "bearer @@",
    "api_key=@@",
    "api-key: @@",
    "\"apiKey\": \"@@\"",
    "'client_secret': '@@'",
    "SECRET_TOKEN: @@",
    "X-Acme-Api-Key: @@",
    "password=@@",
    "password: @@",
    "PASSWORD = \"@@\"",
    "?access_token=@@&a=b",
    "--api-key @@",
    "--password=@@",
    "aws_secret_access_key = @@",
    "{\"token\":\"@@\"}",
    "<password>@@</password>",
    "amqp://user:@@@host:5672/v",
    "token := \"@@\"",
    "secret => '@@'",
    "const authToken: string = `@@`",
    "_authToken=@@",
    "AccountKey=@@;Endpoint=x",
];

/// Every way in which programs write a character into JSON.
fn escaped(text: &str, style: u8) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        let is_special = matches!(c, '"' | '\\' | '/' | '<' | '>' | '&' | '\'' | '=' | '+');
        match (style, c) {
            (1, '/') => json.push_str("\\/"),
            (2, c) if is_special || !c.is_ascii() => push_units(&mut json, c),
            (3, c) => push_units(&mut json, c),
            (_, c) => {
                let quoted = serde_json::to_string(&c).unwrap();
                json.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
    }
    json + "\""
}

fn push_units(json: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        json.push_str(&format!("\\u{unit:04x}"));
    }
}

proptest! {
    #[test]
    fn a_secret_survives_at_no_place_and_no_depth(
        (secret, text) in planted(),
        before in "([a-z]{1,8}[ ,.\n\t(]){0,6}",
        after in "(|[ \n,)][a-zé ]{0,20})",
        styles in prop::collection::vec(0_u8..4, 1..4),
        name in "[a-z]{1,6}",
    ) {
        let mut json = format!("{before}{text}{after}");
        for style in &styles {
            json = format!("{{\"{name}\":[1, {}]}}", escaped(&json, *style));
            prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
        }
        let redacted = Redactor::standard().redact_json(&json);
        prop_assert!(redacted.is_some(), "nothing was found in {json}");
        let redacted = redacted.unwrap().text;
        let mut layer = redacted.clone();
        for _ in &styles {
            prop_assert!(!layer.contains(&secret), "{json} became {redacted}");
            let value: Value = serde_json::from_str(&layer).unwrap();
            layer = value[&name][1].as_str().unwrap().to_owned();
        }
        prop_assert!(!layer.contains(&secret), "{json} became {redacted}");
        prop_assert_eq!(redact_json(&redacted), redacted);
    }

    #[test]
    fn a_member_with_a_secret_name_is_masked(
        secret in "[A-Za-z0-9!#%+/=]{9,20}[0-9]",
        name in prop::sample::select(vec!["password", "apiKey", "X-Api-Key", "client_secret", "accessToken", "SECRET"]),
        depth in 0..6_usize,
    ) {
        prop_assume!(secret.chars().any(char::is_alphabetic) && !secret.starts_with('/'));
        prop_assume!(!value_is_reference(&secret));
        let mut value = json!({name: secret.as_str(), "n": 1});
        for _ in 0..depth {
            value = json!({"inner": [value]});
        }
        let redacted = redact_json(&value.to_string());
        prop_assert!(!redacted.contains(&secret), "{redacted}");
    }
}

fn value_is_reference(secret: &str) -> bool {
    secret.starts_with('%') && secret.ends_with('%')
}
