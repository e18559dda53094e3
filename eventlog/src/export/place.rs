//! Where an export is made: a folder beside its place, which is moved there when it is whole. So
//! half an export never looks like one, and what an interruption leaves can be gone on with.
//!
//! `unfinished.json` in that folder says which events are wanted, and is locked by whoever works
//! there. It is the last to go before the move.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{ExportError, Filter, io_error, output::OWNER_ONLY};

/// Ends the name of a folder that is being made.
const SUFFIX: &str = ".unfinished";
pub(super) const NOTE_FILE: &str = "unfinished.json";
pub(super) const OWNER_ONLY_FOLDER: u32 = 0o700;

/// A folder that is being made. It stays when it is dropped.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    target: PathBuf,
    /// Holds the lock.
    note: File,
}

impl Place {
    /// Takes the folder, with what is there of an export with this filter, or empty.
    pub(super) fn begin(target: &Path, filter: &Filter, is_anew: bool) -> Result<Self, ExportError> {
        let (target, folder) = beside(target)?;
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(OWNER_ONLY_FOLDER);
        builder.create(&folder).map_err(io_error("create", &folder))?;
        let path = folder.join(NOTE_FILE);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY);
        let note = options.open(&path).map_err(io_error("open", &path))?;
        match note.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ExportError::Busy { folder }),
            Err(TryLockError::Error(source)) => return Err(io_error("lock", &path)(source)),
        }
        let mut place = Self { folder, target, note };
        place.settle(filter, is_anew)?;
        Ok(place)
    }

    /// Keeps what is there only if it is of an export with this filter.
    fn settle(&mut self, filter: &Filter, is_anew: bool) -> Result<(), ExportError> {
        let path = self.folder.join(NOTE_FILE);
        let mut text = Vec::new();
        self.note.read_to_end(&mut text).map_err(io_error("read", &path))?;
        let noted = serde_json::from_slice::<Filter>(&text).ok();
        match noted {
            Some(noted) if !is_anew && noted == *filter => return Ok(()),
            Some(_) if !is_anew => {
                return Err(ExportError::OtherUnfinished { folder: self.folder.clone() });
            }
            Some(_) | None => {}
        }
        self.clear()?;
        let mut write = || -> io::Result<()> {
            self.note.set_len(0)?;
            self.note.rewind()?;
            self.note.write_all(&serde_json::to_vec(filter)?)?;
            self.note.sync_all()
        };
        write().map_err(io_error("write", &path))
    }

    /// Removes everything that was made so far.
    pub(super) fn clear(&self) -> Result<(), ExportError> {
        let clear = || -> io::Result<()> {
            for entry in fs::read_dir(&self.folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    fs::remove_dir_all(path)?;
                } else if path.file_name().is_some_and(|name| name != NOTE_FILE) {
                    fs::remove_file(path)?;
                }
            }
            Ok(())
        };
        clear().map_err(io_error("empty", &self.folder))
    }

    /// Moves the folder to its place, where it survives a power loss.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let note = self.folder.join(NOTE_FILE);
        fs::remove_file(&note).map_err(io_error("remove", &note))?;
        move_to(&self.folder, &self.target)
    }
}

/// The target without a trailing separator, behind which a suffix would name something inside, and
/// the folder beside it. The target must be free, or an empty folder.
pub(super) fn beside(target: &Path) -> Result<(PathBuf, PathBuf), ExportError> {
    let target: PathBuf = target.components().collect();
    if !is_free(&target).map_err(io_error("look into", &target))? {
        return Err(ExportError::NotEmpty { folder: target });
    }
    let mut name = target.as_os_str().to_owned();
    name.push(SUFFIX);
    Ok((target, PathBuf::from(name)))
}

/// Makes an empty folder; what was there goes.
pub(super) fn make_anew(folder: &Path) -> Result<(), ExportError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error("remove", folder)(error));
        }
        Ok(()) | Err(_) => {}
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(OWNER_ONLY_FOLDER).create(folder).map_err(io_error("create", folder))
}

/// Moves a whole folder to its place. An empty folder there is replaced.
pub(super) fn move_to(folder: &Path, target: &Path) -> Result<(), ExportError> {
    let moved = || -> io::Result<()> {
        File::open(folder)?.sync_all()?;
        fs::rename(folder, target)?;
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    };
    moved().map_err(io_error("finish", target))
}

fn is_free(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}
