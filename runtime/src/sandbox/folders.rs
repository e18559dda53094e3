//! A thread's three folders, and the virtual paths under which agents know them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use domain::ids::ThreadId;

/// What every virtual path begins with.
pub const VIRTUAL_ROOT: &str = "/mnt/user-data";
/// Where agents work; relative paths start here.
pub const VIRTUAL_WORKSPACE: &str = "/mnt/user-data/workspace";
/// What the user gave.
pub const VIRTUAL_UPLOADS: &str = "/mnt/user-data/uploads";
/// What the user gets.
pub const VIRTUAL_OUTPUTS: &str = "/mnt/user-data/outputs";

/// The folders of one thread on this machine: absolute, existing and free of symlinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFolders {
    /// Seen as `/mnt/user-data/workspace`.
    pub workspace: PathBuf,
    /// Seen as `/mnt/user-data/uploads`.
    pub uploads: PathBuf,
    /// Seen as `/mnt/user-data/outputs`.
    pub outputs: PathBuf,
}

impl ThreadFolders {
    /// Makes `{data}/threads/{thread}/user-data/{workspace,uploads,outputs}`, or finds them there.
    pub fn create(data: &Path, thread: &ThreadId) -> io::Result<Self> {
        let user_data = data.join("threads").join(thread.as_str()).join("user-data");
        let made = |name: &str| {
            let folder = user_data.join(name);
            fs::create_dir_all(&folder)?;
            fs::canonicalize(folder)
        };
        Ok(Self { workspace: made("workspace")?, uploads: made("uploads")?, outputs: made("outputs")? })
    }

    /// Puts the workspace on an existing folder of the user.
    pub fn with_workspace(self, folder: &Path) -> io::Result<Self> {
        let workspace = fs::canonicalize(folder)?;
        if !workspace.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "the workspace is not a folder"));
        }
        Ok(Self { workspace, ..self })
    }

    /// Each folder with its virtual path, the workspace first.
    pub(crate) fn roots(&self) -> [(&'static str, &Path); 3] {
        [
            (VIRTUAL_WORKSPACE, &self.workspace),
            (VIRTUAL_UPLOADS, &self.uploads),
            (VIRTUAL_OUTPUTS, &self.outputs),
        ]
    }
}
