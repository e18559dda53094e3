//! A thread's three folders, and the virtual paths under which agents know them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use domain::ids::ThreadId;
use eventlog::backup::THREADS_FOLDER;

/// What every virtual path begins with.
pub const VIRTUAL_ROOT: &str = "/mnt/user-data";
/// Where agents work; relative paths start here.
pub const VIRTUAL_WORKSPACE: &str = "/mnt/user-data/workspace";
/// What the user gave.
pub const VIRTUAL_UPLOADS: &str = "/mnt/user-data/uploads";
/// What the user gets.
pub const VIRTUAL_OUTPUTS: &str = "/mnt/user-data/outputs";

/// The folders of one thread on this machine: absolute, existing and free of symlinks.
///
/// Around them lies the server's data folder, with the log, the keys and other threads' files.
/// The workspace may be a folder of the user that contains it, so whatever lies in it, but for the
/// thread's own folders, is hidden from every tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFolders {
    /// Seen as `/mnt/user-data/workspace`.
    pub workspace: PathBuf,
    /// Seen as `/mnt/user-data/uploads`.
    pub uploads: PathBuf,
    /// Seen as `/mnt/user-data/outputs`.
    pub outputs: PathBuf,
    /// Where the server keeps its own files.
    data: PathBuf,
}

impl ThreadFolders {
    /// `{data}/threads/{thread}`: all that is kept in files for one thread.
    pub fn root(data: &Path, thread: &ThreadId) -> PathBuf {
        data.join(THREADS_FOLDER).join(thread.as_str())
    }

    /// Makes `{data}/threads/{thread}/user-data/{workspace,uploads,outputs}`, or finds them there.
    pub fn create(data: &Path, thread: &ThreadId) -> io::Result<Self> {
        let user_data = Self::root(data, thread).join("user-data");
        let made = |name: &str| {
            let folder = user_data.join(name);
            fs::create_dir_all(&folder)?;
            fs::canonicalize(folder)
        };
        let (workspace, uploads, outputs) = (made("workspace")?, made("uploads")?, made("outputs")?);
        Ok(Self { workspace, uploads, outputs, data: fs::canonicalize(data)? })
    }

    /// One folder for everything, to try a confinement out; a folder in it is hidden.
    pub(super) fn of_trial(folder: &Path) -> Self {
        let [workspace, uploads, outputs] = [folder; 3].map(Path::to_owned);
        Self { workspace, uploads, outputs, data: folder.join("data") }
    }

    /// Puts the workspace on an existing folder of the user, outside the data folder.
    pub fn with_workspace(self, folder: &Path) -> io::Result<Self> {
        let workspace = real_workspace(&self.data, folder)?;
        Ok(Self { workspace, ..self })
    }

    /// Where the server keeps its own files: hidden, but for the thread's folders.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// Whether a real path is among the server's own files and not in one of the thread's folders.
    pub(crate) fn hides(&self, real: &Path) -> bool {
        let is_own = |(_, root): (&str, &Path)| root.starts_with(&self.data) && real.starts_with(root);
        real.starts_with(&self.data) && !self.roots().into_iter().any(is_own)
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

/// The real path of a folder of the user that can be a workspace. One inside the data folder
/// cannot: agents would work on the server's own files.
pub(crate) fn real_workspace(data: &Path, folder: &Path) -> io::Result<PathBuf> {
    let refused = |kind, why: &str| Err(io::Error::new(kind, why));
    let workspace = fs::canonicalize(folder)?;
    if !workspace.is_dir() {
        return refused(io::ErrorKind::NotADirectory, "it is not a folder");
    }
    // A data folder that does not exist contains nothing.
    if fs::canonicalize(data).is_ok_and(|data| workspace.starts_with(data)) {
        let why = "it lies in the data folder, where the log and the keys are; choose a folder outside it";
        return refused(io::ErrorKind::InvalidInput, why);
    }
    Ok(workspace)
}
