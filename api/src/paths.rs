//! Every route, once. The names in braces are those of the fields that `extract::path` reads.

/// Is the process alive?
pub(crate) const HEALTHZ: &str = "/healthz";
/// Does it take work?
pub(crate) const READYZ: &str = "/readyz";
/// Figures.
pub(crate) const METRICS: &str = "/metrics";

/// The whole log.
pub(crate) const EVENTS: &str = "/api/events";

/// Threads.
pub(crate) const THREADS: &str = "/api/threads";
/// One thread.
pub(crate) const THREAD: &str = "/api/threads/{thread_id}";
/// All events of a thread.
pub(crate) const THREAD_EVENTS: &str = "/api/threads/{thread_id}/events";
/// What is too large for an event of a thread.
pub(crate) const BLOB: &str = "/api/threads/{thread_id}/blobs/{sha256}";
/// The ledger of a thread.
pub(crate) const DELEGATIONS: &str = "/api/threads/{thread_id}/delegations";

/// What was said on a thread.
pub(crate) const MESSAGES: &str = "/api/threads/{thread_id}/messages";
/// The same, as readers see it.
pub(crate) const MESSAGES_PAGE: &str = "/api/threads/{thread_id}/messages/page";
/// How much was said on a thread.
pub(crate) const MESSAGES_COUNT: &str = "/api/threads/{thread_id}/messages/count";
/// Where each run's last answer is.
pub(crate) const MESSAGES_LAST_AI: &str = "/api/threads/{thread_id}/messages/last-ai";
/// What was said in a run.
pub(crate) const RUN_MESSAGES: &str = "/api/threads/{thread_id}/runs/{run_id}/messages";
/// Guards that fired on a thread.
pub(crate) const CAPS: &str = "/api/threads/{thread_id}/caps";
/// The receipts of all delegations of a thread.
pub(crate) const RECEIPTS: &str = "/api/threads/{thread_id}/receipts";

/// Runs of a thread.
pub(crate) const RUNS: &str = "/api/threads/{thread_id}/runs";
/// Start a run and follow it.
pub(crate) const RUNS_STREAM: &str = "/api/threads/{thread_id}/runs/stream";
/// Start a run and wait for its end.
pub(crate) const RUNS_WAIT: &str = "/api/threads/{thread_id}/runs/wait";
/// One run.
pub(crate) const RUN: &str = "/api/threads/{thread_id}/runs/{run_id}";
/// The types of subagent that a run has.
pub(crate) const RUN_SUBAGENTS: &str = "/api/threads/{thread_id}/runs/{run_id}/subagents";
/// Cancel a run.
pub(crate) const RUN_CANCEL: &str = "/api/threads/{thread_id}/runs/{run_id}/cancel";
/// Cancel all delegations of a run.
pub(crate) const RUN_TASKS_CANCEL: &str = "/api/threads/{thread_id}/runs/{run_id}/delegations/cancel";
/// All events of a run.
pub(crate) const RUN_EVENTS: &str = "/api/threads/{thread_id}/runs/{run_id}/events";
/// Follow a run.
pub(crate) const RUN_STREAM: &str = "/api/threads/{thread_id}/runs/{run_id}/stream";

/// The state of one delegation.
pub(crate) const TASK: &str = "/api/threads/{thread_id}/runs/{run_id}/tasks/{task_id}";
/// Cancel one delegation.
pub(crate) const TASK_CANCEL: &str = "/api/threads/{thread_id}/runs/{run_id}/tasks/{task_id}/cancel";
/// The card of one delegation.
pub(crate) const TASK_CARD: &str = "/api/threads/{thread_id}/runs/{run_id}/tasks/{task_id}/card";
/// The states of a card, as they happened.
pub(crate) const TASK_CARD_REPLAY: &str =
    "/api/threads/{thread_id}/runs/{run_id}/tasks/{task_id}/card/replay";
/// The receipts of one delegation.
pub(crate) const TASK_RECEIPTS: &str = "/api/threads/{thread_id}/runs/{run_id}/tasks/{task_id}/receipts";

/// What is running, and how much may.
pub(crate) const CAPACITY: &str = "/api/capacity";
/// The configuration that is in force.
pub(crate) const CONFIG: &str = "/api/config";
/// The types of subagent.
pub(crate) const SUBAGENTS: &str = "/api/subagents";
/// The definitions that administrators keep.
pub(crate) const MANAGED: &str = "/api/subagents/managed";
/// One of them.
pub(crate) const MANAGED_ONE: &str = "/api/subagents/managed/{name}";
/// Offer it to leads.
pub(crate) const MANAGED_ENABLE: &str = "/api/subagents/managed/{name}/enable";
/// Offer it to no lead.
pub(crate) const MANAGED_DISABLE: &str = "/api/subagents/managed/{name}/disable";
/// Make it what it was.
pub(crate) const MANAGED_ROLL_BACK: &str = "/api/subagents/managed/{name}/rollback";
/// Its versions.
pub(crate) const MANAGED_HISTORY: &str = "/api/subagents/managed/{name}/history";
/// What was used, and what it cost.
pub(crate) const USAGE: &str = "/api/usage";
/// Where the views stand.
pub(crate) const PROJECTIONS: &str = "/api/projections";
/// Make all views again.
pub(crate) const PROJECTIONS_REBUILD: &str = "/api/projections/rebuild";
/// Make one view again.
pub(crate) const PROJECTION_REBUILD: &str = "/api/projections/{name}/rebuild";
/// What a view passed over.
pub(crate) const PROJECTION_PARKED: &str = "/api/projections/{name}/parked";

/// Erasures.
pub(crate) const ERASURES: &str = "/api/erasures";
/// One erasure.
pub(crate) const ERASURE: &str = "/api/erasures/{erasure_id}";

/// Exports of this server's log.
pub(crate) const EXPORTS: &str = "/api/exports";
/// One export.
pub(crate) const EXPORT: &str = "/api/exports/{export_id}";
/// A file of an export. Names of blobs have several parts.
pub(crate) const EXPORT_FILE: &str = "/api/exports/{export_id}/files/{*name}";

/// Backups of this server.
pub(crate) const BACKUPS: &str = "/api/backups";
/// One backup.
pub(crate) const BACKUP: &str = "/api/backups/{backup_id}";
/// Verifications of this server's log.
pub(crate) const VERIFY: &str = "/api/verify";
/// One verification.
pub(crate) const VERIFICATION: &str = "/api/verify/{verification_id}";
