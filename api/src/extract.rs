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
    path::{
        BackupPath, BlobPath, ErasurePath, ExportFilePath, ExportPath, Path, RunPath, SubagentPath, TaskPath,
        ThreadPath, VerificationPath, ViewPath,
    },
    query::{
        AsOf, CancelQuery, CapsQuery, DelegationsQuery, EventsQuery, LastAnswersQuery, LogFilter, LogMoment,
        LogQuery, LogStart, MessagePageQuery, MessagesQuery, Moment, PageQuery, ParkedQuery, PartQuery,
        Query, ReceiptsQuery, ReplayQuery, RunsQuery, TaskReceiptsQuery, UsageParameters, whole_number,
    },
    range::{Part, PartWanted},
};
