//! What providers do differently: where requests go, what is in them, and what answers mean.

use domain::message::{AssistantMessage, ToolArgs, ToolCall};
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName},
};
use serde_json::Value;

use super::{ModelRequest, ModelSettings, Secret, answer::Assemble};

/// The configured model whose opaque fields a reply holds: what only its provider understands is
/// kept as it came and shown to the same model again, never to another (field report 90).
pub(crate) const OPAQUE_SOURCE_KEY: &str = "opaque_source";
/// Where a refusal's text is kept; it is shown as the content when there is no other.
pub(crate) const REFUSAL_KEY: &str = "refusal";
/// Why the model stopped, in the provider's own word, where ours says less.
pub(crate) const NATIVE_FINISH_KEY: &str = "native_finish_reason";
/// The words for why a model stopped that everything behind the adapters knows.
pub(crate) const FINISH_STOP: &str = "stop";
pub(crate) const FINISH_CALLS: &str = "tool_calls";
pub(crate) const FINISH_LENGTH: &str = "length";
pub(crate) const FINISH_FILTER: &str = "content_filter";
/// Stands at the end of a conversation that a reply ends: some providers take that for the beginning
/// of the next one, others refuse it.
pub(crate) const GO_ON: &str = "(Go on.)";
/// Stands for a name that a model left out.
const NAMELESS: &str = "unknown_tool";
const FUNCTION_NAME_CHARS_MAX: usize = 64;

/// What does not change between the requests of one configured model.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    /// The configured name.
    pub(crate) name: String,
    /// The provider's id.
    pub(crate) model: String,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) temperature: Option<f64>,
    /// Whether the model reads images.
    pub(crate) supports_vision: bool,
}

impl Wire {
    pub(crate) fn of(settings: &ModelSettings) -> Self {
        Self {
            name: settings.name.clone(),
            model: settings.model.clone().unwrap_or_else(|| settings.name.clone()),
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
            supports_vision: settings.supports_vision,
        }
    }
}

/// One provider's wire format.
pub(crate) trait Dialect: Send + Sync {
    /// What an answer is, with its article: `a chat completion`.
    fn answer_name(&self) -> &'static str;

    /// Where the provider itself serves its API, if it is one provider.
    fn default_base_url(&self) -> Option<&'static str> {
        None
    }

    /// Where requests for a model of this provider's id go; `None` when the address has no path.
    fn endpoint(&self, base: Url, model: &str) -> Option<Url>;

    /// The header that carries the key.
    fn key_header(&self, key: &Secret) -> (HeaderName, String);

    /// Headers that every request has.
    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// The body of a streaming request.
    fn body(&self, wire: &Wire, request: &ModelRequest) -> Value;

    /// An empty reply.
    fn assembler(&self) -> Box<dyn Assemble>;
}

/// Whether a reply's opaque fields are those of this configured model.
pub(crate) fn is_own(reply: &AssistantMessage, model: &str) -> bool {
    reply.additional_kwargs.get(OPAQUE_SOURCE_KEY).and_then(Value::as_str) == Some(model)
}

/// A reply that was cut off for its length may have lost the arguments of its last call before they
/// began, which reads like a call without arguments. Such a call must not run.
pub(crate) fn doubt_last_call(calls: &mut [ToolCall], finish_reason: Option<&str>) {
    let is_cut = finish_reason == Some(FINISH_LENGTH);
    if let Some(last) = calls.last_mut().filter(|_| is_cut)
        && matches!(&last.args, ToolArgs::Object(args) if args.is_empty())
    {
        last.args = ToolArgs::Invalid(String::new());
    }
}

/// A tool's name in the alphabet that servers accept.
pub(crate) fn function_name(name: &str) -> String {
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let fit = |letter: char| if is_allowed(&letter) { letter } else { '_' };
    let name: String = name.trim().chars().take(FUNCTION_NAME_CHARS_MAX).map(fit).collect();
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}
