//! Pages that say that there is no page: they come as any page does, and only their title tells.

/// The tool that reads pages.
const WEB_FETCH: &str = "web_fetch";
/// The status codes that a title may name.
const STATUS_CODES: std::ops::RangeInclusive<u32> = 400..=599;
/// Words of a title that say nothing.
const FILLERS: [&str; 9] = ["http", "error", "page", "the", "file", "or", "directory", "url", "resource"];
/// What is left of a title that says why there is no page.
const REASONS: [&str; 20] = [
    "access denied",
    "bad gateway",
    "bad request",
    "conflict",
    "forbidden",
    "gateway time out",
    "gateway timeout",
    "gone",
    "internal server",
    "method not allowed",
    "not acceptable",
    "not found",
    "not implemented",
    "payment required",
    "request timeout",
    "service temporarily unavailable",
    "service unavailable",
    "too many requests",
    "unauthorized",
    "unavailable for legal reasons",
];

/// The title of a page that is none. `page` is in lower case.
pub(super) fn error_title<'a>(tool_name: &str, page: &'a str) -> Option<&'a str> {
    if tool_name != WEB_FETCH {
        return None;
    }
    let title = page.lines().map(str::trim).find(|line| !line.is_empty())?;
    let words = title.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let telling: Vec<&str> = words.filter(|word| !FILLERS.contains(word) && !is_status(word)).collect();
    REASONS.contains(&telling.join(" ").as_str()).then_some(title)
}

fn is_status(word: &str) -> bool {
    word.parse().is_ok_and(|code| STATUS_CODES.contains(&code))
}
