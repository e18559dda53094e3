//! Which moment is asked for, and what the answer must have taken in.

use eventlog::{Position, Seq};

use super::{FromQuery, parameters::Parameters};
use crate::error::{Answer, ApiError};

/// Which moment of a thread is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The answer as it would have been given then; `None` is now.
    pub(crate) as_of: Option<AsOf>,
    /// An event of the thread that the answer must have taken in.
    pub(crate) min_seq: Option<Seq>,
    /// An event of the log that the answer must have taken in.
    pub(crate) min_position: Option<Position>,
}

/// An earlier moment of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsOf {
    /// Right after this event of the thread.
    Seq(Seq),
    /// Right after this event of the log.
    Position(Position),
}

impl Moment {
    /// The position of the log that is asked for.
    pub(crate) const fn then(&self) -> Option<Position> {
        match self.as_of {
            Some(AsOf::Position(position)) => Some(position),
            Some(AsOf::Seq(_)) | None => None,
        }
    }
}

impl FromQuery for Moment {
    const NAMES: &'static [&'static str] = &["as_of", "as_of_position", "min_seq", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        let of_log = LogMoment::from_query(parameters)?;
        let as_of = match (parameters.seq("as_of")?, of_log.as_of) {
            (Some(_), Some(_)) => return Err(ApiError::invalid("as_of", "given without as_of_position")),
            (Some(seq), None) => Some(AsOf::Seq(seq)),
            (None, position) => position.map(AsOf::Position),
        };
        Ok(Self { as_of, min_seq: parameters.seq("min_seq")?, min_position: of_log.min_position })
    }
}

/// Which moment of the whole log is asked for, where no thread is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LogMoment {
    /// The answer as it would have been given right after this event of the log; `None` is now.
    pub(crate) as_of: Option<Position>,
    /// An event of the log that the answer must have taken in.
    pub(crate) min_position: Option<Position>,
}

impl FromQuery for LogMoment {
    const NAMES: &'static [&'static str] = &["as_of_position", "min_position"];

    fn from_query(parameters: &Parameters) -> Answer<Self> {
        Ok(Self {
            as_of: position(parameters, "as_of_position")?,
            min_position: position(parameters, "min_position")?,
        })
    }
}

fn position(parameters: &Parameters, name: &str) -> Answer<Option<Position>> {
    Ok(parameters.number(name, 1..=u64::MAX)?.map(Position::new))
}
