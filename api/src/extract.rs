//! What a request says, as types. A handler that has them may trust them.
//!
//! Every refusal is a problem document that names the field and its rule. Nothing unknown is
//! passed over in silence: an unknown parameter or field is refused by its name.

mod body;
mod path;
mod query;
mod range;

pub(crate) use self::{
    body::{IngestBody, JsonBody, OptionalJsonBody},
    path::{BlobPath, ErasurePath, Path, RunPath, TaskPath, ThreadPath},
    query::{
        CancelQuery, CapsQuery, DelegationsQuery, EventsQuery, LastAnswersQuery, LogQuery, MessagePageQuery,
        MessagesQuery, Moment, PageQuery, PartQuery, Query, ReceiptsQuery, RunsQuery, UsageParameters,
        whole_number,
    },
    range::{Part, PartWanted},
};
