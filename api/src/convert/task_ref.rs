//! Names of delegations. Wherever a `task_id` is asked for, our delegation id may stand.

use domain::ids::{DelegationId, ToolCallId};

/// What a name can mean. A provider may use UUIDs for its calls, so that one of them is first taken
/// for ours, of which there is exactly one, and then for the provider's.
pub(crate) fn meanings<Ref>(
    task_id: &ToolCallId,
    ours: fn(DelegationId) -> Ref,
    theirs: fn(ToolCallId) -> Ref,
) -> Vec<Ref> {
    let our_id = task_id.as_str().parse().ok().map(ours);
    our_id.into_iter().chain([theirs(task_id.clone())]).collect()
}

/// What a filter by task may mean; without one it is one wish for all tasks.
pub(crate) fn wanted<Ref>(
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
    use projections::TaskRef;

    use super::*;

    #[test]
    fn only_a_uuid_can_be_ours() {
        let read = |text: &str| {
            let task_id = ToolCallId::new(text).unwrap();
            meanings(&task_id, TaskRef::DelegationId, TaskRef::TaskId)
        };
        assert_eq!(read("call_1"), [TaskRef::TaskId(ToolCallId::new("call_1").unwrap())]);
        let uuid = "0198f000-0000-7000-8000-000000000001";
        let both =
            [TaskRef::DelegationId(uuid.parse().unwrap()), TaskRef::TaskId(ToolCallId::new(uuid).unwrap())];
        assert_eq!(read(uuid), both);
    }
}
