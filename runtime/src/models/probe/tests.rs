use domain::message::ToolCall;
use futures::future::BoxFuture;

use super::*;
use crate::models::Deltas;

/// Answers in so many pieces, and calls the tool or does not.
struct Scripted {
    pieces: usize,
    calls: bool,
}

impl ChatModel for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
        Box::pin(async move {
            (0..self.pieces).for_each(|_| deltas(Delta::Text("one ".into())));
            let call =
                ToolCall { id: "a".into(), name: TOOL.into(), args: ToolArgs::parse("{\"word\":\"ready\"}") };
            let may_call = self.calls && !request.tools.is_empty();
            Ok(AssistantMessage {
                content: "one ".repeat(self.pieces),
                tool_calls: if may_call { vec![call] } else { Vec::new() },
                usage: Some(Usage::new(1, 2)),
                ..AssistantMessage::default()
            })
        })
    }
}

#[tokio::test]
async fn pieces_calls_and_counts_are_seen() {
    for (pieces, calls) in [(1, false), (5, true)] {
        let probe = probe(&Scripted { pieces, calls }).await;
        let answer = probe.answer.unwrap();
        assert_eq!((answer.pieces, answer.usage), (pieces, Some(Usage::new(1, 2))));
        assert!(answer.first_piece_after.unwrap() <= answer.took);
        assert_eq!(probe.tool_call.unwrap().unwrap(), calls);
    }
}

#[test]
fn a_failure_says_how_far_it_had_come() {
    let error = |kind, status| ModelError { status, ..ModelError::new(kind, "x") };
    for (kind, status, expected) in [
        (ModelErrorKind::Auth, Some(401), FailedAt::Authorising),
        (ModelErrorKind::Quota, Some(429), FailedAt::Paying),
        (ModelErrorKind::Generic, Some(404), FailedAt::Finding),
        (ModelErrorKind::Generic, Some(400), FailedAt::Answering),
        (ModelErrorKind::InvalidReply, None, FailedAt::Answering),
        (ModelErrorKind::Transient, None, FailedAt::Waiting),
        (ModelErrorKind::Busy, Some(529), FailedAt::Waiting),
    ] {
        assert_eq!(FailedAt::of(&error(kind, status)), expected, "{kind:?} {status:?}");
    }
}
