//! Exports that are not what they were: the first bad position is named.

use super::*;

/// Bytes that are flipped, spread over each file: with a prime, so that all columns come.
const FLIP_EVERY: usize = 131;

/// An export that can be changed and put back.
struct Changed {
    world: World,
    folder: PathBuf,
}

impl Changed {
    async fn new(filter: Filter) -> Self {
        let world = World::filled().await;
        world.export("export", filter).unwrap();
        let folder = world.path("export");
        assert_eq!(checked(&folder).damage, None);
        Self { world, folder }
    }

    /// What is found while a file is another one. None if it cannot be read at all.
    #[track_caller]
    fn found(&self, name: &str, bytes: &[u8]) -> Option<ExportDamage> {
        let path = self.folder.join(name);
        let whole = fs::read(&path).unwrap();
        assert_ne!(whole, bytes);
        fs::write(&path, bytes).unwrap();
        let found = verify_export(&self.folder, VerifyExport::default());
        fs::write(&path, whole).unwrap();
        match found {
            Ok(report) => Some(report.damage.expect("a change is found")),
            Err(error) => {
                assert!(error.is_damage(), "{error}");
                None
            }
        }
    }

    #[track_caller]
    fn check_position(&self, name: &str, bytes: &[u8], position: u64) {
        match self.found(name, bytes) {
            Some(ExportDamage::Event(damage)) => {
                assert_eq!(damage.position, Position::new(position), "{damage}")
            }
            other => panic!("{other:?}"),
        }
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.join(name)).unwrap()
    }

    fn lines(&self, name: &str) -> Vec<Vec<u8>> {
        self.read(name).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    /// The position of each line.
    fn positions(&self) -> Vec<u64> {
        exported(&self.folder).iter().map(|event| event.position.get()).collect()
    }
}

fn filters() -> [Filter; 2] {
    [Filter::default(), Filter { thread_id: Some(thread_id("t")), ..Filter::default() }]
}

// Field report 103.
#[tokio::test]
async fn a_flipped_byte_of_any_event_names_its_position() {
    for filter in filters() {
        let changed = Changed::new(filter).await;
        let (bytes, positions) = (changed.read(EVENTS_FILE), changed.positions());
        for at in (0..bytes.len()).step_by(FLIP_EVERY) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            changed.check_position(EVENTS_FILE, &flipped, positions[line]);
        }
    }
}

#[tokio::test]
async fn a_removed_swapped_or_doubled_line_names_its_position() {
    for filter in filters() {
        let changed = Changed::new(filter).await;
        let (lines, positions) = (changed.lines(EVENTS_FILE), changed.positions());
        for at in (0..lines.len() - 1).step_by(5) {
            let mut other = lines.clone();
            other.remove(at);
            changed.check_position(EVENTS_FILE, &other.concat(), positions[at]);
            let mut other = lines.clone();
            other.swap(at, at + 1);
            changed.check_position(EVENTS_FILE, &other.concat(), positions[at]);
            let mut other = lines.clone();
            other.insert(at, lines[at].clone());
            changed.check_position(EVENTS_FILE, &other.concat(), positions[at + 1]);
        }
        let end = changed.world.head().position.get();
        changed.check_position(EVENTS_FILE, &lines[..lines.len() - 1].concat(), *positions.last().unwrap());
        changed.check_position(EVENTS_FILE, &[lines.concat(), lines[0].clone()].concat(), end + 1);
        changed.check_position(EVENTS_FILE, b"", positions[0]);
    }
}

#[tokio::test]
async fn a_file_that_was_cut_names_the_first_position_that_is_gone() {
    for filter in filters() {
        let changed = Changed::new(filter).await;
        let (bytes, positions) = (changed.read(EVENTS_FILE), changed.positions());
        for length in (0..bytes.len()).step_by(FLIP_EVERY) {
            let line = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
            changed.check_position(EVENTS_FILE, &bytes[..length], positions[line]);
        }
    }
}

#[tokio::test]
async fn changed_hashes_of_withheld_events_are_found() {
    let changed = Changed::new(filters()[1].clone()).await;
    let lines = changed.lines(HASHES_FILE);
    let end = lines.len() as u64;
    for at in (0..lines.len()).step_by(3) {
        let position = at as u64 + 1;
        let mut other = lines.clone();
        other[at][0] = if lines[at][0] == b'+' { b'-' } else { b'+' };
        assert!(
            matches!(changed.found(HASHES_FILE, &other.concat()), Some(ExportDamage::Event(_))),
            "{position}"
        );
        let mut other = lines.clone();
        other[at][5] = if lines[at][5] == b'0' { b'1' } else { b'0' };
        // Of a withheld event nothing is known but that the chain is another at the end.
        let named = if lines[at][0] == b'+' { position } else { end };
        changed.check_position(HASHES_FILE, &other.concat(), named);
        let mut other = lines.clone();
        other[at][5] = b'x';
        changed.check_position(HASHES_FILE, &other.concat(), position);
        let cut = lines[..at].concat();
        assert!(matches!(changed.found(HASHES_FILE, &cut), Some(ExportDamage::Event(_))), "{position}");
    }
}

#[tokio::test]
async fn a_changed_manifest_signature_or_key_file_is_found() {
    for filter in filters() {
        let changed = Changed::new(filter).await;
        for name in [MANIFEST_FILE, SIGNATURE_FILE] {
            let bytes = changed.read(name);
            for at in (0..bytes.len()).step_by(41) {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1;
                changed.found(name, &flipped);
            }
        }
        if changed.world.path("export").join(KEYS_FILE).exists() {
            let mut keys = changed.read(KEYS_FILE);
            keys[200] ^= 1;
            let damage = ExportDamage::File { name: KEYS_FILE.to_owned() };
            assert_eq!(changed.found(KEYS_FILE, &keys), Some(damage));
        }
    }
}

#[tokio::test]
async fn a_removed_file_is_named() {
    for filter in filters() {
        let changed = Changed::new(filter).await;
        let listed = fs::read_dir(&changed.folder).unwrap();
        let names: Vec<_> = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(names.len(), 4);
        for name in names {
            let (path, aside) = (changed.folder.join(&name), changed.world.path("aside"));
            fs::rename(&path, &aside).unwrap();
            let damage = match verify_export(&changed.folder, VerifyExport::default()) {
                Ok(report) => report.damage,
                Err(ExportError::Damaged(damage)) => Some(*damage),
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(damage, Some(ExportDamage::FileMissing { name }));
            fs::rename(&aside, &path).unwrap();
        }
    }
}

/// What an export would be that somebody else signed, after changing it.
#[tokio::test]
async fn an_export_that_somebody_else_signed_is_told_apart() {
    let world = World::filled().await;
    world.export("export", Filter::default()).unwrap();
    let folder = world.path("export");
    let stranger = SigningKey::open_or_create(&world.path("other.key")).unwrap();
    let with_key =
        |key| verify_export(&folder, VerifyExport { key: Some(key), ..VerifyExport::default() }).unwrap();
    let ours = world.key.public_key();
    assert_eq!(with_key(ours).damage, None);
    // The signature alone.
    let (mut manifest, bytes) = Manifest::read(&folder).unwrap();
    fs::write(folder.join(SIGNATURE_FILE), stranger.sign(&bytes).unwrap()).unwrap();
    assert_eq!(checked(&folder).damage, Some(ExportDamage::Signature { key: ours }));
    // Signature and manifest.
    manifest.public_key = stranger.public_key();
    let bytes = manifest.to_bytes().unwrap();
    fs::write(folder.join(MANIFEST_FILE), &bytes).unwrap();
    fs::write(folder.join(SIGNATURE_FILE), stranger.sign(&bytes).unwrap()).unwrap();
    assert_eq!(checked(&folder).damage, None);
    let other = ExportDamage::OtherKey { expected: ours, found: stranger.public_key() };
    assert_eq!(with_key(ours).damage, Some(other));
}

#[tokio::test]
async fn counts_that_do_not_fit_are_found_even_when_they_are_signed() {
    let world = World::filled().await;
    world.export("export", Filter::default()).unwrap();
    let folder = world.path("export");
    let (manifest, _) = Manifest::read(&folder).unwrap();
    let changes: [fn(&mut Manifest); 3] = [
        |manifest| manifest.streams[1].events -= 1,
        |manifest| manifest.erased += 1,
        |manifest| manifest.files.truncate(1),
    ];
    for change in changes {
        let mut other = manifest.clone();
        change(&mut other);
        let bytes = other.to_bytes().unwrap();
        fs::write(folder.join(MANIFEST_FILE), &bytes).unwrap();
        fs::write(folder.join(SIGNATURE_FILE), world.key.sign(&bytes).unwrap()).unwrap();
        let found = checked(&folder).damage;
        // Without keys it is still an export, though no log can be made of it.
        if other.files.len() > 1 {
            assert!(matches!(found, Some(ExportDamage::Manifest { .. })), "{found:?}");
        } else {
            assert_eq!(found, None);
        }
    }
    let text = String::from_utf8(manifest.to_bytes().unwrap()).unwrap();
    let newer = text.replacen("\"format\": 1", "\"format\": 2", 1);
    fs::write(folder.join(MANIFEST_FILE), &newer).unwrap();
    let changed = verify_export(&folder, VerifyExport::default());
    assert!(changed.as_ref().is_err_and(ExportError::is_damage), "{changed:?}");
    fs::write(folder.join(SIGNATURE_FILE), world.key.sign(newer.as_bytes()).unwrap()).unwrap();
    let refused = verify_export(&folder, VerifyExport::default());
    assert!(matches!(refused, Err(ExportError::Newer { found: 2 })), "{refused:?}");
}
