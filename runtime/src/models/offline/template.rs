//! The templates of scenarios: strict about what is undefined, and bounded in time and size.

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, context, value::Serde};
use regex::RegexBuilder;
use serde::Serialize;
use serde_json::Map;

use super::{
    listing,
    situation::{Situation, ToolResult},
};

/// Instructions of one template, enough for loops over some thousand lines.
const FUEL: u64 = 500_000;
/// What one template may produce.
const RENDERED_CHARS_MAX: usize = 400_000;
/// A compiled regular expression.
const REGEX_BYTES_MAX: usize = 1024 * 1024;
/// A value of the form `{$value: EXPRESSION}` keeps the expression's type; text is always text.
const TYPED_KEY: &str = "$value";

#[derive(Serialize)]
struct Known<'a> {
    task: &'a str,
    turn: usize,
    results: &'a [ToolResult],
    last: &'a [ToolResult],
    tools: &'a [&'a str],
    vars: &'a Map<String, serde_json::Value>,
}

/// What a template may speak of.
#[derive(Debug, Clone)]
pub(super) struct Variables(Value);

impl Variables {
    pub(super) fn new(situation: &Situation, tools: &[&str], vars: &Map<String, serde_json::Value>) -> Self {
        Self(Value::from(Serde(Known {
            task: &situation.task,
            turn: situation.turn,
            results: &situation.results,
            last: situation.last(),
            tools,
            vars,
        })))
    }

    pub(super) fn with_item(&self, index: usize, item: Value) -> Self {
        Self(context! { item => item, index => index, ..self.0.clone() })
    }
}

/// The templates' language.
#[derive(Debug)]
pub(super) struct Templates(Environment<'static>);

impl Templates {
    pub(super) fn new() -> Self {
        let mut language = Environment::new();
        language.set_undefined_behavior(UndefinedBehavior::Strict);
        language.set_fuel(Some(FUEL));
        language.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        language.add_filter("lines", lines);
        language.add_filter("first", first);
        language.add_filter("chars", shortened);
        language.add_filter("task_state", |text: &str| task_parts(text).0.to_owned());
        language.add_filter("task_report", |text: &str| task_parts(text).1.to_owned());
        language.add_filter("basename", |path: &str| {
            path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned()
        });
        language.add_filter("dirname", |path: &str| {
            path.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent).to_owned()
        });
        language.add_filter("matches", matches);
        language.add_test("matching", matches);
        language.add_filter("fenced", fenced);
        language.add_filter("json", json);
        language.add_filter("ls_paths", listing::paths);
        language.add_filter("ls_files", listing::files);
        language.add_filter("ls_text_files", listing::text_files);
        Self(language)
    }

    /// Whether the text is a template at all.
    pub(super) fn check(&self, source: &str) -> Result<(), Error> {
        self.0.render_str(source, Value::UNDEFINED).map_or_else(only_syntax, |_| Ok(()))
    }

    /// Whether the text is an expression at all.
    pub(super) fn check_expression(&self, source: &str) -> Result<(), Error> {
        self.0.compile_expression_owned(source.to_owned()).map(|_| ())
    }

    pub(super) fn render(&self, source: &str, variables: &Variables) -> Result<String, Error> {
        let rendered = self.0.render_str(source, variables.0.clone())?;
        if rendered.chars().count() > RENDERED_CHARS_MAX {
            let problem = format!("more than {RENDERED_CHARS_MAX} characters; use chars(n) or first(n)");
            return Err(Error::new(ErrorKind::InvalidOperation, problem));
        }
        Ok(rendered)
    }

    pub(super) fn evaluate(&self, source: &str, variables: &Variables) -> Result<Value, Error> {
        self.0.compile_expression_owned(source.to_owned())?.eval(variables.0.clone())
    }

    /// The JSON value with every text in it rendered.
    pub(super) fn fill(
        &self,
        value: &serde_json::Value,
        variables: &Variables,
    ) -> Result<serde_json::Value, Error> {
        use serde_json::Value as Json;
        match value {
            Json::String(source) => self.render(source, variables).map(Json::String),
            Json::Array(items) => items.iter().map(|item| self.fill(item, variables)).collect(),
            Json::Object(fields) => match typed(value) {
                Some(source) => serde_json::to_value(self.evaluate(source, variables)?).map_err(not_json),
                None => {
                    let fill =
                        |(key, value): (&String, &Json)| Ok((key.clone(), self.fill(value, variables)?));
                    fields.iter().map(fill).collect::<Result<Map<_, _>, Error>>().map(Json::Object)
                }
            },
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(value.clone()),
        }
    }
}

/// The expression of a `{$value: EXPRESSION}`.
pub(super) fn typed(value: &serde_json::Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(TYPED_KEY)?.as_str()
}

/// Without variables almost everything fails; only a syntax error is the template's own fault.
fn only_syntax(error: Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::SyntaxError { Err(error) } else { Ok(()) }
}

fn not_json(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::BadSerialization, "not a JSON value").with_source(error)
}

/// The lines of a text that are not blank.
fn lines(text: &str) -> Value {
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// The first item of a list, or with a number the first so many, as a list.
fn first(list: Value, count: Option<usize>) -> Result<Value, Error> {
    let mut items = list.try_iter()?;
    match count {
        Some(count) => Ok(items.take(count).collect()),
        None => Ok(items.next().unwrap_or_default()),
    }
}

fn matches(text: &str, pattern: &str) -> Result<bool, Error> {
    let regex = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build().map_err(|error| {
        Error::new(ErrorKind::InvalidOperation, format!("{pattern:?} is no regular expression"))
            .with_source(error)
    })?;
    Ok(regex.is_match(text))
}

/// The beginning of a text, cut between two words where there is one, with a mark where it was cut.
fn shortened(text: &str, count: usize) -> String {
    let cut = domain::text::prefix(text, count);
    if !cut.is_truncated {
        return cut.text;
    }
    let whole_words = cut.text.rsplit_once(char::is_whitespace).map(|(words, _)| words.trim_end());
    let long_enough = whole_words.filter(|words| words.chars().count() * 2 > count);
    format!("{}…", long_enough.unwrap_or(&cut.text))
}

/// How a `task` call ended, and what the subagent said, without the line about its citations.
fn task_parts(text: &str) -> (&str, &str) {
    let found = [". Result: ", ". Error: "].into_iter().filter_map(|mark| text.split_once(mark));
    let (state, report) = found.min_by_key(|(state, _)| state.len()).unwrap_or(("", text));
    let report = report.rsplit_once("\n\nCitations: ").map_or(report, |(report, _)| report);
    (state, report.trim())
}

/// The text in a code fence that is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn json(value: Value) -> Result<String, Error> {
    serde_json::to_string(&value).map_err(not_json)
}

#[cfg(test)]
mod tests {
    use domain::message::Message;
    use serde_json::json;

    use super::*;

    fn variables() -> Variables {
        let vars = json!({"words": ["a", "b"], "n": 3});
        Variables::new(
            &Situation::of(&[Message::human("läs {{ task }}")]),
            &["ls"],
            vars.as_object().unwrap(),
        )
    }

    #[track_caller]
    fn check(source: &str, expected: &str) {
        assert_eq!(Templates::new().render(source, &variables()).unwrap(), expected, "{source}");
    }

    #[test]
    fn templates_have_what_work_with_files_needs() {
        check("{{ task }} {{ turn }} {{ 'ls' in tools }}", "läs {{ task }} 0 True");
        check("{{ 'a\n\nb\nc' | lines | first(2) | join('+') }}", "a+b");
        check("{{ vars.words | first }}{{ [] | first(3) | length }}", "a0");
        check("{{ 'äöü' | chars(2) }} {{ 'äöü' | chars(3) }}", "äö… äöü");
        check("{{ 'one two three' | chars(9) }} {{ 'a longword' | chars(8) }}", "one two… a longwo…");
        check(
            "{{ 'Task Succeeded (capped: x). Result: a. Error: b\n\nCitations: c' | task_report }}",
            "a. Error: b",
        );
        check("{{ 'Task Succeeded (capped: x). Result: a' | task_state }}", "Task Succeeded (capped: x)");
        check("{{ 'just text' | task_state }}{{ 'just text' | task_report }}", "just text");
        check("{{ '/a/b c.txt' | basename }} {{ '/a/b/' | dirname }}", "b c.txt /a");
        check("{{ 'x12' | matches('^x[0-9]+$') }} {{ 'y' is matching('x') }}", "True False");
        check("{{ 'a ``` b' | fenced }}", "````\na ``` b\n````");
        check("{{ vars | json }}", "{\"n\":3,\"words\":[\"a\",\"b\"]}");
        check("{{ '<b>' }}", "<b>");
        check("{{ 'a.md\t1\nd/' | ls_text_files | join }}", "a.md");
    }

    #[test]
    fn what_is_undefined_endless_or_huge_is_an_error() {
        for bad in [
            "{{ nothing }}",
            "{{ last[0].text }}",
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "{{ 'x' * 500000 }}",
            "{{ 'x' | matches('(') }}",
        ] {
            assert!(Templates::new().render(bad, &variables()).is_err(), "{bad}");
        }
    }

    #[test]
    fn json_is_filled_and_typed_values_keep_their_type() {
        let value =
            json!({"a": "{{ turn }}", "b": {"$value": "vars.n * 2"}, "c": [true, "{{ index }}-{{ item }}"]});
        let filled = Templates::new().fill(&value, &variables().with_item(1, "x".into())).unwrap();
        assert_eq!(filled, json!({"a": "0", "b": 6, "c": [true, "1-x"]}));
    }

    #[test]
    fn a_check_finds_only_syntax_errors() {
        let templates = Templates::new();
        assert!(templates.check("{{ last[0].text | lines }}").is_ok());
        assert!(templates.check("{{ last[0").is_err());
        assert!(templates.check("{% if x %}").is_err());
        assert!(templates.check_expression("a | first(").is_err());
    }
}
