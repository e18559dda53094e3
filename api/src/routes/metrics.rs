//! Figures for machines that draw and alarm, in the text format of Prometheus. Counters begin again
//! with the process.

use axum::{Router, extract::State, http::header, response::IntoResponse, routing::get};
use eventlog::Health;
use projections::ViewHealth;

use crate::{error::Answer, paths, state::Server};

/// The text format's version.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::METRICS, get(metrics))
}

async fn metrics(State(server): State<Server>) -> Answer<impl IntoResponse> {
    let text = server.read(Server::metrics).await?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}

impl Server {
    fn metrics(&self) -> Answer<String> {
        let mut page = Page::default();
        let is_writable = self.log.health() == Health::Writable;
        page.gauge("remit_log_writable", "Whether the log takes writes.", u8::from(is_writable));
        page.gauge("remit_log_position", "The last durable position.", self.log.head());
        page.gauge("remit_log_disk_bytes", "Space of the log on disk.", self.log.disk_bytes()?);
        let stats = self.log.stats();
        page.counter("remit_log_appends_total", "Appends that were recorded.", stats.appends);
        page.counter("remit_log_events_total", "Events that were recorded.", stats.events);
        page.counter("remit_log_commits_total", "Commits, each with one sync.", stats.commits);
        page.counter("remit_log_record_bytes_total", "Bytes of records.", stats.record_bytes);
        let seconds = stats.last_sync_micros as f64 / 1e6;
        page.gauge("remit_log_last_commit_seconds", "Time of the last commit, its sync included.", seconds);
        page.gauge("remit_log_queue_depth", "Appends that wait for the writer.", stats.queue_depth);
        let blobs = self.log.blob_stats();
        page.counter("remit_blobs_written_total", "Blobs that were written.", blobs.written);
        page.counter("remit_blob_bytes_written_total", "Bytes of those blobs.", blobs.written_bytes);
        page.counter("remit_blobs_found_total", "Blobs that were there already.", blobs.found);
        page.gauge("remit_blobs_staged", "Blobs that no event has named yet.", blobs.staged);
        let capacity = self.runtime.capacity();
        page.gauge("remit_subagents_running", "Subagents at work.", capacity.running);
        page.gauge("remit_subagents_queued", "Subagents that wait for a place.", capacity.queued);
        page.gauge("remit_subagents_running_max", "Subagents that may work.", capacity.limits.max_running);
        page.gauge("remit_streams_open", "Streams that clients read.", self.streams.open());
        let views = self.projections.health()?;
        page.of_views("remit_view_lag_events", "Events that a view has not taken.", &views, |view| {
            view.lag_events
        });
        page.of_views("remit_view_parked_events", "Events that a view skipped.", &views, |view| view.parked);
        Ok(page.0)
    }
}

/// The page as far as it is written.
#[derive(Default)]
struct Page(String);

impl Page {
    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, help, "gauge");
        self.0.push_str(&format!("{name} {value}\n"));
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.0.push_str(&format!("{name} {value}\n"));
    }

    fn of_views(&mut self, name: &str, help: &str, views: &[ViewHealth], value: impl Fn(&ViewHealth) -> u64) {
        self.head(name, help, "gauge");
        for view in views {
            self.0.push_str(&format!("{name}{{view=\"{}\"}} {}\n", view.name, value(view)));
        }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.0.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }
}
