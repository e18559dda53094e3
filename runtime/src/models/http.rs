//! Models behind HTTP: one call is one request, whatever the provider.
//!
//! What providers do differently is their [`Dialect`]; what they share is here and beside it:
//! `answer` turns the bytes of an answer into a reply, `refusal` reads what they say when they
//! refuse. This file only moves bytes, and holds the four time limits.

use std::time::Duration;

use domain::message::AssistantMessage;
use futures::future::BoxFuture;
use reqwest::{
    Client, Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    ChatModel, Deltas, ModelError, ModelErrorKind, ModelRequest, ModelSettings, Secret, SettingsError,
    answer::Answer,
    dialect::{Dialect, Wire},
    fault::Fault,
    refusal::{self, Refusal},
};

#[cfg(test)]
mod tests;

/// What is waited for usage and the end of the stream once the reply itself is complete.
const TAIL_WAIT_MAX: Duration = Duration::from_secs(5);

/// A shorter value of a header is not masked in errors.
const HEADER_SECRET_BYTES_MIN: usize = 8;

/// The longest that each part of a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimits {
    pub(crate) request: Duration,
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) chunk: Duration,
}

/// What of a model's settings is secret, read from where it is.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    pub(crate) key: Option<Secret>,
    /// Headers of the settings. Their values may be keys, too.
    pub(crate) headers: Vec<(String, Secret)>,
}

/// A model behind an API.
pub(crate) struct HttpModel {
    dialect: &'static dyn Dialect,
    wire: Wire,
    context_tokens: Option<u32>,
    http: Client,
    url: Url,
    secrets: Secrets,
    /// With the key, in the header where the provider wants it.
    headers: HeaderMap,
    extra_body: Map<String, Value>,
    limits: TimeLimits,
}

impl HttpModel {
    /// Prepares the client; nothing is sent.
    pub(crate) fn new(
        dialect: &'static dyn Dialect,
        settings: &ModelSettings,
        secrets: Secrets,
    ) -> Result<Self, SettingsError> {
        let limits = TimeLimits {
            request: Duration::from_secs(settings.request_timeout_seconds),
            connect: Duration::from_secs(settings.connect_timeout_seconds),
            first_byte: Duration::from_secs(settings.first_byte_timeout_seconds),
            chunk: Duration::from_secs(settings.chunk_timeout_seconds),
        };
        Self::with_limits(dialect, settings, secrets, limits)
    }

    /// As [`Self::new`], with time limits below a second: for tests.
    pub(crate) fn with_limits(
        dialect: &'static dyn Dialect,
        settings: &ModelSettings,
        secrets: Secrets,
        limits: TimeLimits,
    ) -> Result<Self, SettingsError> {
        let wire = Wire::of(settings);
        let url = dialect.endpoint(base_url(dialect, settings)?, &wire.model);
        let url = url.ok_or_else(|| settings.invalid("base_url", NOT_HTTP))?;
        let headers = headers(dialect, settings, &secrets)?;
        let http = client(&url, limits)
            .map_err(|source| SettingsError::Client { model: settings.name.clone(), source })?;
        Ok(Self {
            dialect,
            wire,
            context_tokens: settings.context_tokens,
            http,
            url,
            secrets,
            headers,
            extra_body: settings.extra_body.clone(),
            limits,
        })
    }

    async fn ask(&self, request: &ModelRequest, deltas: Deltas<'_>) -> Result<AssistantMessage, ModelError> {
        match timeout(self.limits.request, self.exchange(request, deltas)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.late("the whole call", self.limits.request, ModelErrorKind::Transient)),
        }
    }

    async fn exchange(
        &self,
        request: &ModelRequest,
        deltas: Deltas<'_>,
    ) -> Result<AssistantMessage, ModelError> {
        let deadline = Instant::now() + self.limits.first_byte;
        let mut body = self.dialect.body(&self.wire, request);
        lay_over(&mut body, &self.extra_body);
        let post = self.http.post(self.url.clone()).headers(self.headers.clone()).json(&body);
        let response = match timeout_at(deadline, post.send()).await {
            Ok(sent) => sent.map_err(|error| self.transport("sending the request", error))?,
            Err(_) => return Err(self.late_first_byte()),
        };
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        self.read_reply(response, deadline, deltas).await
    }

    async fn read_reply(
        &self,
        mut response: Response,
        first_byte_deadline: Instant,
        deltas: Deltas<'_>,
    ) -> Result<AssistantMessage, ModelError> {
        let mut reply = Answer::new(self.dialect);
        let mut deadline = first_byte_deadline;
        while !reply.is_ended() {
            match timeout_at(deadline, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    reply.feed(&bytes, deltas).map_err(|fault| self.unreadable(fault))?;
                }
                Ok(Ok(None)) => break,
                // What follows a complete reply is only its token counts.
                Ok(Err(_)) | Err(_) if reply.is_complete() => break,
                Ok(Err(error)) => return Err(self.transport("reading the reply", error)),
                Err(_) if reply.is_empty() => return Err(self.late_first_byte()),
                Err(_) => {
                    let what = "the next piece of the reply";
                    return Err(self.late(what, self.limits.chunk, ModelErrorKind::StreamStalled));
                }
            }
            let wait = if reply.is_complete() { TAIL_WAIT_MAX } else { self.limits.chunk };
            deadline = Instant::now() + wait.min(self.limits.chunk);
        }
        reply.finish(&self.wire.name, deltas).map_err(|fault| self.unreadable(fault))
    }

    /// Reads what can be read of a refusal; a body that fails or dawdles is left.
    async fn refused(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let retry_after = refusal::retry_after(response.headers(), std::time::SystemTime::now());
        let mut body = Vec::new();
        while body.len() < refusal::BODY_BYTES_MAX {
            match timeout(self.limits.chunk, response.chunk()).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
        let refusal = Refusal::from_body(status, &body);
        let retry_after = retry_after.or(refusal.retry_after);
        ModelError { status: Some(status), retry_after, ..self.error(refusal.kind(), &refusal.to_string()) }
    }

    fn unreadable(&self, fault: Fault) -> ModelError {
        let error = self.error(fault.kind(), &fault.to_string());
        let (status, retry_after) = (fault.status(), fault.retry_after());
        match fault.into_source() {
            Some(source) => ModelError { status, retry_after, ..error.caused_by(source) },
            None => ModelError { status, retry_after, ..error },
        }
    }

    fn transport(&self, doing: &str, error: reqwest::Error) -> ModelError {
        let problem = match () {
            () if error.is_connect() && error.is_timeout() => "connecting took too long",
            () if error.is_timeout() => "took too long",
            () if error.is_connect() => "could not connect",
            () => "the connection failed",
        };
        let what = format!("{problem} while {doing}");
        let kind = if error.is_builder() { ModelErrorKind::Generic } else { ModelErrorKind::Transient };
        self.error(kind, &what).caused_by(error.without_url())
    }

    fn late_first_byte(&self) -> ModelError {
        self.late("the first byte of the reply", self.limits.first_byte, ModelErrorKind::Transient)
    }

    fn late(&self, what: &str, limit: Duration, kind: ModelErrorKind) -> ModelError {
        self.error(kind, &format!("{what} took longer than {limit:?}"))
    }

    fn error(&self, kind: ModelErrorKind, what: &str) -> ModelError {
        let what = self.secrets.masked(what);
        let Wire { name, model, .. } = &self.wire;
        ModelError::new(kind, format!("calling model {name} ({model} at {}): {what}", shown(&self.url)))
    }
}

impl ChatModel for HttpModel {
    fn name(&self) -> &str {
        &self.wire.name
    }

    fn context_tokens(&self) -> Option<u32> {
        self.context_tokens
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
        Box::pin(self.ask(request, deltas))
    }
}

const NOT_HTTP: &str = "must be an http:// or https:// address";

/// Where the API is, as configured or as the provider has it.
fn base_url(dialect: &dyn Dialect, settings: &ModelSettings) -> Result<Url, SettingsError> {
    let Some(base) = settings.base_url.as_deref().or(dialect.default_base_url()) else {
        return Err(settings.invalid("base_url", "is missing; give it as http://HOST:PORT/v1"));
    };
    let url = Url::parse(base.trim()).map_err(|_| settings.invalid("base_url", NOT_HTTP))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(settings.invalid("base_url", NOT_HTTP));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(settings.invalid("base_url", "must not hold a user name or password; use api_key"));
    }
    Ok(url)
}

fn headers(
    dialect: &dyn Dialect,
    settings: &ModelSettings,
    secrets: &Secrets,
) -> Result<HeaderMap, SettingsError> {
    let mut headers = dialect.headers();
    if let Some(key) = &secrets.key {
        let (name, text) = dialect.key_header(key);
        headers.insert(name, header_value(settings, "api_key", &text)?);
    }
    for (name, value) in &secrets.headers {
        let key = format!("headers.{name}");
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let name = parsed.map_err(|_| settings.invalid(&key, "is not the name of an HTTP header"))?;
        headers.insert(name, header_value(settings, &key, value.reveal())?);
    }
    Ok(headers)
}

fn header_value(settings: &ModelSettings, key: &str, text: &str) -> Result<HeaderValue, SettingsError> {
    let unfit = |_| settings.invalid(key, "holds characters that an HTTP header cannot carry");
    let mut value = HeaderValue::from_str(text).map_err(unfit)?;
    value.set_sensitive(true);
    Ok(value)
}

impl Secrets {
    /// The text without them. A header's value of a few letters is none that one could tell.
    fn masked(&self, text: &str) -> String {
        let key = self.key.iter().map(Secret::reveal).filter(|key| !key.is_empty());
        let headers = self.headers.iter().map(|(_, value)| value.reveal());
        let headers = headers.filter(|value| value.len() >= HEADER_SECRET_BYTES_MIN);
        key.chain(headers).fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }
}

/// Lays an object over another one, key by key.
fn lay_over(body: &mut Value, extra: &Map<String, Value>) {
    let Some(fields) = body.as_object_mut() else { return };
    for (key, value) in extra {
        match (fields.get_mut(key), value) {
            (Some(below @ Value::Object(_)), Value::Object(value)) => lay_over(below, value),
            (Some(_) | None, _) => drop(fields.insert(key.clone(), value.clone())),
        }
    }
}

/// A redirect could carry the key and the conversation to another host, so none is followed.
fn client(url: &Url, limits: TimeLimits) -> Result<Client, reqwest::Error> {
    let builder = Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(limits.connect)
        .user_agent("remit");
    if is_loopback(url) { builder.no_proxy().build() } else { builder.build() }
}

/// A proxy cannot reach this machine's own loopback.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The address without its query, which at some providers carries a key.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}
