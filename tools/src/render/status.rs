//! States in words, with their colour.

use contracts::wire::{
    delegation::{DelegationStatus, StopReason},
    evidence::{AcceptanceVerdict, CitationVerdict, CitationsVerdict, ReceiptOutcome},
    run::RunStatus,
    thread::ThreadStatus,
};

use super::tone::Tone;

/// A run's state.
pub(crate) const fn run(status: RunStatus) -> (&'static str, Tone) {
    match status {
        RunStatus::Pending => ("pending", Tone::Dim),
        RunStatus::Running => ("running", Tone::Busy),
        RunStatus::Success => ("success", Tone::Good),
        RunStatus::Error => ("error", Tone::Bad),
        RunStatus::Interrupted => ("interrupted", Tone::Warn),
        RunStatus::Timeout => ("timeout", Tone::Bad),
    }
}

/// A thread's state.
pub(crate) const fn thread(status: ThreadStatus) -> (&'static str, Tone) {
    match status {
        ThreadStatus::Idle => ("idle", Tone::Dim),
        ThreadStatus::Busy => ("busy", Tone::Busy),
    }
}

/// A delegation's state.
pub(crate) const fn delegation(status: DelegationStatus) -> (&'static str, Tone) {
    match status {
        DelegationStatus::Queued => ("queued", Tone::Dim),
        DelegationStatus::InProgress => ("in progress", Tone::Busy),
        DelegationStatus::Completed => ("completed", Tone::Good),
        DelegationStatus::Failed => ("failed", Tone::Bad),
        DelegationStatus::Cancelled => ("cancelled", Tone::Warn),
        DelegationStatus::TimedOut => ("timed out", Tone::Bad),
        DelegationStatus::PollingTimedOut => ("polling timed out", Tone::Bad),
        DelegationStatus::Refused => ("refused", Tone::Warn),
    }
}

/// The guard that ended a subagent early, in the words of the status contract.
pub(crate) const fn stop_reason(reason: StopReason) -> &'static str {
    use domain::status_contract::StopReason as Contract;
    match reason {
        StopReason::TokenCapped => Contract::TokenCapped.label(),
        StopReason::TurnCapped => Contract::TurnCapped.label(),
        StopReason::LoopCapped => Contract::LoopCapped.label(),
    }
}

/// A run's state with the guard that ended it early. A reason that this version does not know is
/// shown as it came.
pub(crate) fn capped_run(status: RunStatus, reason: Option<&str>) -> (String, Tone) {
    let (name, tone) = run(status);
    let Some(reason) = reason else { return (name.to_owned(), tone) };
    let label = reason.parse().map(domain::status_contract::StopReason::label).unwrap_or(reason);
    (format!("{name} ({label})"), capped_tone(tone))
}

/// A delegation's state with the guard that ended it early: `completed (turn budget)`.
pub(crate) fn capped_delegation(status: DelegationStatus, reason: Option<StopReason>) -> (String, Tone) {
    let (name, tone) = delegation(status);
    match reason {
        Some(reason) => (format!("{name} ({})", stop_reason(reason)), capped_tone(tone)),
        None => (name.to_owned(), tone),
    }
}

/// What ended well, but early, deserves a look.
const fn capped_tone(tone: Tone) -> Tone {
    match tone {
        Tone::Good => Tone::Warn,
        Tone::Plain | Tone::Bad | Tone::Warn | Tone::Busy | Tone::Dim => tone,
    }
}

/// What came of a tool call.
pub(crate) const fn receipt(outcome: ReceiptOutcome) -> (&'static str, Tone) {
    match outcome {
        ReceiptOutcome::Ok => ("ok", Tone::Good),
        ReceiptOutcome::Error => ("error", Tone::Bad),
        ReceiptOutcome::Denied => ("denied", Tone::Warn),
        ReceiptOutcome::Unknown => ("unknown", Tone::Warn),
    }
}

/// All citations of a result together.
pub(crate) const fn citations(verdict: CitationsVerdict) -> (&'static str, Tone) {
    match verdict {
        CitationsVerdict::Verified => ("verified", Tone::Good),
        CitationsVerdict::Partial => ("partial", Tone::Warn),
        CitationsVerdict::Unverified => ("unverified", Tone::Warn),
        CitationsVerdict::Off => ("off", Tone::Dim),
    }
}

/// Whether one citation resolves.
pub(crate) const fn citation(verdict: CitationVerdict) -> (&'static str, Tone) {
    match verdict {
        CitationVerdict::Resolved => ("resolved", Tone::Good),
        CitationVerdict::UnknownReceipt => ("unknown receipt", Tone::Bad),
        CitationVerdict::WrongTool => ("wrong tool", Tone::Bad),
        CitationVerdict::Omitted => ("omitted", Tone::Warn),
        CitationVerdict::CitesFailedCall => ("cites failed call", Tone::Warn),
    }
}

/// Whether a criterion holds.
pub(crate) const fn acceptance(verdict: AcceptanceVerdict) -> (&'static str, Tone) {
    match verdict {
        AcceptanceVerdict::Met => ("met", Tone::Good),
        AcceptanceVerdict::Unmet => ("unmet", Tone::Bad),
        AcceptanceVerdict::NotCheckable => ("not checkable", Tone::Dim),
        AcceptanceVerdict::Error => ("error", Tone::Bad),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_early_has_one_name_everywhere() {
        for (wire, reason, label) in [
            (StopReason::TokenCapped, "token_capped", "token budget"),
            (StopReason::TurnCapped, "turn_capped", "turn budget"),
            (StopReason::LoopCapped, "loop_capped", "repeated tool-call loop"),
        ] {
            let delegation = capped_delegation(DelegationStatus::Completed, Some(wire));
            assert_eq!(delegation, (format!("completed ({label})"), Tone::Warn));
            let run = capped_run(RunStatus::Success, Some(reason));
            assert_eq!(run, (format!("success ({label})"), Tone::Warn));
        }
        assert_eq!(capped_run(RunStatus::Error, Some("moon_full")).0, "error (moon_full)");
        assert_eq!(capped_run(RunStatus::Error, None).0, "error");
    }
}
