//! Whether what stands under such a name looks like a secret.

use super::names::Class;

/// How a value was written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Between quotes, or as a string of JSON: its ends are known.
    Quoted,
    /// Right after an equals sign, as in environments, forms and command lines.
    Tight,
    /// After a colon or a space, where prose and code stand too.
    Loose,
}

/// Digits of a number that may be a password.
const NUMBER_DIGITS_MIN: usize = 4;
const PASSWORD_CHARS_MIN: usize = 4;
const SECRET_CHARS_MIN: usize = 8;
const LOOSE_SECRET_CHARS_MIN: usize = 10;
const PERHAPS_CHARS_MIN: usize = 20;
/// A run of letters that is longer than words are.
const LETTERS_MIN: usize = 16;
const ONE_WORD_CHARS_MAX: usize = 19;

/// Words that stand where a secret would.
const PLACEHOLDERS: &[&str] = &[
    "none",
    "null",
    "nil",
    "true",
    "false",
    "undefined",
    "string",
    "str",
    "text",
    "number",
    "integer",
    "bool",
    "boolean",
    "bytes",
    "object",
    "array",
    "list",
    "option",
    "optional",
    "required",
    "require",
    "missing",
    "invalid",
    "valid",
    "unset",
    "empty",
    "default",
    "unknown",
    "hidden",
    "masked",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "key",
    "value",
    "redacted",
    "removed",
    "expired",
    "example",
    "placeholder",
    "must",
    "should",
    "cannot",
    "error",
    "wrong",
    "incorrect",
    "mismatch",
    "bearer",
    "basic",
    "digest",
    "authorization",
    "authentication",
    "credentials",
    "changeme",
    "sensitive",
    "protected",
    "encrypted",
    "disabled",
    "enabled",
    "given",
    "with",
    "from",
    "that",
    "this",
    "prompt",
    "stdin",
];

/// Beginnings of references to a secret that is kept elsewhere.
const REFERENCES: &[&str] = &[
    "$(",
    "${",
    "{{",
    "%(",
    "env.",
    "env:",
    "env(",
    "process.env",
    "os.environ",
    "os.getenv",
    "op://",
    "vault:",
    "ref+",
    "arn:",
    "secretkeyref",
    "secrets.",
    "your-",
    "your_",
    "http://",
    "https://",
    "file:",
    "self.",
    "this.",
    "config.",
    "settings.",
    "args.",
    "options.",
];

/// Whether a number under a name of this class is a secret.
pub(super) fn is_secret_number(class: Class, number: &str) -> bool {
    match class {
        Class::Password | Class::Passphrase => {
            number.len() >= NUMBER_DIGITS_MIN && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        Class::Authorization | Class::Secret | Class::Perhaps => false,
    }
}

/// Whether this value, under a name of this class, is a secret.
pub(super) fn is_secret(class: Class, value: &str, written: Written) -> bool {
    let has_spaces = value.contains(char::is_whitespace);
    if has_spaces && class != Class::Passphrase || is_placeholder(value) || is_path(value) {
        return false;
    }
    if written != Written::Quoted && is_code(value) {
        return false;
    }
    let shape = Shape::of(value);
    match class {
        Class::Password | Class::Passphrase => match written {
            Written::Quoted | Written::Tight => shape.chars >= PASSWORD_CHARS_MIN,
            Written::Loose => shape.chars >= PASSWORD_CHARS_MIN && shape.is_mixed(),
        },
        Class::Secret | Class::Authorization => match written {
            Written::Quoted | Written::Tight => shape.is_random(value, SECRET_CHARS_MIN),
            Written::Loose => shape.is_random(value, LOOSE_SECRET_CHARS_MIN) && !are_words(value),
        },
        Class::Perhaps => shape.chars >= PERHAPS_CHARS_MIN && shape.has_all_three() && !are_words(value),
    }
}

/// Whether credentials after a scheme (`Bearer`, `Basic`) are real: prose has words there.
pub(super) fn are_credentials(value: &str) -> bool {
    let shape = Shape::of(value);
    !is_placeholder(value)
        && (shape.is_mixed() && shape.chars >= 6 && !are_words(value) || is_long_run(value))
}

/// Counts of kinds of characters.
struct Shape {
    chars: usize,
    lower: usize,
    upper: usize,
    digits: usize,
    symbols: usize,
    starts_upper: bool,
}

impl Shape {
    fn of(value: &str) -> Self {
        let count = |is_kind: fn(char) -> bool| value.chars().filter(|c| is_kind(*c)).count();
        Self {
            chars: value.chars().count(),
            lower: count(char::is_lowercase),
            upper: count(char::is_uppercase),
            digits: count(|c| c.is_ascii_digit()),
            symbols: count(|c| {
                !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.' | ':' | '/' | ',' | '\'')
            }),
            starts_upper: value.starts_with(char::is_uppercase),
        }
    }

    /// More than a word: digits or symbols among letters, or capitals inside.
    fn is_mixed(&self) -> bool {
        let letters = self.lower + self.upper;
        let inner_upper = self.upper - usize::from(self.starts_upper);
        letters > 0 && (self.digits > 0 || self.symbols > 0) || self.lower > 0 && inner_upper > 0
    }

    fn has_all_three(&self) -> bool {
        self.digits > 0
            && (self.lower > 0 && self.upper > 0 || self.chars >= 32 && self.lower + self.upper > 0)
    }

    fn is_random(&self, value: &str, chars_min: usize) -> bool {
        let letters = self.lower + self.upper;
        self.chars >= chars_min && self.digits > 0 && (letters > 0 || self.digits == self.chars)
            || self.chars >= LETTERS_MIN && self.symbols > 0
            || is_long_run(value)
    }
}

/// Letters alone, yet no words: a run that is too long, or with capitals where no word has them.
fn is_long_run(value: &str) -> bool {
    value.chars().count() >= LETTERS_MIN && !are_words(value)
}

/// Whether the text is words, joined by the usual marks or by capitals, each with two digits at most.
pub(super) fn are_words(value: &str) -> bool {
    value.split(['-', '_', '.', ':', '/', ',', ' ', '\'']).all(is_word)
}

fn is_word(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    if word.len() - letters.len() > if letters.is_empty() { 4 } else { 2 } {
        return false;
    }
    if !letters.chars().all(char::is_alphabetic) || letters.chars().count() > 2 * ONE_WORD_CHARS_MAX {
        return false;
    }
    let humps = 1 + letters.chars().skip(1).filter(|c| c.is_uppercase()).count();
    let is_one_case =
        !letters.chars().skip(1).any(char::is_uppercase) || !letters.chars().any(char::is_lowercase);
    let chars = letters.chars().count();
    if is_one_case { chars <= ONE_WORD_CHARS_MAX } else { chars >= 3 * humps }
}

fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    let bare = lower.trim_matches(|c: char| !c.is_alphanumeric());
    PLACEHOLDERS.contains(&bare)
        || REFERENCES.iter().any(|beginning| lower.starts_with(beginning))
        || value.chars().all(|c| matches!(c, '*' | 'x' | 'X' | '.' | '-' | '_' | '•' | '…' | '?' | '#'))
        || is_variable(value)
        || value.contains("://")
}

/// `$NAME`, `%NAME%`, `{name}`, `<name>`, `[hidden]`.
fn is_variable(value: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    value.strip_prefix('$').is_some_and(is_name)
        || value.strip_prefix('%').and_then(|rest| rest.strip_suffix('%')).is_some_and(is_name)
        || value.starts_with('{') && value.ends_with('}')
        || value.starts_with('<') && value.ends_with('>')
        || value.starts_with('[') && value.ends_with(']')
}

/// A call, a path of names, or a name that itself says secret: `token = next_token(2)`.
fn is_code(value: &str) -> bool {
    let head: String =
        value.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':')).collect();
    let after = value.chars().nth(head.chars().count());
    if !head.is_empty() && matches!(after, Some('(' | '[' | '{' | '<')) || value.contains("::") {
        return true;
    }
    let names_a_secret = super::names::class(value).is_some();
    head.len() == value.len() && are_words(value) && (value.contains('.') || names_a_secret)
}

fn is_path(value: &str) -> bool {
    let is_rooted = ["/", "./", "../", "~/", "\\"].iter().any(|root| value.starts_with(root))
        || value.get(1..3) == Some(":\\");
    let parts = || value.split(['/', '\\']).filter(|part| !part.is_empty());
    let is_name =
        |part: &str| part == "~" || part == "." || part == ".." || are_words(part.trim_start_matches('.'));
    let last = parts().next_back().unwrap_or_default();
    let has_extension = last.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_lowercase())
    });
    is_rooted && (parts().all(is_name) || has_extension)
}
