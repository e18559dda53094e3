//! Making threads.

use std::path::Path;

use domain::{
    event::{Event, Scope, ThreadCreated, ThreadEvent},
    ids::{ThreadId, UserId},
};
use eventlog::{AppendError, Expected};

use super::Runtime;
use crate::{
    journal::{Fact, Journal, JournalError},
    request::{CreateThreadError, NewThread},
    sandbox::{self, ThreadFolders},
};

impl Runtime {
    /// Makes a thread. Its folders are made by its first run.
    pub async fn create_thread(&self, request: NewThread) -> Result<ThreadId, CreateThreadError> {
        let thread_id = request.thread_id.unwrap_or_else(|| self.new_thread_id());
        let workspace = request.workspace.as_deref().map(|folder| self.real_folder(folder)).transpose()?;
        let created = ThreadCreated { metadata: request.metadata, workspace };
        let fact = Fact { scope: Scope::default(), event: Event::Thread(ThreadEvent::Created(created)) };
        let journal = self.journal(&thread_id, request.owner, None);
        match journal.append(&[fact], Expected::NoStream).await {
            Ok(()) => Ok(thread_id),
            Err(JournalError::Log { source: AppendError::Conflict { .. }, .. }) => {
                Err(CreateThreadError::Exists(thread_id))
            }
            Err(JournalError::Log { source: AppendError::Erased { .. }, .. }) => {
                Err(CreateThreadError::Erased(thread_id))
            }
            Err(error) => Err(CreateThreadError::Journal(thread_id, error)),
        }
    }

    pub(super) fn journal(
        &self,
        thread_id: &ThreadId,
        owner: UserId,
        correlation_id: Option<String>,
    ) -> Journal {
        Journal {
            log: self.services.log.clone(),
            thread_id: thread_id.clone(),
            owner,
            correlation_id,
            clock: self.services.clock.clone(),
            ids: self.services.ids.clone(),
        }
    }

    /// The thread's folders, with the workspace that a person chose.
    pub(super) fn folders(
        &self,
        thread_id: &ThreadId,
        workspace: Option<&Path>,
    ) -> std::io::Result<ThreadFolders> {
        let folders = ThreadFolders::create(&self.services.data_folder, thread_id)?;
        workspace.map_or(Ok(folders.clone()), |workspace| folders.with_workspace(workspace))
    }

    #[expect(clippy::expect_used, reason = "a UUID has 36 letters, digits and '-'")]
    fn new_thread_id(&self) -> ThreadId {
        ThreadId::new(self.services.ids.uuid().to_string()).expect("a UUID is a thread id")
    }

    /// The folder's real path as text, which is how it is recorded.
    fn real_folder(&self, folder: &Path) -> Result<String, CreateThreadError> {
        let refused = |source| CreateThreadError::Workspace { folder: folder.to_owned(), source };
        let real = sandbox::real_workspace(&self.services.data_folder, folder).map_err(refused)?;
        let text = real.to_str().ok_or_else(|| {
            refused(std::io::Error::new(std::io::ErrorKind::InvalidInput, "its path is not UTF-8"))
        })?;
        Ok(text.to_owned())
    }
}
