//! The shape of every decision: a pure function from what happened to what may happen next.

/// Something that decides. Folding is total, because an event has already happened; deciding may
/// refuse, and a refusal records nothing.
pub trait Decider: Default {
    /// A request, in the imperative.
    type Command;
    /// A fact, in the past tense.
    type Event;
    /// Why a request was refused.
    type Rejection;

    /// What follows from the command, or why nothing does.
    fn decide(&self, command: Self::Command) -> Result<Vec<Self::Event>, Self::Rejection>;

    /// Takes one fact into the state.
    fn evolve(&mut self, event: &Self::Event);
}

/// The state after a history.
pub fn replay<'a, D: Decider>(history: impl IntoIterator<Item = &'a D::Event>) -> D
where
    D::Event: 'a,
{
    let mut state = D::default();
    for event in history {
        state.evolve(event);
    }
    state
}
