//! Figures in the text format of Prometheus.

use std::collections::BTreeMap;

use axum::http::{StatusCode, header};

use super::app::App;

/// The figures of the page by their names, each of which must have its kind before it.
async fn figures(app: &App) -> BTreeMap<String, f64> {
    let reply = app.get("/metrics").await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    assert_eq!(reply.headers[header::CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    let mut kind = String::new();
    let mut figures = BTreeMap::new();
    for line in reply.text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            kind = typed.split(' ').next().unwrap().to_owned();
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(name.split('{').next(), Some(kind.as_str()), "{line}");
            assert!(figures.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        }
    }
    figures
}

#[tokio::test]
async fn what_was_recorded_is_counted() {
    let app = App::new();
    let before = figures(&app).await;
    assert_eq!((before["remit_log_writable"], before["remit_subagents_queued"]), (1.0, 0.0));
    app.thread("t").await;
    let after = figures(&app).await;
    assert!(after["remit_log_events_total"] > before["remit_log_events_total"]);
    assert_eq!(after["remit_log_position"], app.log.head().get() as f64);
    assert!(after.contains_key("remit_view_lag_events{view=\"ledger\"}"), "{after:?}");
}
