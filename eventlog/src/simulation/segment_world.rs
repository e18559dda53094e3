//! A log on segments: its record, index, key file and head file in one folder, on real files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use super::{
    defect::Defect,
    files::{self, Files},
    seed::Seed,
    world::{Condition, Point, World},
};
use crate::{
    EventLog, OpenError, Options,
    engine::Engine,
    index::Index,
    keys::INDEX_KEYSPACES,
    open::{LOG_FOLDER, index_folder, recover, segments_folder},
    segment::faulty::Moment,
};

/// With its index on disk, or in memory, from where it is made anew by every start.
pub(super) struct SegmentWorld<const INDEX_ON_DISK: bool, const DEFECT: usize> {
    folder: tempfile::TempDir,
    scene: Arc<Scene>,
}

/// What the writer's thread and the simulation share.
struct Scene {
    defect: Option<Defect>,
    folder: PathBuf,
    state: Mutex<State>,
}

struct State {
    dice: Seed,
    armed: Option<(Point, usize)>,
    /// What happens when the commit that is being made is written.
    at_written: Option<Point>,
    condition: Condition,
    /// Where the last commit was written.
    last_commit: Option<u64>,
    /// The key file as it is durable, and as it was when the process began.
    keys: Option<Vec<u8>>,
    keys_at_first: Option<Vec<u8>>,
    /// The head file as it was, each time that it had changed.
    heads: Vec<Option<Vec<u8>>>,
    survivors: Option<Survivors>,
}

/// What a crash leaves.
struct Survivors {
    files: Files,
    /// The files of the record, with their names.
    segments: Vec<(PathBuf, Vec<u8>)>,
}

const DEAD: &str = "the process is dead";

impl<const INDEX_ON_DISK: bool, const DEFECT: usize> World for SegmentWorld<INDEX_ON_DISK, DEFECT> {
    fn new(mut dice: Seed) -> Self {
        // In memory where the system has such a folder: nobody waits for a disk.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let state = State {
            dice: dice.fork(),
            armed: None,
            at_written: None,
            condition: Condition::Well,
            last_commit: None,
            keys: None,
            keys_at_first: None,
            heads: vec![None],
            survivors: None,
        };
        let (defect, path) = (Defect::ALL.get(DEFECT).copied(), folder.path().to_owned());
        Self { folder, scene: Arc::new(Scene { defect, folder: path, state: Mutex::new(state) }) }
    }

    fn open(&mut self, options: Options) -> Result<EventLog, OpenError> {
        {
            let mut state = self.scene.lock();
            let found = Files::read(&self.scene.folder);
            state.keys_at_first = found.keys.clone();
            (state.keys, state.heads) = (found.keys, vec![found.head]);
            (state.condition, state.at_written, state.survivors) = (Condition::Well, None, None);
            state.last_commit = None;
        }
        let scene = Arc::clone(&self.scene);
        let faults = Arc::new(move |moment: Moment<'_>| scene.meet(moment));
        let opened = EventLog::open_by(
            self.folder.path(),
            options,
            &|segments| segments.fail_by(faults.clone()),
            &|log_folder, segments, head| match INDEX_ON_DISK {
                true => recover::open_index(log_folder, segments, head),
                false => {
                    let index = Index::open(Engine::in_memory(&INDEX_KEYSPACES)).map_err(OpenError::Store)?;
                    recover::add_rest(index, segments, head).map_err(OpenError::Store)
                }
            },
        );
        // Whatever was made by opening is durable, unless the process died at it.
        let mut state = self.scene.lock();
        if state.condition == Condition::Well && opened.is_ok() {
            state.keys = Files::read(&self.scene.folder).keys;
        }
        opened
    }

    fn arm(&self, fault: Option<(Point, usize)>) {
        self.scene.lock().armed = fault;
    }

    fn condition(&self) -> Condition {
        self.scene.lock().condition
    }

    fn kill(&self, point: Point) {
        let mut state = self.scene.lock();
        if state.condition != Condition::Dead {
            self.scene.die(&mut state, point);
        }
    }

    fn erasure_was_answered(&self) {
        self.scene.lock().keys = Files::read(&self.scene.folder).keys;
    }

    fn bury(&mut self) {
        let mut state = self.scene.lock();
        state.armed = None;
        let Some(Survivors { files, segments }) = state.survivors.take() else { return };
        let folder = &self.scene.folder;
        // The index may be what it was, or gone; it is never ahead of the record.
        let keeps_index = INDEX_ON_DISK && state.dice.happens(70);
        let log_folder = folder.join(LOG_FOLDER);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path == log_folder => {}
                true => fs::remove_dir_all(path).unwrap(),
                false => fs::remove_file(path).unwrap(),
            }
        }
        if !keeps_index {
            drop(fs::remove_dir_all(index_folder(&log_folder)));
        }
        files.write(folder);
        let place = segments_folder(&log_folder);
        drop(fs::remove_dir_all(&place));
        fs::create_dir_all(&place).unwrap();
        for (name, bytes) in segments {
            fs::write(place.join(name), bytes).unwrap();
        }
    }
}

impl Scene {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What the record meets.
    fn meet(&self, moment: Moment<'_>) -> Result<(), &'static str> {
        let mut state = self.lock();
        if state.condition == Condition::Dead {
            return Err(DEAD);
        }
        match moment {
            Moment::Read => match state.due(|point| matches!(point, Point::Opening | Point::Reading)) {
                Some(point) => Err(self.die(&mut state, point)),
                None => Ok(()),
            },
            Moment::Commit(address, frame) => self.commit(&mut state, address, frame),
            Moment::Written => match state.at_written.take() {
                Some(Point::FailedButWritten) => {
                    state.condition = Condition::Failing;
                    Err("the disk has failed")
                }
                Some(point) => Err(self.die(&mut state, point)),
                None => Ok(()),
            },
        }
    }

    fn commit(&self, state: &mut State, address: u64, frame: &mut Vec<u8>) -> Result<(), &'static str> {
        let (keys_before, files) = (state.keys.clone(), Files::read(&self.folder));
        // Keys are saved before a group is, so all that are there now are durable.
        state.keys = files.keys.clone();
        if state.heads.last() != Some(&files.head) {
            state.heads.push(files.head);
        }
        let point = state.due(|point| !matches!(point, Point::Reading | Point::Idle));
        state.last_commit = Some(address);
        if let Some(defect) = self.defect {
            defect.change(address, frame, point == Some(Point::HalfThenLost));
        }
        match point {
            None => Ok(()),
            Some(Point::OutOfSpace) => {
                state.condition = Condition::Failing;
                Err("no space left on device")
            }
            Some(
                point @ (Point::HalfThenLost
                | Point::HalfThenKept
                | Point::Unanswered
                | Point::FailedButWritten
                | Point::Closing),
            ) => {
                if point == Point::HalfThenLost && self.defect != Some(Defect::KeepsHalves) {
                    frame.truncate(state.dice.below(frame.len()));
                }
                state.at_written = Some(point);
                Ok(())
            }
            Some(point @ (Point::KeysUnsaved | Point::KeysHalfSaved)) => {
                state.keys = keys_before;
                Err(self.die(state, point))
            }
            Some(point) => Err(self.die(state, point)),
        }
    }

    /// Decides what survives.
    fn die(&self, state: &mut State, point: Point) -> &'static str {
        state.condition = Condition::Dead;
        let State { dice, keys, heads, .. } = state;
        let mut files = Files::read(&self.folder);
        if heads.last() != Some(&files.head) {
            heads.push(files.head.clone());
        }
        match point {
            Point::KeysUnsaved => files.keys = keys.clone(),
            Point::KeysHalfSaved | Point::Erasing => {
                files.keys = files.keys.map(|now| files::mixed(keys.as_deref(), &now, dice));
            }
            Point::Opening
            | Point::BeforeCommit
            | Point::HalfThenLost
            | Point::HalfThenKept
            | Point::Unanswered
            | Point::OutOfSpace
            | Point::FailedButWritten
            | Point::Reading
            | Point::Idle
            | Point::Closing => {}
        }
        if let (Some(Defect::UndoesErasures), Some(keys)) = (self.defect, &mut files.keys) {
            files::undo_erasures(state.keys_at_first.as_deref(), keys);
        }
        files.head = files::one_of(heads, dice);
        let mut segments = record_files(&segments_folder(&self.folder.join(LOG_FOLDER)));
        if let (Some(Defect::AcknowledgesBeforeWriting), Some(at)) = (self.defect, state.last_commit) {
            forget_from(&mut segments, at);
        }
        state.survivors = Some(Survivors { files, segments });
        DEAD
    }
}

fn record_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (PathBuf::from(path.file_name().unwrap()), fs::read(&path).unwrap())
    };
    entries.map(read).collect()
}

/// The small logs of histories are in their first segment.
fn forget_from(segments: &mut [(PathBuf, Vec<u8>)], address: u64) {
    for (_, bytes) in segments {
        let from = (address as usize).min(bytes.len());
        bytes[from..].fill(0);
    }
}

impl State {
    /// Counts an occasion of this kind down, and gives the point that it is the occasion of.
    fn due(&mut self, is_of_kind: impl Fn(Point) -> bool) -> Option<Point> {
        let (point, left) = self.armed?;
        if !is_of_kind(point) {
            return None;
        }
        self.armed = left.checked_sub(1).map(|left| (point, left));
        self.armed.is_none().then_some(point)
    }
}
