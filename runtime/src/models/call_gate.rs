//! One limit on the model calls of the whole process (chain facts §2.8).
//!
//! It holds single attempts: whoever waits between two attempts holds nothing. Calls that wait are
//! let in in the order in which they came, and one that is given up passes its turn on.

use std::sync::Arc;

use domain::message::AssistantMessage;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use super::{ChatModel, Deltas, ModelError, ModelRequest};

/// A model whose calls wait for a place.
pub(super) struct GatedModel {
    model: Arc<dyn ChatModel>,
    places: Arc<Semaphore>,
}

impl GatedModel {
    /// The model, behind a gate that it may share with others.
    pub(super) fn new(model: Arc<dyn ChatModel>, places: &Arc<Semaphore>) -> Self {
        Self { model, places: Arc::clone(places) }
    }
}

impl ChatModel for GatedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn context_tokens(&self) -> Option<u32> {
        self.model.context_tokens()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
        Box::pin(async move {
            // Nobody closes the gate, so there is a place sooner or later.
            let _place = self.places.acquire().await;
            self.model.call(request, deltas).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use domain::message::Message;
    use futures::poll;
    use tokio::sync::Notify;

    use super::{super::no_deltas, *};
    use crate::models::{AgentTag, Models};

    /// Notes who was let in, and answers when it is told to.
    #[derive(Default)]
    struct Held {
        entered: Mutex<Vec<String>>,
        release: Notify,
    }

    impl ChatModel for Arc<Held> {
        fn name(&self) -> &str {
            "held"
        }

        fn context_tokens(&self) -> Option<u32> {
            Some(7)
        }

        fn call<'a>(
            &'a self,
            request: &'a ModelRequest,
            _: Deltas<'a>,
        ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
            Box::pin(async move {
                self.entered.lock().unwrap().push(request.messages[0].content().to_owned());
                self.release.notified().await;
                Ok(AssistantMessage::default())
            })
        }
    }

    fn asking(text: &str) -> ModelRequest {
        ModelRequest { messages: vec![Message::human(text)], tools: [].into(), agent: AgentTag::Lead }
    }

    // Chain facts §2.8: a permit goes to whoever came first; a cancelled waiter passes it on.
    #[tokio::test]
    async fn calls_are_let_in_one_by_one_in_their_order() {
        let held = Arc::new(Held::default());
        let model = Models::of(Arc::clone(&held)).gated(1).get("held").unwrap();
        assert_eq!((model.name(), model.context_tokens()), ("held", Some(7)));
        let requests = ["a", "b", "c", "d"].map(asking);
        let [mut a, mut b, mut c, mut d] = requests.each_ref().map(|request| model.call(request, &no_deltas));
        for waiting in [&mut a, &mut b, &mut c, &mut d] {
            assert!(poll!(waiting).is_pending());
        }
        let entered = || held.entered.lock().unwrap().join("");
        assert_eq!(entered(), "a");
        drop(b);
        held.release.notify_one();
        assert!(poll!(&mut a).is_ready());
        drop(a);
        assert!(poll!(&mut d).is_pending());
        assert_eq!(entered(), "a", "it is c's turn");
        assert!(poll!(&mut c).is_pending());
        assert_eq!(entered(), "ac");
        // One that is stopped at work leaves its place.
        drop(c);
        assert!(poll!(&mut d).is_pending());
        assert_eq!(entered(), "acd");
    }

    #[tokio::test]
    async fn without_a_limit_nobody_waits() {
        let held = Arc::new(Held::default());
        let model = Models::of(Arc::clone(&held)).gated(0).get("held").unwrap();
        let requests = ["a", "b", "c"].map(asking);
        let mut calls = requests.each_ref().map(|request| model.call(request, &no_deltas));
        for call in &mut calls {
            assert!(poll!(call).is_pending());
        }
        assert_eq!(held.entered.lock().unwrap().len(), 3);
    }
}
