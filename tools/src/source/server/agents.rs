//! Types of subagent of a running server.

use contracts::wire::{
    managed::{
        ManagedSubagent, ManagedVersion, RollBackManagedSubagent, SwitchManagedSubagent,
        UpdateManagedSubagent,
    },
    page::Page,
    subagent::Subagent,
};
use reqwest::Method;
use serde::de::DeserializeOwned;

use super::{ROWS_PAGE, Server};
use crate::source::agents::{Change, created};

impl Server {
    pub(in crate::source) async fn subagents(&self) -> anyhow::Result<Vec<Subagent>> {
        self.get(&["subagents"], &[]).await
    }

    pub(in crate::source) async fn managed(&self) -> anyhow::Result<Vec<ManagedSubagent>> {
        self.all_pages(&["subagents", "managed"], |one: &ManagedSubagent| one.name.clone()).await
    }

    pub(in crate::source) async fn managed_history(&self, name: &str) -> anyhow::Result<Vec<ManagedVersion>> {
        let path = ["subagents", "managed", name, "history"];
        self.all_pages(&path, |one: &ManagedVersion| one.version.to_string()).await
    }

    pub(in crate::source) async fn change_managed(
        &self,
        name: &str,
        change: Change,
        expected_version: Option<u64>,
    ) -> anyhow::Result<Option<ManagedSubagent>> {
        let base = ["subagents", "managed", name];
        let [first, second, _] = base;
        let switch = SwitchManagedSubagent { expected_version };
        match change {
            Change::Create { definition, enabled } => {
                let body = created(name, definition, enabled, expected_version);
                self.post(&[first, second], &body).await.map(Some)
            }
            Change::Update(definition) => {
                let body = UpdateManagedSubagent { definition, expected_version };
                let response = self.send(Method::PUT, &base, &[], Some(&body)).await?;
                self.read(response).await.map(Some)
            }
            Change::Enable => self.post(&[first, second, name, "enable"], &switch).await.map(Some),
            Change::Disable => self.post(&[first, second, name, "disable"], &switch).await.map(Some),
            Change::Delete => self.send(Method::DELETE, &base, &[], Some(&switch)).await.map(|_| None),
            Change::RollBack(to_version) => {
                let body = RollBackManagedSubagent { to_version, expected_version };
                self.post(&[first, second, name, "rollback"], &body).await.map(Some)
            }
        }
    }

    async fn all_pages<T: DeserializeOwned>(
        &self,
        path: &[&str],
        cursor: impl Fn(&T) -> String,
    ) -> anyhow::Result<Vec<T>> {
        let mut rows: Vec<T> = Vec::new();
        loop {
            let mut query = vec![("limit", ROWS_PAGE.to_string())];
            query.extend(rows.last().map(|last| ("after", cursor(last))));
            let page: Page<T> = self.get(path, &query).await?;
            let is_last = !page.has_more || page.data.is_empty();
            rows.extend(page.data);
            if is_last {
                return Ok(rows);
            }
        }
    }
}
