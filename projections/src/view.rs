//! What a view is.

use domain::event::Logged;

use crate::{keys::KeyKind, rows::Rows, store::RowError};

/// One fold of the log into rows. Who drives it, and whether the event has just happened or is
/// folded for the hundredth time, is not its business.
pub(crate) trait View: Send + Sync + 'static {
    /// Names it, in the store and for people.
    const NAME: &'static str;
    /// Raise it when `apply`, a row or a key changes; the view is then made again.
    const VERSION: u32;
    /// The earliest version whose rows can be read and folded on. A view of such a version answers
    /// until it is made again; one of an earlier version cannot.
    const READS_SINCE: u32 = Self::VERSION;
    /// The kinds of key that are its own.
    const KINDS: &'static [KeyKind];
    /// Those of them whose rows the events of several runs make. They are made again when one of the
    /// runs is erased; every other row goes with its run's key.
    const SHARED_KINDS: &'static [KeyKind] = &[];

    /// Takes one event. After an error the event is skipped and what it had changed is undone.
    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError>;
}

/// Why a view did not take an event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FoldError {
    /// The event says two things that cannot both be true.
    #[error("the event contradicts itself: {0}")]
    Contradiction(String),
    /// The view's own rows could not be read. The event is not to blame.
    #[error(transparent)]
    Row(#[from] RowError),
}

type Apply = dyn Fn(&Logged, &mut Rows<'_>) -> Result<(), FoldError> + Send + Sync;

/// A view in the list of those that the runner feeds.
pub(crate) struct Registered {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) reads_since: u32,
    pub(crate) kinds: &'static [KeyKind],
    pub(crate) shared_kinds: &'static [KeyKind],
    pub(crate) apply: Box<Apply>,
}

impl Registered {
    pub(crate) fn of<V: View>(view: V) -> Self {
        Self {
            name: V::NAME,
            version: V::VERSION,
            reads_since: V::READS_SINCE,
            kinds: V::KINDS,
            shared_kinds: V::SHARED_KINDS,
            apply: Box::new(move |event, rows| view.apply(event, rows)),
        }
    }
}
