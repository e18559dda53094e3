//! Long work that a server does on its log: begun, and asked after until it has ended.

use std::time::Duration;

use contracts::wire::upkeep::{
    Backup, CreateBackup, CreateExport, CreateVerification, Export, JobError, JobProgress, JobState,
    Verification,
};
use eventlog::{Position, Progress};

use super::Server;
use crate::failure::{Exit, Failure, exit_of_problem};

/// Between two looks at work that is not done.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

impl Server {
    /// Has the server back up its log, and waits until that is done.
    pub(crate) async fn back_up(
        &self,
        order: &CreateBackup,
        show: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<Backup> {
        let mut backup: Backup = self.post(&["backups"], order).await?;
        while backup.state == JobState::Running {
            show(progress(&backup.progress));
            tokio::time::sleep(LOOK_PAUSE).await;
            backup = self.get(&["backups", &backup.backup_id], &[]).await?;
        }
        check("the backup", backup.state, backup.error.as_ref())?;
        Ok(backup)
    }

    /// Has the server export its log, and waits until that is done.
    pub(crate) async fn export(
        &self,
        order: &CreateExport,
        show: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<Export> {
        let mut export: Export = self.post(&["exports"], order).await?;
        while export.state == JobState::Running {
            show(progress(&export.progress));
            tokio::time::sleep(LOOK_PAUSE).await;
            export = self.get(&["exports", &export.export_id], &[]).await?;
        }
        check("the export", export.state, export.error.as_ref())?;
        Ok(export)
    }

    /// Has the server verify its log, and waits until that is done.
    pub(crate) async fn verify(
        &self,
        order: &CreateVerification,
        show: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<Verification> {
        let mut verification: Verification = self.post(&["verify"], order).await?;
        while verification.state == JobState::Running {
            show(progress(&verification.progress));
            tokio::time::sleep(LOOK_PAUSE).await;
            verification = self.get(&["verify", &verification.verification_id], &[]).await?;
        }
        check("the verification", verification.state, verification.error.as_ref())?;
        Ok(verification)
    }
}

fn progress(told: &JobProgress) -> Progress {
    Progress { position: Position::new(told.position), head: Position::new(told.head) }
}

fn check(what: &str, state: JobState, error: Option<&JobError>) -> anyhow::Result<()> {
    match (state, error) {
        (JobState::Done | JobState::Running, _) => Ok(()),
        (JobState::Stopped, _) => {
            Err(Failure::new(Exit::Failed, format!("the server stopped before {what} was done")).into())
        }
        (JobState::Failed, Some(JobError { code, detail })) => {
            Err(Failure::new(exit_of_problem(*code), format!("{what} failed: {detail}")).into())
        }
        (JobState::Failed, None) => Err(Failure::new(Exit::Failed, format!("{what} failed")).into()),
    }
}

#[cfg(test)]
mod tests {
    use contracts::wire::problem::ProblemCode;

    use super::*;
    use crate::failure::exit_of;

    #[test]
    fn an_end_has_the_exit_code_of_its_cause() {
        let exit = |state, code| {
            let error = JobError { code, detail: "x".into() };
            check("the backup", state, Some(&error)).map_or_else(|error| exit_of(&error), |()| Exit::Done)
        };
        assert_eq!(exit(JobState::Done, ProblemCode::Internal), Exit::Done);
        assert_eq!(exit(JobState::Stopped, ProblemCode::Internal), Exit::Failed);
        assert_eq!(exit(JobState::Failed, ProblemCode::Internal), Exit::Failed);
        assert_eq!(exit(JobState::Failed, ProblemCode::Integrity), Exit::Integrity);
    }
}
