//! Whether a name says that a secret stands under it.
//!
//! A name is cut into words (`clientSecret`, `client-secret` and `CLIENT_SECRET` are the same two),
//! and its last words decide: `api_key` is secret, `api_key_id` is not.

/// What a name says about what stands under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A word that a person may have chosen: it need not look random.
    Password,
    /// Several words that a person may have chosen.
    Passphrase,
    /// A scheme and credentials.
    Authorization,
    /// A secret that a machine made.
    Secret,
    /// Perhaps a secret: only the value can say so.
    Perhaps,
}

/// Before `key`: these keys are secret.
const SECRET_KEYS: &[&str] = &[
    "api",
    "secret",
    "access",
    "private",
    "auth",
    "authentication",
    "authorization",
    "signing",
    "sign",
    "signature",
    "encryption",
    "encrypt",
    "decryption",
    "master",
    "account",
    "subscription",
    "shared",
    "service",
    "admin",
    "app",
    "application",
    "client",
    "consumer",
    "license",
    "licence",
    "hmac",
    "webhook",
    "deploy",
    "session",
    "cookie",
    "jwt",
    "bearer",
    "ssh",
    "pgp",
    "gpg",
    "wallet",
    "seed",
    "root",
    "user",
    "host",
    "management",
    "project",
    "integration",
    "ingest",
    "developer",
    "dev",
    "live",
    "prod",
];

/// Before `key`: these keys are not, whatever they look like.
const PLAIN_KEYS: &[&str] = &[
    "public",
    "primary",
    "foreign",
    "sort",
    "cache",
    "partition",
    "hash",
    "range",
    "idempotency",
    "dedup",
    "deduplication",
    "object",
    "index",
    "map",
    "dict",
    "unique",
    "composite",
    "natural",
    "surrogate",
    "row",
    "record",
    "group",
    "lookup",
    "routing",
    "translation",
    "message",
    "config",
    "setting",
    "registry",
    "json",
    "yaml",
    "column",
    "field",
    "property",
    "attribute",
    "parameter",
    "param",
    "query",
    "header",
    "order",
    "blob",
    "s3",
    "storage",
    "issue",
    "ticket",
    "locale",
    "i18n",
    "react",
    "metadata",
    "event",
    "state",
    "store",
    "the",
    "a",
    "this",
    "each",
    "no",
    "any",
    "every",
    "same",
    "join",
    "shard",
];

/// Before `token`: these tokens are places, parts of text or signals.
const PLAIN_TOKENS: &[&str] = &[
    "page",
    "next",
    "nextpage",
    "continuation",
    "cursor",
    "sync",
    "cancellation",
    "cancel",
    "start",
    "end",
    "eos",
    "bos",
    "pad",
    "unk",
    "mask",
    "stop",
    "special",
    "per",
    "max",
    "min",
    "resume",
    "prompt",
    "completion",
    "output",
    "input",
    "total",
    "last",
    "first",
    "punctuation",
    "word",
    "syntax",
    "fencing",
    "by",
    "the",
    "a",
    "each",
    "one",
    "pagination",
    "marker",
    "sep",
    "cls",
    "string",
    "identifier",
];

/// What the name says; none: nothing.
pub(super) fn class(name: &str) -> Option<Class> {
    let words = words(name);
    let (last, before) = words.split_last()?;
    let previous = before.last().map(String::as_str);
    match last.as_str() {
        "password" | "passwords" | "passwd" | "passwds" | "pwd" | "passcode" | "passwort" => {
            Some(Class::Password)
        }
        "pass" => previous.map(|_| Class::Password),
        "passphrase" => Some(Class::Passphrase),
        "authorization" => Some(Class::Authorization),
        "secret" | "secrets" | "credential" | "credentials" | "jwt" => Some(Class::Secret),
        "token" => (is_member(name, "token") || previous.is_none_or(|word| !PLAIN_TOKENS.contains(&word)))
            .then_some(Class::Secret),
        "auth" => Some(Class::Secret),
        "key" | "keys" => key_class(previous?),
        joined => joined_class(joined),
    }
}

/// Whether the word stands alone behind a dot: what is before it is then a thing that has it, and no part
/// of its name.
fn is_member(name: &str, word: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, last)| last.eq_ignore_ascii_case(word))
}

fn key_class(previous: &str) -> Option<Class> {
    if SECRET_KEYS.contains(&previous) {
        Some(Class::Secret)
    } else if PLAIN_KEYS.contains(&previous) {
        None
    } else {
        Some(Class::Perhaps)
    }
}

/// Names that are written as one word: `apikey`, `authtoken`, `dbpassword`.
fn joined_class(word: &str) -> Option<Class> {
    for ending in ["password", "passwd", "pwd", "passphrase", "passcode"] {
        if word.ends_with(ending) {
            return Some(Class::Password);
        }
    }
    if let Some(previous) = word.strip_suffix("keys").or_else(|| word.strip_suffix("key")) {
        let is_secret = SECRET_KEYS.iter().any(|known| previous.ends_with(known) && known.len() > 2);
        return is_secret.then_some(Class::Secret);
    }
    if let Some(previous) = word.strip_suffix("token") {
        let is_plain = PLAIN_TOKENS.contains(&previous);
        return (!is_plain).then_some(Class::Secret);
    }
    word.ends_with("secret").then_some(Class::Secret)
}

/// The words of a name in lower case, without a number at its end.
fn words(name: &str) -> Vec<String> {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '_' | '-' | '.'));
    let mut words: Vec<String> = Vec::new();
    let mut is_inside = false;
    let mut previous = ' ';
    let mut chars = name.chars().peekable();
    while let Some(next) = chars.next() {
        if !next.is_alphanumeric() {
            is_inside = false;
            previous = next;
            continue;
        }
        let follows_lower = next.is_uppercase() && (previous.is_lowercase() || previous.is_ascii_digit());
        let ends_acronym =
            next.is_uppercase() && previous.is_uppercase() && chars.peek().is_some_and(|c| c.is_lowercase());
        if !is_inside || follows_lower || ends_acronym {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(next.to_lowercase());
        }
        is_inside = true;
        previous = next;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &str, expected: Option<Class>) {
        for name in names.split_whitespace() {
            assert_eq!(class(name), expected, "{name}");
        }
    }

    #[test]
    fn the_last_words_of_a_name_decide() {
        check(
            "password userPassword DB_PASSWORD db-pass passwd dbpassword pwd PWD2 PGPASSWORD",
            Some(Class::Password),
        );
        check(
            "api_key apiKey APIKey apikey x-api-key X_ACME_API_KEY secret clientSecret client_secret token \
             GITHUB_TOKEN accessToken access-token authToken auth_token SecretAccessKey aws_secret_access_key \
             private_key privateKey secrets credentials API_KEYS signing.key AccountKey _auth API_KEY_2 idToken a.token \
             by.Token",
            Some(Class::Secret),
        );
        check("Authorization proxy-authorization", Some(Class::Authorization));
        check("passphrase", Some(Class::Passphrase));
        check("acme_key STRIPE_KEY", Some(Class::Perhaps));
        check(
            "tokens max_tokens input_tokens token_count token_budget tokenizer token_type next_page_token \
             nextToken pageToken key keys primary_key idempotency_key cache_key public_key publicKey sortKey \
             key_id api_key_id api_key_env password_hash secret_name token_url args_sha256 output_sha256 pass \
             keyboard monkey author authors secretary passwords_changed_at task_id tool_call_id",
            None,
        );
    }
}
