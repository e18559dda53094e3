//! A log on an ordered engine: the engine, the key file and the head file of one folder.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use super::{
    files::{self, Files},
    seed::Seed,
    world::{Condition, Point, World},
};
use crate::{
    EventLog, OpenError, Options,
    engine::{Batch, Engine, EngineError, faulty::Moment},
};

/// What the engine writes to.
pub(super) trait Medium: Send + Sync + 'static {
    /// An empty one.
    fn new() -> Self;
    /// Opens the engine on what is there.
    fn open(&self, folder: &Path) -> Result<Engine, EngineError>;
    /// The batch is written next. When the process dies at it, `point` says where.
    fn before(&self, batch: &mut Batch, point: Option<Point>);
    /// The process has died at a point: this is what survives.
    fn die(&self, point: Point, dice: &mut Seed);
    /// Puts what survived in the place of what was there.
    fn bury(&self, folder: &Path);
    /// Whether erasures that were answered last.
    fn keeps_erasures(&self) -> bool {
        true
    }
}

pub(super) struct EngineWorld<M> {
    folder: tempfile::TempDir,
    scene: Arc<Scene<M>>,
}

/// What the engine's thread and the simulation share.
struct Scene<M> {
    medium: M,
    folder: PathBuf,
    state: Mutex<State>,
}

struct State {
    dice: Seed,
    armed: Option<(Point, usize)>,
    /// What happens when the commit that is being made is written.
    at_written: Option<Point>,
    condition: Condition,
    /// The key file as it is durable, and as it was when the process began.
    keys: Option<Vec<u8>>,
    keys_at_first: Option<Vec<u8>>,
    /// The head file as it was, each time that it had changed.
    heads: Vec<Option<Vec<u8>>>,
    /// Whether the folder has not been filled yet.
    is_new: bool,
    survivors: Option<Files>,
}

const DEAD: &str = "the process is dead";

impl<M: Medium> World for EngineWorld<M> {
    fn new(mut dice: Seed) -> Self {
        // In memory where the system has such a folder: nobody waits for a disk.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let state = State {
            dice: dice.fork(),
            armed: None,
            at_written: None,
            condition: Condition::Well,
            keys: None,
            keys_at_first: None,
            heads: vec![None],
            is_new: true,
            survivors: None,
        };
        let (medium, path) = (M::new(), folder.path().to_owned());
        Self { folder, scene: Arc::new(Scene { medium, folder: path, state: Mutex::new(state) }) }
    }

    fn open(&mut self, options: Options) -> Result<EventLog, OpenError> {
        {
            let mut state = self.scene.lock();
            let found = Files::read(&self.scene.folder);
            state.keys_at_first = found.keys.clone();
            (state.keys, state.heads) = (found.keys, vec![found.head]);
            (state.condition, state.at_written, state.survivors) = (Condition::Well, None, None);
        }
        let scene = Arc::clone(&self.scene);
        let faults = move |moment: Moment<'_>| scene.meet(moment);
        let log = EventLog::open_on(self.folder.path(), options, |folder| {
            Ok(Engine::faulty(self.scene.medium.open(folder)?, Arc::new(faults)))
        })?;
        self.scene.lock().is_new = false;
        Ok(log)
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
        if let Some(survivors) = state.survivors.take() {
            std::fs::remove_dir_all(&self.scene.folder).unwrap();
            std::fs::create_dir(&self.scene.folder).unwrap();
            survivors.write(&self.scene.folder);
        }
        self.scene.medium.bury(&self.scene.folder.join(crate::open::ENGINE_FOLDER));
    }
}

impl<M: Medium> Scene<M> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What the engine meets.
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
            Moment::Commit(batch) => self.commit(&mut state, batch),
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

    fn commit(&self, state: &mut State, batch: &mut Batch) -> Result<(), &'static str> {
        let (keys_before, files) = (state.keys.clone(), Files::read(&self.folder));
        // Keys are saved before a group is, so all that are there now are durable.
        state.keys = files.keys.clone();
        if state.heads.last() != Some(&files.head) {
            state.heads.push(files.head);
        }
        let point = state.due(|point| !matches!(point, Point::Reading | Point::Idle));
        self.medium.before(batch, point);
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
        if let (false, Some(keys)) = (self.medium.keeps_erasures(), &mut files.keys) {
            files::undo_erasures(state.keys_at_first.as_deref(), keys);
        }
        files.head = files::one_of(heads, dice);
        if state.is_new {
            files = files.unfinished(&mut state.dice);
        }
        state.survivors = Some(files);
        self.medium.die(point, &mut state.dice);
        DEAD
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
