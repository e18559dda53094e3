//! Told apart everywhere: what is stored is not what was written, or it just cannot be had now.
//!
//! Whoever answers for the log (exit codes, HTTP statuses) asks here, so that one damage has one
//! name wherever it is met.

use std::{error::Error, io};

use crate::{
    AppendError, BlobError, Damage, OpenError, ReplayError, UndecodableEvent, backup::BackupError,
    codec::DecodeError, export::ExportError, segment::SegmentError, store::StoreError,
};

/// Whether the error, or what caused it, is damage: stored data that is not what was written. Trying
/// again does not help; `remit verify` says how far it goes.
pub fn is_damage(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(is_damage_itself)
}

fn is_damage_itself(error: &(dyn Error + 'static)) -> bool {
    // An append shares its cause with others, which hides the type of it from `source`.
    if let Some(AppendError::Storage { source, .. }) = error.downcast_ref() {
        return source.is_damage();
    }
    error.downcast_ref::<StoreError>().is_some_and(StoreError::is_damage)
        || error.downcast_ref::<OpenError>().is_some_and(OpenError::is_damage)
        || error.downcast_ref::<BackupError>().is_some_and(BackupError::is_damage)
        || error.downcast_ref::<BlobError>().is_some_and(BlobError::is_damage)
        || error.downcast_ref::<ExportError>().is_some_and(ExportError::is_damage)
        || error.downcast_ref::<UndecodableEvent>().is_some_and(UndecodableEvent::is_damage)
        || matches!(error.downcast_ref(), Some(ReplayError::Broken { .. } | ReplayError::Missing { .. }))
        || error.is::<Damage>()
}

impl StoreError {
    /// Whether what is stored is not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            // A later version wrote it, or the disk did not give the key.
            Self::Damaged { source: DecodeError::Version { .. } | DecodeError::Flags { .. }, .. } => false,
            Self::Damaged { source: DecodeError::Key(error), .. } | Self::Keys(error) => is_key_damage(error),
            Self::Damaged { .. }
            | Self::MissingEvent { .. }
            | Self::KeyMissing { .. }
            | Self::TailDiffers { .. } => true,
            Self::Engine(error) => error.is_damage(),
            Self::Record(error) => {
                matches!(error.downcast_ref(), Some(SegmentError::Damaged { .. }))
            }
            Self::Unencodable(_) | Self::Injected => false,
        }
    }
}

/// The keyring says so of a key whose slot was changed.
fn is_key_damage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

impl OpenError {
    /// Whether what is stored is not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::HeadBehind { .. }
            | Self::HeadDiffers { .. }
            | Self::WatermarkDamaged { .. }
            | Self::SegmentDamaged { .. }
            | Self::RecordLost { .. }
            | Self::KeysLost { .. }
            | Self::KeysDamaged { .. } => true,
            Self::Engine { source, .. } => source.is_damage(),
            Self::Store(error) => error.is_damage(),
            Self::Migration { source, .. } => is_damage(&**source),
            Self::Io { .. }
            | Self::Held { .. }
            | Self::HeldByUnknown { .. }
            | Self::Format { .. }
            | Self::OldFormat { .. }
            | Self::MasterKeyLost { .. }
            | Self::MasterKeyMissing { .. }
            | Self::MasterKeyWrong { .. }
            | Self::MasterKeyInvalid { .. }
            | Self::Writer(_) => false,
        }
    }
}

impl UndecodableEvent {
    /// Whether what is stored is not what was written. Events of a later version are no damage.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::NotOfAThread { .. } | Self::Upcast { .. } | Self::Content { .. } => true,
            Self::SchemaVersion { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{DamageKind, Position, ReadError, StreamId, engine::EngineError};

    #[track_caller]
    fn check(error: impl Error + 'static, expected: bool) {
        assert_eq!(is_damage(&error), expected, "{error:?}");
    }

    fn damaged(source: DecodeError) -> StoreError {
        StoreError::Damaged { what: "a record".into(), source }
    }

    #[test]
    fn damage_is_told_from_what_may_pass() {
        let position = Position::new(7);
        let engine = EngineError { action: "read a key".into(), source: "no space".into() };
        check(StoreError::MissingEvent { position }, true);
        check(StoreError::KeyMissing { stream: StreamId::Registry }, true);
        check(StoreError::TailDiffers { stream: StreamId::Registry, seq: crate::Seq::new(3) }, true);
        check(damaged(DecodeError::Short { field: "seq" }), true);
        check(damaged(DecodeError::Key(io::ErrorKind::InvalidData.into())), true);
        check(Damage { position, kind: DamageKind::Missing }, true);
        check(damaged(DecodeError::Version { found: 9 }), false);
        check(damaged(DecodeError::Key(io::ErrorKind::Interrupted.into())), false);
        check(StoreError::Keys(io::ErrorKind::StorageFull.into()), false);
        check(StoreError::Injected, false);
        check(StoreError::Engine(engine), false);
        check(io::Error::other("something else"), false);
    }

    #[test]
    fn damage_is_found_below_what_was_being_done() {
        check(ReadError::Store(StoreError::MissingEvent { position: Position::new(7) }), true);
        check(ReadError::Store(StoreError::Injected), false);
        check(ReadError::Closed, false);
        let append = |source: StoreError| AppendError::Storage {
            stream: StreamId::Registry,
            source: Arc::new(source),
        };
        check(append(damaged(DecodeError::Short { field: "seq" })), true);
        check(append(StoreError::Injected), false);
    }
}
