//! fjall as a disk: its files as they are when the process dies, the last commit perhaps torn.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use super::{engine_world::Medium, seed::Seed, world::Point};
use crate::{
    engine::{Batch, Engine, EngineError},
    keys,
};

#[derive(Default)]
pub(super) struct Fjall(Mutex<State>);

#[derive(Default)]
struct State {
    folder: PathBuf,
    /// The files before the commit that is being made.
    before: Option<Contents>,
    survivors: Option<Contents>,
}

impl Medium for Fjall {
    fn new() -> Self {
        Self::default()
    }

    fn open(&self, folder: &Path) -> Result<Engine, EngineError> {
        folder.clone_into(&mut self.0.lock().unwrap().folder);
        Engine::open(folder, &keys::KEYSPACES)
    }

    fn before(&self, _: &mut Batch, point: Option<Point>) {
        let mut state = self.0.lock().unwrap();
        state.before = point.is_some().then(|| Contents::read(&state.folder));
    }

    fn die(&self, point: Point, dice: &mut Seed) {
        let mut state = self.0.lock().unwrap();
        let mut left = Contents::read(&state.folder);
        if let (Point::HalfThenLost, Some(before)) = (point, state.before.take()) {
            left.tear(&before, dice);
        }
        state.survivors = Some(left);
    }

    fn bury(&self, folder: &Path) {
        if let Some(survivors) = self.0.lock().unwrap().survivors.take() {
            survivors.write(folder);
        }
    }
}

/// The files of a folder by their names: what is written of each, and its length with what is not.
struct Contents(BTreeMap<PathBuf, (Vec<u8>, u64)>);

impl Contents {
    fn read(folder: &Path) -> Self {
        let (mut files, mut left) = (BTreeMap::new(), vec![folder.to_owned()]);
        while let Some(inside) = left.pop() {
            for entry in fs::read_dir(inside).into_iter().flatten() {
                let path = entry.unwrap().path();
                // The engine removes files of its own while it works.
                let Ok(about) = fs::metadata(&path) else { continue };
                if about.is_dir() {
                    left.push(path);
                    continue;
                }
                let mut bytes = Vec::new();
                let Ok(file) = File::open(&path) else { continue };
                file.take(about.blocks() * 512).read_to_end(&mut bytes).unwrap();
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), (bytes, about.len()));
            }
        }
        Self(files)
    }

    fn write(&self, folder: &Path) {
        for (name, (bytes, length)) in &self.0 {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(*length).unwrap();
        }
    }

    /// Leaves only a part of what was written to journals since.
    fn tear(&mut self, before: &Self, dice: &mut Seed) {
        for (name, (bytes, _)) in &mut self.0 {
            let Some((old, _)) =
                before.0.get(name).filter(|_| name.extension().is_some_and(|end| end == "jnl"))
            else {
                continue;
            };
            let was = |at: usize| old.get(at).copied().unwrap_or(0);
            let changed: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != was(*at)).collect();
            if let (Some(first), Some(last)) = (changed.first(), changed.last()) {
                let end = first + dice.below(last - first + 1);
                (end..bytes.len()).for_each(|at| bytes[at] = was(at));
            }
        }
    }
}
