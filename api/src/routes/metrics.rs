//! Figures for machines that draw and alarm, in the text format of Prometheus. Counters begin again
//! with the process.

use axum::{Router, extract::State, http::header, response::IntoResponse, routing::get};
use eventlog::{Health, Histogram};
use jiff::Timestamp;
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
        self.log_metrics(&mut page)?;
        self.work_metrics(&mut page);
        self.view_metrics(&mut page)?;
        Ok(page.0)
    }

    fn log_metrics(&self, page: &mut Page) -> Answer<()> {
        let (is_writable, is_poisoned) = (self.log.health() == Health::Writable, self.log.is_poisoned());
        page.gauge("remit_log_writable", "Whether the log takes writes.", u8::from(is_writable));
        page.gauge("remit_log_poisoned", "Whether a write failed since the start.", u8::from(is_poisoned));
        page.gauge("remit_log_position", "The last durable position.", self.log.head());
        page.gauge("remit_log_disk_bytes", "Space of the log on disk.", self.log.disk_bytes()?);
        if let Ok(free) = self.runtime.upkeep().free_bytes() {
            page.gauge("remit_disk_free_bytes", "Space left on the disk of the data folder.", free);
        }
        let stats = self.log.stats();
        page.counter("remit_log_appends_total", "Appends that were recorded.", stats.appends);
        page.counter("remit_log_events_total", "Events that were recorded.", stats.events);
        page.counter("remit_log_commits_total", "Commits, each with one sync.", stats.commits);
        page.counter("remit_log_record_bytes_total", "Bytes of records.", stats.record_bytes);
        let last = seconds(stats.last_sync_micros);
        page.gauge("remit_log_last_commit_seconds", "Time of the last commit, its sync included.", last);
        let commits = self.log.commit_stats();
        let longest = seconds(commits.micros.max);
        page.gauge("remit_log_commit_seconds_max", "Time of the longest commit.", longest);
        page.histogram(
            "remit_log_commit_seconds",
            "Time of commits, sync included.",
            &commits.micros,
            seconds,
        );
        let count = |events: u64| events as f64;
        page.histogram("remit_log_commit_events", "Events of commits.", &commits.events, count);
        page.gauge("remit_log_queue_depth", "Appends that wait for the writer.", stats.queue_depth);
        page.gauge("remit_log_queue_capacity", "Appends that may wait for it.", stats.queue_capacity);
        page.gauge("remit_log_subscribers", "Subscriptions to the log.", stats.subscribers);
        let blobs = self.log.blob_stats();
        page.counter("remit_blobs_written_total", "Blobs that were written.", blobs.written);
        page.counter("remit_blob_bytes_written_total", "Bytes of those blobs.", blobs.written_bytes);
        page.counter("remit_blobs_found_total", "Blobs that were there already.", blobs.found);
        page.gauge("remit_blobs_staged", "Blobs that no event has named yet.", blobs.staged);
        Ok(())
    }

    fn work_metrics(&self, page: &mut Page) {
        let capacity = self.runtime.capacity();
        page.gauge("remit_subagents_running", "Subagents at work.", capacity.running);
        page.gauge("remit_subagents_queued", "Subagents that wait for a place.", capacity.queued);
        page.gauge("remit_subagents_running_max", "Subagents that may work.", capacity.limits.max_running);
        page.gauge("remit_streams_open", "Streams that clients read.", self.streams.open());
    }

    fn view_metrics(&self, page: &mut Page) -> Answer<()> {
        let views = self.projections.health()?;
        let lag = |view: &ViewHealth| Some(view.lag_events as f64);
        page.of_views("remit_view_lag_events", "Events that a view has not taken.", &views, lag);
        let lag = |view: &ViewHealth| self.lag_seconds(view);
        page.of_views("remit_view_lag_seconds", "Age of the first of them.", &views, lag);
        let parked = |view: &ViewHealth| Some(view.parked as f64);
        page.of_views("remit_view_parked_events", "Events that a view skipped.", &views, parked);
        Ok(())
    }

    /// How long ago the first event was recorded that the view has not taken. None where that event
    /// cannot be read: a damaged log must not take its own figures away.
    fn lag_seconds(&self, view: &ViewHealth) -> Option<f64> {
        if view.lag_events == 0 {
            return Some(0.0);
        }
        let next = self.log.read_all(view.position, 1).ok()?;
        let age = Timestamp::now().duration_since(next.first()?.recorded_at);
        Some(age.as_secs_f64().max(0.0))
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
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

    fn histogram(&mut self, name: &str, help: &str, values: &Histogram, unit: fn(u64) -> f64) {
        self.head(name, help, "histogram");
        for (bound, count) in &values.at_most {
            self.0.push_str(&format!("{name}_bucket{{le=\"{}\"}} {count}\n", unit(*bound)));
        }
        let Histogram { count, sum, .. } = values;
        self.0.push_str(&format!("{name}_bucket{{le=\"+Inf\"}} {count}\n"));
        self.0.push_str(&format!("{name}_sum {}\n{name}_count {count}\n", unit(*sum)));
    }

    fn of_views(
        &mut self,
        name: &str,
        help: &str,
        views: &[ViewHealth],
        value: impl Fn(&ViewHealth) -> Option<f64>,
    ) {
        self.head(name, help, "gauge");
        for view in views {
            if let Some(value) = value(view) {
                self.0.push_str(&format!("{name}{{view=\"{}\"}} {value}\n", view.name));
            }
        }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.0.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }
}
