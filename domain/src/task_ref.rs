//! Names of delegations. Wherever a `task_id` is asked for, our delegation id may stand.

use crate::ids::{DelegationId, ToolCallId};

/// What a name can mean. A provider may use UUIDs for its calls, so that one of them is first taken
/// for ours, of which there is exactly one, and then for the provider's.
pub fn meanings<Ref>(
    task_id: &ToolCallId,
    ours: fn(DelegationId) -> Ref,
    theirs: fn(ToolCallId) -> Ref,
) -> Vec<Ref> {
    let our_id = task_id.as_str().parse().ok().map(ours);
    our_id.into_iter().chain([theirs(task_id.clone())]).collect()
}

/// What a filter by task may mean; without one it is one wish for all tasks.
pub fn wanted<Ref>(
    task_id: Option<&ToolCallId>,
    ours: fn(DelegationId) -> Ref,
    theirs: fn(ToolCallId) -> Ref,
) -> Vec<Option<Ref>> {
    match task_id {
        Some(task_id) => meanings(task_id, ours, theirs).into_iter().map(Some).collect(),
        None => vec![None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Ref {
        Ours(DelegationId),
        Theirs(ToolCallId),
    }

    #[test]
    fn only_a_uuid_can_be_ours() {
        let id = |text: &str| ToolCallId::new(text).unwrap();
        let read = |text: &str| meanings(&id(text), Ref::Ours, Ref::Theirs);
        assert_eq!(read("call_1"), [Ref::Theirs(id("call_1"))]);
        let uuid = "0198f000-0000-7000-8000-000000000001";
        let both = || vec![Ref::Ours(uuid.parse().unwrap()), Ref::Theirs(id(uuid))];
        assert_eq!(read(uuid), both());
        let as_filter: Vec<_> = both().into_iter().map(Some).collect();
        assert_eq!(wanted(Some(&id(uuid)), Ref::Ours, Ref::Theirs), as_filter);
        assert_eq!(wanted(None, Ref::Ours, Ref::Theirs), [None]);
    }
}
