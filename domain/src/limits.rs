//! Every bound, named with its unit last. A limit that is not here does not exist.

use std::ops::RangeInclusive;

/// Thread and run ids (facts §8: the path pattern).
pub const THREAD_ID_CHARS_MAX: usize = 64;
/// A provider's tool-call id. Providers use 20 to 40 characters.
pub const TOOL_CALL_ID_CHARS_MAX: usize = 256;
/// An owner's name.
pub const USER_ID_CHARS_MAX: usize = 128;
/// A subagent type's name.
pub const NAME_CHARS_MAX: usize = 64;

/// Event types (facts §7.1).
pub const EVENT_TYPE_CHARS_MAX: usize = 32;
/// Event categories (facts §7.1).
pub const CATEGORY_CHARS_MAX: usize = 16;

/// A captured step's text and, separately, each call's arguments (facts §6.2).
pub const STEP_TEXT_CHARS_MAX: usize = 8_192;
/// The result or error that `subagent.end` carries (facts §6.3).
pub const END_TEXT_CHARS_MAX: usize = 8_192;
/// The brief of a result or error in a tool message's metadata (facts §9.3).
pub const BRIEF_CHARS_MAX: usize = 2_000;
/// A delegation's description, as it is recorded: a name for people, not a text.
pub const TASK_DESCRIPTION_CHARS_MAX: usize = 1_000;
/// A delegation's description in the ledger (facts §9.6).
pub const LEDGER_DESCRIPTION_CHARS_MAX: usize = 200;
/// The detail of an exception that becomes a tool message (facts §4.2).
pub const ERROR_DETAIL_CHARS_MAX: usize = 500;

/// A tool's output before it is cut to head and tail (chain facts §2.3, the fallback bound).
pub const TOOL_OUTPUT_CHARS_MAX: usize = 30_000;
/// What is kept of the beginning of a tool output that was cut.
pub const TOOL_OUTPUT_HEAD_CHARS: usize = 8_000;
/// What is kept of the end of a tool output that was cut.
pub const TOOL_OUTPUT_TAIL_CHARS: usize = 3_000;

/// The summary of a compacted history, as it is recorded. A model writes a page or two.
pub const SUMMARY_CHARS_MAX: usize = 32_000;
/// The summary in a request, before it is escaped (chain facts §1.3).
pub const SHOWN_SUMMARY_CHARS_MAX: usize = 6_000;
/// The list of delegations in a request, escaped (chain facts (b), "Rendering").
pub const SHOWN_LEDGER_CHARS_MAX: usize = 6_000;
/// A result's brief in that list (chain facts (b), "Rendering").
pub const SHOWN_BRIEF_CHARS_MAX: usize = 120;
/// Delegations that an agent remembers for that list; the newest stay (chain facts (b)).
pub const SHOWN_DELEGATIONS_MAX: usize = 50;

/// The prompt that a run is started with.
pub const PROMPT_CHARS_MAX: usize = 200_000;
/// One model reply, all of it, before the stream is cut off as a failure.
pub const MODEL_REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// All images of a run's input together, as characters of base64: some 1.1 MB of pictures, so that a
/// request with them is below what a body may have.
pub const IMAGES_CHARS_MAX: usize = 1_500_000;
/// Images of a run's input.
pub const IMAGES_MAX: usize = 16;
/// One model reply as JSON, as it is stored: with room below `EVENT_BODY_BYTES_MAX` for what is
/// recorded around it.
pub const MODEL_REPLY_STORED_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Tool calls in one model reply; more are answered with an error each.
pub const TOOL_CALLS_PER_REPLY_MAX: usize = 128;

/// Running subagents per process (facts §0); also what a request may ask for per response.
pub const RUNNING_SUBAGENTS_RANGE: RangeInclusive<u32> = 1..=64;
/// Running subagents when nothing is configured (facts §1.2).
pub const RUNNING_SUBAGENTS_DEFAULT: u32 = 3;
/// Delegations that may wait for a slot at once.
pub const ADMISSION_QUEUE_DEFAULT: u32 = 256;
/// The longest that a delegation waits for a slot, in seconds.
pub const ADMISSION_TIMEOUT_SECONDS_DEFAULT: u64 = 300;
/// Delegations per run (facts §1.2).
pub const DELEGATIONS_PER_RUN_RANGE: RangeInclusive<u32> = 1..=50;
/// Delegations per run when nothing is configured (facts §1.2).
pub const DELEGATIONS_PER_RUN_DEFAULT: u32 = 6;
/// How deep delegation may go: a lead delegates, a subagent does not.
pub const DELEGATION_DEPTH_MAX: u32 = 1;
/// What the lead waits beyond a subagent's own time limit, in seconds (facts §4.5).
pub const POLLING_GRACE_SECONDS: u64 = 60;

/// Turns of a lead in one run: a stop for a lead that never ends.
pub const LEAD_TURNS_MAX_DEFAULT: u32 = 100;
/// Acceptance criteria of one delegation (facts §3.10).
pub const ACCEPTANCE_CRITERIA_MAX: usize = 20;
/// One acceptance criterion (facts §3.10).
pub const ACCEPTANCE_CRITERION_CHARS_MAX: usize = 500;

/// The newest receipts of a delegation that its report may cite.
pub const CITED_RECEIPTS_MAX: usize = 64;

/// Rows of a page of events (facts §8).
pub const EVENTS_PAGE_RANGE: RangeInclusive<u32> = 1..=2_000;
/// Rows of a page of events when no limit is asked for (facts §8).
pub const EVENTS_PAGE_DEFAULT: u32 = 500;

/// One blob, before it is sealed. What is larger is refused, or its beginning is kept.
pub const BLOB_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// A tool output from this size on is kept whole as a blob beside the log; the text of a smaller one
/// fits into its event.
pub const KEPT_OUTPUT_BYTES_MIN: u64 = 8 * 1024;

/// One event's content and metadata together, as stored. Larger payloads are cut by whoever
/// makes them; the log refuses what is still larger.
pub const EVENT_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Events of one append.
pub const EVENTS_PER_APPEND_MAX: usize = 1_000;

/// A configuration file.
pub const CONFIG_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// What may be configured for delegations that wait for a slot.
pub const ADMISSION_QUEUE_RANGE: RangeInclusive<u32> = 1..=100_000;
/// What may be configured for the wait for a slot, in seconds.
pub const ADMISSION_TIMEOUT_SECONDS_RANGE: RangeInclusive<u64> = 1..=86_400;
/// What may be configured for the items of one batch.
pub const BATCH_ITEMS_RANGE: RangeInclusive<u32> = 1..=1_000_000;
/// Items of one batch when nothing is configured.
pub const BATCH_ITEMS_DEFAULT: u32 = 10_000;
/// What may be configured for batches that are not yet done.
pub const LIVE_BATCHES_RANGE: RangeInclusive<u32> = 1..=1_000;
/// Batches that are not yet done, when nothing is configured.
pub const LIVE_BATCHES_DEFAULT: u32 = 16;
/// What may be configured for the right to work on an item, in seconds. Shorter leases expire under
/// a healthy worker.
pub const BATCH_LEASE_SECONDS_RANGE: RangeInclusive<u64> = 5..=86_400;
/// The right to work on an item when nothing is configured, in seconds.
pub const BATCH_LEASE_SECONDS_DEFAULT: u64 = 60;
/// What may be configured for tries at one item.
pub const BATCH_ATTEMPTS_RANGE: RangeInclusive<u32> = 1..=100;
/// Tries at one item when nothing is configured.
pub const BATCH_ATTEMPTS_DEFAULT: u32 = 3;
/// What may be configured for the stored result of one item.
pub const BATCH_RESULT_CHARS_RANGE: RangeInclusive<u32> = 1..=1_000_000;
/// The stored result of one item when nothing is configured.
pub const BATCH_RESULT_CHARS_DEFAULT: u32 = 8_192;
/// What may be configured for the history that a summary is made of, in tokens. Less is no
/// material.
pub const SUMMARY_TRIM_TOKENS_RANGE: RangeInclusive<u64> = 100..=10_000_000;
/// What may be configured for model calls at once; 0 sets no limit.
pub const CONCURRENT_CALLS_RANGE: RangeInclusive<u32> = 0..=10_000;
/// What may be configured for attempts at one model call.
pub const RETRY_ATTEMPTS_RANGE: RangeInclusive<u32> = 1..=20;
/// How often model calls of one run, its delegations' included, are tried again when nothing else is
/// set: a lead may take that many turns, so one whose every call fails once gets through; and at the
/// longest wait that is chosen here, 8 seconds, these waits are some 13 minutes in all.
pub const RETRIES_PER_RUN_DEFAULT: u32 = LEAD_TURNS_MAX_DEFAULT;
/// What may be configured for the model calls of one run that are tried again.
pub const RETRIES_PER_RUN_RANGE: RangeInclusive<u32> = 0..=10_000;
/// What may be configured for the waits between attempts, in milliseconds.
pub const RETRY_WAIT_MS_RANGE: RangeInclusive<u64> = 1..=600_000;
/// What may be configured for failed calls after which a model is left alone; 0 for never.
pub const CIRCUIT_THRESHOLD_RANGE: RangeInclusive<u32> = 0..=1_000;
/// What may be configured for how long a model is left alone, in seconds.
pub const CIRCUIT_RECOVERY_SECONDS_RANGE: RangeInclusive<u64> = 1..=86_400;
/// What may be configured for any count of the loop guard (chain facts §1.6: from 1).
pub const LOOP_COUNT_RANGE: RangeInclusive<u32> = 1..=10_000;
/// What may be configured for any count of the guard on progress.
pub const PROGRESS_COUNT_RANGE: RangeInclusive<u32> = 1..=10_000;
/// What may be configured for the likeness of two results (chain facts §1.7), a share.
pub const PROGRESS_LIKENESS_RANGE: RangeInclusive<f64> = 0.0..=1.0;

/// Managed definitions that are there at a time: leads are shown every one that is enabled.
pub const MANAGED_DEFINITIONS_MAX: usize = 256;
/// The description of a managed definition. Leads read its first line.
pub const DEFINITION_DESCRIPTION_CHARS_MAX: usize = 4_000;
/// The system prompt of a managed definition. It is frozen into every run that may delegate to it.
pub const DEFINITION_PROMPT_CHARS_MAX: usize = 32_000;
