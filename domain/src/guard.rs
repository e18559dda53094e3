//! The chain: what stands between a model's reply and its becoming a fact. One guard per file,
//! each with its state folded from events, so that a resumed run counts like an uninterrupted one.
//!
//! Guards look at a reply in the order of chain facts (a), which is that of after-model hooks: the
//! provider's safety stop, an answer that was cut or is empty, the token budget, the loop guard, and
//! the cap on delegations. The first that ends the work leaves nothing for the others to look at.
//! The guard on progress stands around the tools: it looks at what they return.
//! Whoever drives an agent calls [`Guards::apply`], [`Guards::refuse`] and [`Guards::returned`]
//! alone, so another guard changes nothing there.

pub mod last_words;
pub mod loop_detection;
mod model_length;
pub mod notes;
pub(crate) mod safety;
pub mod subagent_limit;
mod terminal_response;
pub mod token_budget;
pub mod tool_progress;

pub(crate) use self::model_length::is_cut;
use self::{
    last_words::LastWords,
    loop_detection::{LoopLimits, LoopWatch},
    subagent_limit::DelegationLimits,
    terminal_response::TerminalResponse,
    token_budget::TokenCount,
    tool_progress::{ProgressLimits, Stalled, ToolProgress},
};
use crate::{
    compaction::CompactionRules,
    definition::TokenBudget,
    event::{
        Cap, CapAction, CapAxis, DelegationRequested, GuardAction, GuardTag, RefusalReason, RunSettings,
    },
    message::{AssistantMessage, Message, ToolCall, ToolMessage},
    status_contract::TOKEN_USAGE_KEY,
    tool_spec::TASK_TOOL,
    usage::Usage,
};

/// What a provider calls the end of a reply that asks for tools.
const FINISHED_FOR_TOOLS: &str = "tool_calls";
/// What a provider calls the end of a reply that asks for nothing.
const FINISHED: &str = "stop";
/// Where providers repeat a reply's tool calls in their own form.
const RAW_CALL_KEYS: [&str; 2] = ["tool_calls", "function_call"];

/// What the guards of one agent hold it to, frozen when its work was asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GuardLimits {
    /// Its tokens; `None` sets no limit.
    pub token_budget: Option<TokenBudget>,
    /// When it goes round in circles; `None` does not look.
    pub loops: Option<LoopLimits>,
    /// When a tool brings it no further; `None` does not look.
    pub progress: Option<ProgressLimits>,
    /// How much it may delegate; `None` for an agent that cannot.
    pub delegations: Option<DelegationLimits>,
    /// What makes its last words an answer.
    pub last_words: LastWords,
    /// How long its history may become; `None` sets no limit.
    pub compaction: Option<CompactionRules>,
}

impl GuardLimits {
    /// What the lead of a run is held to.
    pub fn of_lead(settings: &RunSettings) -> Self {
        Self {
            token_budget: settings.token_budget.as_deref().copied(),
            loops: settings.loop_detection.as_deref().cloned(),
            progress: settings.tool_progress.as_deref().cloned(),
            delegations: Some(DelegationLimits {
                per_response: settings.max_concurrent_subagents,
                per_run: settings.max_total_subagents,
            }),
            last_words: if settings.checks_last_words { LastWords::OfLead } else { LastWords::Taken },
            compaction: settings.summarization.as_deref().map(|set| set.rules(&settings.model_name)),
        }
    }

    /// What the subagent of a delegation is held to.
    pub fn of_subagent(settings: &RunSettings, request: &DelegationRequested) -> Self {
        Self {
            token_budget: request.token_budget.as_deref().copied(),
            loops: settings.loop_detection.as_deref().cloned(),
            progress: settings.tool_progress.as_deref().cloned(),
            delegations: None,
            last_words: if settings.checks_last_words { LastWords::OfSubagent } else { LastWords::Taken },
            compaction: settings.summarization.as_deref().map(|set| set.rules(&request.model_name)),
        }
    }
}

/// A reply after the guards, with what is to be recorded with it, together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarded {
    /// The reply, with the calls that may go on and the notes that everybody is to see.
    pub reply: AssistantMessage,
    /// The guards that fired, in their order.
    pub caps: Vec<Cap>,
    /// What the guards did that hold to no limit, in their order.
    pub fired: Vec<(GuardTag, GuardAction)>,
    /// The `task` calls that were dropped, in call order, with the reason for each.
    pub dropped: Vec<(ToolCall, RefusalReason)>,
}

/// The guards of one agent, as far as its history tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Guards {
    limits: GuardLimits,
    tokens: TokenCount,
    loops: LoopWatch,
    progress: ToolProgress,
    answer: TerminalResponse,
    /// What the last reply gave rise to: the model is told, until a reply shows that it was.
    notes: Vec<String>,
}

/// What one guard found in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding<T> {
    /// Nothing to say.
    Fine,
    /// The model is to be told.
    Warn(T),
    /// The work is over.
    Stop(T),
}

impl Guards {
    /// Guards that have seen nothing yet.
    pub fn new(limits: GuardLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes a recorded message into the counts. A reply that stands for a failed provider repeats
    /// nothing; the tokens of one that stands for an empty answer count. Of a delegation it takes the tokens that came back with
    /// its result.
    pub fn observe(&mut self, message: &Message) {
        match message {
            Message::Assistant(reply) => {
                self.progress.told();
                self.notes = self.observe_reply(reply);
            }
            Message::Tool(result) => {
                self.answer.returned();
                self.judge_progress(result);
                if result.name == TASK_TOOL {
                    let used = result.additional_kwargs.get(TOKEN_USAGE_KEY).and_then(Usage::from_untrusted);
                    self.tokens.add(used);
                }
            }
            Message::Human(_) => self.answer.asked(),
            Message::System(_) => {}
        }
    }

    /// What the model is to be told after this reply.
    fn observe_reply(&mut self, reply: &AssistantMessage) -> Vec<String> {
        let is_missing = matches!(self.judge_answer(reply), Finding::Warn(()));
        self.tokens.add(reply.usage);
        if reply.is_error_fallback() {
            return Vec::new();
        }
        let tokens = warning(self.judge_tokens(), notes::token_budget_warning);
        let loops = warning(self.judge_loops(&reply.tool_calls), notes::loop_detected);
        let missing = is_missing.then(|| notes::ANSWER_MISSING.to_owned());
        [missing, tokens, loops].into_iter().flatten().collect()
    }

    /// What the model is to be told with its next request.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().chain(self.progress.hints()).cloned().collect()
    }

    /// What stands in place of the result of a call that is not to be run; `None` for one that may.
    pub fn refuse(&self, call: &ToolCall) -> Option<String> {
        self.progress.blocked(&call.name).map(|stalled| notes::tool_blocked(&stalled))
    }

    /// What the guards say of a result that is not yet recorded.
    pub fn returned(&self, result: &ToolMessage) -> Option<Stalled> {
        self.clone().judge_progress(result)
    }

    /// Whether the last reply is no answer, and is asked for once more.
    pub const fn is_asking_again(&self) -> bool {
        self.answer.is_asking()
    }

    /// What makes the last words an answer.
    pub(crate) const fn last_words(&self) -> LastWords {
        self.limits.last_words
    }

    /// Puts a reply that is not yet recorded through the guards. `delegations` counts the
    /// delegations that the run has requested before it.
    ///
    /// The loop guard looks at the calls that the cap on delegations lets through: only those are
    /// recorded, so only those can be counted again after a crash.
    pub fn apply(&self, reply: AssistantMessage, delegations: u32) -> Guarded {
        let mut guarded = Guarded { reply, caps: Vec::new(), fired: Vec::new(), dropped: Vec::new() };
        if guarded.reply.is_error_fallback() {
            return guarded;
        }
        if let Some(found) = safety::detect(&guarded.reply).filter(|_| self.last_words().are_checked()) {
            guarded.caps.push(safety::stop(&mut guarded.reply, &found));
            return guarded;
        }
        let mut ahead = self.clone();
        ahead.tokens.add(guarded.reply.usage);
        let tokens = ahead.judge_tokens();
        ahead.apply_to_answer(&mut guarded, matches!(tokens, Finding::Stop(_)));
        guarded.caps.extend(cap(&tokens, CapAxis::Tokens, |spent| (spent.used, spent.budget)));
        if let Finding::Stop(spent) = &tokens {
            stop(&mut guarded.reply, &notes::token_budget_exceeded(spent));
            return guarded;
        }
        ahead.apply_to_calls(guarded, delegations)
    }

    /// The guards that look at an answer. One that used up the tokens is not asked for again.
    fn apply_to_answer(&mut self, guarded: &mut Guarded, is_out_of_tokens: bool) {
        let is_for_a_person = self.last_words().are_for_a_person();
        if is_for_a_person && model_length::is_cut(&guarded.reply) {
            guarded.fired.push((GuardTag::ModelLength, GuardAction::Named));
        }
        if is_out_of_tokens {
            return;
        }
        match self.judge_answer(&guarded.reply) {
            Finding::Fine => {}
            Finding::Warn(()) => guarded.fired.push((GuardTag::TerminalResponse, GuardAction::AskedAgain)),
            Finding::Stop(()) => {
                guarded.fired.push((GuardTag::TerminalResponse, GuardAction::GaveUp));
                terminal_response::give_up(&mut guarded.reply);
            }
        }
    }

    /// The guards that look at calls.
    fn apply_to_calls(&mut self, mut guarded: Guarded, delegations: u32) -> Guarded {
        let limited = subagent_limit::limit(guarded.reply.clone(), self.delegation_limits(), delegations);
        let loops = self.judge_loops(&limited.reply.tool_calls);
        guarded
            .caps
            .extend(cap(&loops, CapAxis::Loop, |repeat| (repeat.count.into(), repeat.hard_limit.into())));
        if let Finding::Stop(repeat) = &loops {
            stop(&mut guarded.reply, &notes::forced_stop(repeat));
            return guarded;
        }
        guarded.caps.extend(limited.cap);
        Guarded { reply: limited.reply, dropped: limited.dropped, ..guarded }
    }

    /// A subagent's `task` calls stay in its reply, and each gets an error of its own.
    fn delegation_limits(&self) -> DelegationLimits {
        let unlimited = DelegationLimits { per_response: u32::MAX, per_run: u32::MAX };
        self.limits.delegations.unwrap_or(unlimited)
    }

    fn judge_answer(&mut self, reply: &AssistantMessage) -> Finding<()> {
        if self.last_words().are_for_a_person() { self.answer.judge(reply) } else { Finding::Fine }
    }

    fn judge_tokens(&mut self) -> Finding<token_budget::Spent> {
        match &self.limits.token_budget {
            Some(budget) => self.tokens.judge(budget),
            None => Finding::Fine,
        }
    }

    fn judge_progress(&mut self, result: &ToolMessage) -> Option<Stalled> {
        self.progress.judge(result, self.limits.progress.as_ref()?)
    }

    fn judge_loops(&mut self, calls: &[ToolCall]) -> Finding<loop_detection::Repeat> {
        match &self.limits.loops {
            Some(limits) => self.loops.judge(calls, limits),
            None => Finding::Fine,
        }
    }
}

fn warning<T>(finding: Finding<T>, note: fn(&T) -> String) -> Option<String> {
    match finding {
        Finding::Warn(found) => Some(note(&found)),
        Finding::Fine | Finding::Stop(_) => None,
    }
}

/// What is recorded of a finding; `numbers` are what was used and what was allowed.
fn cap<T>(finding: &Finding<T>, axis: CapAxis, numbers: fn(&T) -> (u64, u64)) -> Vec<Cap> {
    let (action, (used, budget)) = match finding {
        Finding::Fine => return Vec::new(),
        Finding::Warn(found) => (CapAction::Warn, numbers(found)),
        Finding::Stop(found) => (CapAction::Stop, numbers(found)),
    };
    vec![Cap { axis, action, used, budget }]
}

/// Ends the work with a reply, which did not finish for tools then.
fn stop(reply: &mut AssistantMessage, note: &str) {
    last_words::end(reply, note);
    settle_finish(reply);
}

/// A reply that asks for nothing any more did not finish for tools.
fn settle_finish(reply: &mut AssistantMessage) {
    let finish = &mut reply.response_metadata.finish_reason;
    if reply.tool_calls.is_empty() && finish.as_deref() == Some(FINISHED_FOR_TOOLS) {
        *finish = Some(FINISHED.to_owned());
    }
}

/// An empty reply becomes the note; other text gets it after a blank line. Providers send no text
/// and empty text for the same thing, so the rule for no text holds for both (chain facts §1.5).
fn append_note(reply: &mut AssistantMessage, note: &str) {
    if !reply.content.is_empty() {
        reply.content.push_str("\n\n");
    }
    reply.content.push_str(note);
}

#[cfg(test)]
mod tests;
