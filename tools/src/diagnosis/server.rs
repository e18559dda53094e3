//! How a running server is, by its own account.

use std::time::Duration;

use contracts::wire::health::{Ready, View};

use super::{Finding, disk_finding};
use crate::{failure::Exit, render::units};

/// A server that does not say in this time whether it takes work has trouble.
const READY_TIMEOUT: Duration = Duration::from_secs(2);
/// The figure of `/metrics` that says how much space is left for the log.
const FREE_METRIC: &str = "remit_disk_free_bytes";

/// Asks the server at this address how it is. The first finding is about the server as a whole.
pub(crate) async fn ask(url: &str) -> Vec<Finding> {
    let (status, text) = match get(&format!("{url}/readyz")).await {
        Ok(answer) => answer,
        Err(error) => {
            let found = format!("it does not answer: {}", domain::causes::with_causes(&error));
            return vec![Finding::problem(
                "server",
                Exit::Failed,
                found,
                "look at its messages, or start it",
            )];
        }
    };
    if !status.is_success() {
        let found = format!("it takes no work ({status}): {text}");
        let advice = "free what it needs, and start it again";
        return vec![Finding::problem("server", Exit::Failed, found, advice)];
    }
    let mut findings = vec![Finding::ok("server", "it takes work")];
    match serde_json::from_str::<Ready>(&text) {
        Ok(ready) => {
            let events = units::counted(ready.head, "event", "events");
            findings.push(Finding::ok("log", format!("{events}, and it takes writes")));
            findings.push(views(&ready.views));
        }
        Err(_) => findings.push(Finding::warning(
            "log",
            "the server describes itself in a way that this version does not know",
            "use the version of remit that the server has",
        )),
    }
    findings.extend(free_bytes(url).await.map(disk_finding));
    findings
}

async fn get(url: &str) -> reqwest::Result<(reqwest::StatusCode, String)> {
    let client = reqwest::Client::builder().timeout(READY_TIMEOUT).build()?;
    let answer = client.get(url).send().await?;
    Ok((answer.status(), answer.text().await?))
}

fn views(views: &[View]) -> Finding {
    let parked: u64 = views.iter().map(|view| view.parked).sum();
    let lag = views.iter().map(|view| view.lag).max().unwrap_or(0);
    if parked > 0 {
        let first = views.iter().find_map(|view| view.first_parked.clone()).unwrap_or_default();
        let found = format!("{} could not be shown: {first}", units::counted(parked, "event", "events"));
        return Finding::warning("views", found, "they are in the log; report what is said of the first one");
    }
    match lag {
        0 => Finding::ok("views", "up to date"),
        lag => Finding::ok("views", format!("{} behind", units::counted(lag, "event", "events"))),
    }
}

/// None from a server that does not say.
async fn free_bytes(url: &str) -> Option<u64> {
    let (_, text) = get(&format!("{url}/metrics")).await.ok()?;
    free_of(&text)
}

fn free_of(metrics: &str) -> Option<u64> {
    metrics.lines().find_map(|line| line.strip_prefix(FREE_METRIC)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{FREE_BYTES_MIN, State};

    #[test]
    fn space_and_views_are_read_from_what_a_server_says() {
        let metrics = "# HELP remit_disk_free_bytes Space.\n# TYPE remit_disk_free_bytes gauge\nremit_disk_free_bytes 12345\n";
        assert_eq!(free_of(metrics), Some(12_345));
        assert_eq!(free_of("other 1\n"), None);
        assert_eq!(disk_finding(FREE_BYTES_MIN - 1).state, State::Warning);
        let view = View {
            name: "card".into(),
            version: 1,
            position: 5,
            lag: 3,
            lag_seconds: 1,
            parked: 0,
            first_parked: None,
            rebuild: None,
            last_rebuild: None,
        };
        assert_eq!(views(std::slice::from_ref(&view)).found, "3 events behind");
        let parked = View { parked: 1, first_parked: Some("position 4: bad".into()), ..view };
        assert_eq!((views(&[parked]).state, views(&[]).state), (State::Warning, State::Ok));
    }
}
