//! The whole of Remit at work: over HTTP against a scripted model server, and as a process.

mod bad_requests;
mod cancelled_run;
mod child_text;
mod crashed_demo;
mod crashed_server;
mod cut_streams;
mod damaged_log;
mod delegation_caps;
mod demo_folders;
mod drained_shutdown;
mod erase_command;
mod exports;
mod held_folder;
mod large_outputs;
mod late_reader;
mod log_tools;
mod many_children;
mod master_key;
mod model_failures;
mod providers;
mod read_side;
mod rebuilding;
mod replay_command;
mod reply_shapes;
mod run_command;
mod run_over_http;
mod same_call_ids;
mod slow_reader;
mod stream_cursors;
mod tail_command;
mod task_results;
mod tool_arguments;
mod upkeep;
mod usage;

use crate::remit;
