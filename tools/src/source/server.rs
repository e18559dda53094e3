//! Answers from a running server, over HTTP.

mod agents;
mod lists;
mod upkeep;

use std::time::Duration;

use anyhow::Context as _;
use contracts::wire::{
    card::Card,
    delegation::Delegation,
    erasure::{Erase, Erased, Erasure, ErasureState, OwnerErased},
    event::EventRecord,
    health::{Rebuild, RebuildOrder, View},
    page::Page,
    problem::Problem,
    run::{CreateRun, Run},
    thread::{CreateThread, Thread},
};
use eventlog::BlobDigest;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};

use super::{Blob, EventsPage};
use crate::{
    failure::{Exit, Failure, exit_of_problem},
    output::program,
    select::SelectedTask,
};

/// How long connecting may take; a server on this machine answers at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may be silent. Streams send a heartbeat more often.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks at an erasure that waits for a run to stop.
const ERASURE_PAUSE: Duration = Duration::from_millis(500);
/// Rows of a list that are asked for at once: the most that the server gives.
const ROWS_PAGE: usize = 200;

/// A running server.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    base: Url,
    client: Client,
}

/// The address of a server as a URL: a bare address is taken as HTTP.
fn server_url(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

impl Server {
    /// Speaks to nobody yet.
    pub(crate) fn new(address: &str) -> anyhow::Result<Self> {
        let url = server_url(address);
        let base = Url::parse(&url)
            .map_err(anyhow::Error::new)
            .context(Failure::usage(format!("{address} is not the address of a server")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            let refusal = Failure::usage(format!("{address} is not the address of a server"));
            return Err(refusal.hint("write it as http://127.0.0.1:8700").into());
        }
        let builder = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT);
        let client = builder.build().context("could not make an HTTP client")?;
        Ok(Self { base, client })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The option that names this server.
    pub(crate) fn option(&self) -> String {
        format!(" --server {}", self.address())
    }

    pub(super) async fn threads(&self, as_of: Option<u64>) -> anyhow::Result<Vec<Thread>> {
        let mut threads: Vec<Thread> = Vec::new();
        loop {
            let mut query = vec![("limit", ROWS_PAGE.to_string())];
            query.extend(threads.last().map(|thread| ("after", thread.thread_id.clone())));
            query.extend(as_of.map(|position| ("as_of_position", position.to_string())));
            let page: Page<Thread> = self.get(&["threads"], &query).await?;
            let is_last = !page.has_more || page.data.is_empty();
            threads.extend(page.data);
            if is_last {
                return Ok(threads);
            }
        }
    }

    pub(super) async fn runs(&self, thread_id: &str, as_of: Option<u64>) -> anyhow::Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        let mut before = None;
        loop {
            let mut query = vec![("limit", ROWS_PAGE.to_string())];
            query.extend(before.map(|seq: u64| ("before_seq", seq.to_string())));
            query.extend(as_of.map(|seq| ("as_of", seq.to_string())));
            let page: Page<Run> = self.get(&["threads", thread_id, "runs"], &query).await?;
            before = page.next_before_seq;
            let is_last = !page.has_more || page.data.is_empty() || before.is_none();
            runs.extend(page.data);
            if is_last {
                return Ok(runs);
            }
        }
    }

    pub(super) async fn events(&self, page: &EventsPage) -> anyhow::Result<Vec<EventRecord>> {
        let mut query = vec![("limit", page.limit.to_string())];
        query.extend((page.after_seq > 0).then(|| ("after_seq", page.after_seq.to_string())));
        query.extend(page.event_types.as_ref().map(|types| ("event_types", types.join(","))));
        query.extend(page.task.clone().map(|task| ("task_id", task)));
        match &page.run_id {
            Some(run_id) => self.get(&["threads", &page.thread_id, "runs", run_id, "events"], &query).await,
            None => self.get(&["threads", &page.thread_id, "events"], &query).await,
        }
    }

    pub(super) async fn ledger(
        &self,
        thread_id: &str,
        run_id: Option<&str>,
        as_of: Option<u64>,
    ) -> anyhow::Result<Vec<Delegation>> {
        let mut query = Vec::new();
        query.extend(run_id.map(|run_id| ("run_id", run_id.to_owned())));
        query.extend(as_of.map(|seq| ("as_of", seq.to_string())));
        self.get(&["threads", thread_id, "delegations"], &query).await
    }

    pub(super) async fn card(&self, task: &SelectedTask, as_of: Option<u64>) -> anyhow::Result<Card> {
        let query: Vec<_> = as_of.map(|seq| ("as_of", seq.to_string())).into_iter().collect();
        let path = ["threads", &task.thread_id, "runs", &task.run_id, "tasks", &task.delegation_id, "card"];
        self.get(&path, &query).await
    }

    pub(super) async fn blob(&self, thread_id: &str, sha256: &BlobDigest) -> anyhow::Result<Blob> {
        let url = self.url(&["threads", thread_id, "blobs", &sha256.to_string()], &[])?;
        self.answer(self.client.get(url)).await.map(Blob::Server)
    }

    /// One run.
    pub(crate) async fn run(&self, thread_id: &str, run_id: &str) -> anyhow::Result<Run> {
        self.get(&["threads", thread_id, "runs", run_id], &[]).await
    }

    /// Makes a thread.
    pub(crate) async fn create_thread(&self) -> anyhow::Result<Thread> {
        self.post(&["threads"], &CreateThread::default()).await
    }

    /// Starts a run.
    pub(crate) async fn start_run(&self, thread_id: &str, request: &CreateRun) -> anyhow::Result<Run> {
        self.post(&["threads", thread_id, "runs"], request).await
    }

    /// Cancels a run.
    pub(crate) async fn cancel_run(&self, thread_id: &str, run_id: &str) -> anyhow::Result<()> {
        let path = ["threads", thread_id, "runs", run_id, "cancel"];
        self.send(Method::POST, &path, &[], None::<&()>).await.map(drop)
    }

    /// Cancels all delegations of a run.
    pub(crate) async fn cancel_delegations(&self, thread_id: &str, run_id: &str) -> anyhow::Result<()> {
        let path = ["threads", thread_id, "runs", run_id, "delegations", "cancel"];
        self.send(Method::POST, &path, &[], None::<&()>).await.map(drop)
    }

    /// Cancels one delegation.
    pub(crate) async fn cancel_delegation(
        &self,
        thread_id: &str,
        run_id: &str,
        task: &str,
    ) -> anyhow::Result<()> {
        let path = ["threads", thread_id, "runs", run_id, "tasks", task, "cancel"];
        self.send(Method::POST, &path, &[], None::<&()>).await.map(drop)
    }

    /// Erases a thread or one run of it, and waits until nothing of it is left.
    pub(crate) async fn erase(&self, thread_id: &str, run_id: Option<&str>) -> anyhow::Result<Erased> {
        let path = match run_id {
            Some(run_id) => vec!["threads", thread_id, "runs", run_id],
            None => vec!["threads", thread_id],
        };
        let response = self.send(Method::DELETE, &path, &[], None::<&()>).await?;
        if response.status() != StatusCode::ACCEPTED {
            return self.read(response).await;
        }
        let Erasure { deleted, erasure_id, .. } = self.until_erased(self.read(response).await?).await?;
        Ok(Erased { deleted, erasure_id })
    }

    /// Erases all threads of an owner, and waits until nothing of them is left.
    pub(crate) async fn erase_owner(&self, owner: &str) -> anyhow::Result<OwnerErased> {
        let body = Erase { owner: Some(owner.to_owned()), ..Erase::default() };
        let mut erased: OwnerErased = self.post(&["erasures"], &body).await?;
        let mut erasures = Vec::with_capacity(erased.erasures.len());
        for erasure in erased.erasures {
            erasures.push(self.until_erased(erasure).await?);
        }
        erased.deleted = erasures.iter().map(|erasure| erasure.deleted).sum();
        Ok(OwnerErased { state: ErasureState::Done, erasures, ..erased })
    }

    async fn until_erased(&self, mut erasure: Erasure) -> anyhow::Result<Erasure> {
        while erasure.state != ErasureState::Done {
            tokio::time::sleep(ERASURE_PAUSE).await;
            erasure = self.get(&["erasures", &erasure.erasure_id], &[]).await?;
        }
        Ok(erasure)
    }

    /// Where the views stand.
    pub(crate) async fn views(&self) -> anyhow::Result<Vec<View>> {
        self.get(&["projections"], &[]).await
    }

    /// Has a view made again, or all of them.
    pub(crate) async fn rebuild(&self, view: Option<&str>, check: bool) -> anyhow::Result<Rebuild> {
        let order = RebuildOrder { check };
        match view {
            Some(view) => self.post(&["projections", view, "rebuild"], &order).await,
            None => self.post(&["projections", "rebuild"], &order).await,
        }
    }

    /// Follows a stream, from where the query says or from after the frame of this id.
    pub(crate) async fn follow(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        last_id: Option<&str>,
    ) -> anyhow::Result<Response> {
        let request = self.client.get(self.url(path, query)?).header("accept", "text/event-stream");
        self.answer(match last_id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        })
        .await
    }

    async fn get<T: DeserializeOwned>(&self, path: &[&str], query: &[(&str, String)]) -> anyhow::Result<T> {
        let response = self.send(Method::GET, path, query, None::<&()>).await?;
        self.read(response).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> anyhow::Result<T> {
        let response = self.send(Method::POST, path, &[], Some(body)).await?;
        self.read(response).await
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> anyhow::Result<T> {
        let text =
            response.text().await.with_context(|| format!("could not read the answer of {}", self.base))?;
        serde_json::from_str(&text).with_context(|| {
            format!("{} gave an answer that this version of remit does not understand", self.base)
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<Response> {
        let mut request = self.client.request(method, self.url(path, query)?);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.answer(request).await
    }

    async fn answer(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// Each segment is escaped, so that an id cannot become a path.
    fn url(&self, path: &[&str], query: &[(&str, String)]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        let no_base = || Failure::usage(format!("{} cannot be the address of a server", self.base));
        url.path_segments_mut().map_err(|()| no_base())?.pop_if_empty().push("api").extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query.iter().map(|(name, value)| (*name, value.as_str())));
        }
        Ok(url)
    }

    fn unreachable(&self, error: reqwest::Error) -> anyhow::Error {
        let failure = Failure::new(Exit::Failed, format!("could not reach a server at {}", self.base));
        let hint =
            format!("start one with `{} serve`, or leave out --server to read the data folder", program());
        anyhow::Error::new(error).context(failure.hint(hint))
    }

    async fn refusal(&self, response: Response) -> anyhow::Error {
        let status = response.status();
        let text = response.text().await.unwrap_or_default();
        match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => Failure::new(exit_of_problem(problem.code), problem.detail).into(),
            Err(_) => {
                let what = format!("{} answered {status}, and not as a Remit server does", self.base);
                Failure::new(Exit::Failed, what).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme() {
        for (address, expected) in [
            ("127.0.0.1:8700", "http://127.0.0.1:8700"),
            ("http://127.0.0.1:8700/", "http://127.0.0.1:8700"),
            ("https://remit.example", "https://remit.example"),
        ] {
            assert_eq!(server_url(address), expected);
        }
        for bad in ["ftp://x", "://x", "unix:///run/x"] {
            assert_eq!(crate::failure::exit_of(&Server::new(bad).unwrap_err()), Exit::Usage, "{bad}");
        }
    }

    #[test]
    fn ids_stay_within_their_segment() {
        let server = Server::new("http://h:1/base/").unwrap();
        let url = server.url(&["threads", "a/../b?c", "runs"], &[("task_id", "x&y=z".into())]).unwrap();
        assert_eq!(url.as_str(), "http://h:1/base/api/threads/a%2F..%2Fb%3Fc/runs?task_id=x%26y%3Dz");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named() {
        // Nothing listens on port 1 of this machine.
        let server = Server::new("127.0.0.1:1").unwrap();
        let error = crate::failure::explain(&server.threads(None).await.unwrap_err());
        assert!(error.starts_with("error: could not reach a server at http://127.0.0.1:1/"), "{error}");
        assert!(error.contains("serve`, or leave out --server"), "{error}");
    }
}
