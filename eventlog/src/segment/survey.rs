//! Finding the end of the record, and whether it is a good one. Nothing is written here.
//!
//! What is read is the last segment that has frames, or from the one on that holds the head that was
//! noted outside the log, so that the cost does not grow with the log.

use std::ops::Range;

use super::{
    Extent, Flaw, SegmentError, Segments, ZEROS,
    frame::{Frame, HEADER_BYTES, Header, MAGIC},
    walk::Walk,
};
use crate::{
    chain::{self, Hash},
    position::Position,
    store::Head,
};

/// What a look at the record found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Survey {
    /// After the last whole frame.
    pub(crate) head: Head,
    /// Where that frame begins.
    pub(crate) last: u64,
    /// The address behind it.
    pub(crate) end: u64,
    /// What is behind it.
    pub(crate) ending: Ending,
    /// How the record goes together with the head that was noted outside of it.
    pub(crate) noted: Fit,
}

/// What is behind the last whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Zeros.
    Clean,
    /// Something that is no frame, and nothing whole behind it: a commit that was cut off.
    Torn {
        /// How many bytes, up to the last that is not zero.
        bytes: u64,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// Something that is no frame, and a whole frame behind it.
    Damaged {
        /// Where the damage begins.
        address: u64,
        /// What is wrong there.
        flaw: Flaw,
    },
}

/// Whether the record is the one whose head was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Nothing was noted.
    Unknown,
    /// The noted head is in it.
    Passed,
    /// It ends before.
    Behind,
    /// It has another commit or another chain there.
    Differs,
}

/// Looks at the end of a record.
pub(crate) fn survey(segments: &Segments, noted: Option<Head>) -> Result<Survey, SegmentError> {
    let start = start(segments, noted)?;
    let gap = gap(segments).map(|address| (address, Flaw::Gap));
    let mut looking =
        Looking { noted, chain: start.is_none().then_some(chain::START), found: None, fits: None };
    let first = start.is_none().then_some(Position::new(1));
    let mut walk = Walk::new(segments.clone(), start.map_or(0, |extent| extent.first), first);
    let broken = loop {
        let at = walk.at();
        match walk.next() {
            Ok(Some(frame)) => {
                if let Err(flaw) = looking.pass(&frame) {
                    break Some((frame.header.address, flaw));
                }
            }
            Ok(None) => break None,
            Err(SegmentError::Damaged { address, what, .. }) => break Some((address.max(at), what)),
            Err(error) => return Err(error),
        }
    };
    let (head, Range { start: last, end }) = looking.found.unwrap_or((Head::EMPTY, 0..0));
    let ending = match gap {
        Some((address, flaw)) => Ending::Damaged { address, flaw },
        None => ending(segments, end, broken)?,
    };
    let noted = match (noted, looking.fits) {
        (None | Some(Head::EMPTY), _) => Fit::Unknown,
        (Some(noted), _) if noted.position > head.position => Fit::Behind,
        (Some(_), Some(true)) => Fit::Passed,
        (Some(_), _) => Fit::Differs,
    };
    Ok(Survey { head, last, end, ending, noted })
}

/// The state of a survey.
struct Looking {
    noted: Option<Head>,
    /// The chain after the last frame. None before the first, if frames are before it.
    chain: Option<Hash>,
    found: Option<(Head, Range<u64>)>,
    fits: Option<bool>,
}

impl Looking {
    fn pass(&mut self, frame: &Frame<'_>) -> Result<(), Flaw> {
        if let Some(before) = self.chain
            && frame.fold_chain(before) != Some(frame.header.chain)
        {
            return Err(Flaw::Chain);
        }
        let commit = frame.header.commit();
        let head = Head { position: commit.last, chain: commit.chain };
        self.chain = Some(commit.chain);
        let address = frame.header.address;
        self.found = Some((head, address..address + frame.header.frame_bytes()));
        if let Some(noted) = self.noted
            && commit.first <= noted.position
            && noted.position <= commit.last
        {
            self.fits = Some(noted == head);
        }
        Ok(())
    }
}

/// The segment to begin with; none means the beginning.
fn start(segments: &Segments, noted: Option<Head>) -> Result<Option<Extent>, SegmentError> {
    for extent in segments.extents().into_iter().skip(1).rev() {
        let mut bytes = [0; HEADER_BYTES];
        segments.read_at(extent.first, &mut bytes)?;
        if let Ok(header) = Header::decode(&bytes, extent.first)
            && noted.is_none_or(|noted| header.first <= noted.position)
            && is_whole(segments, &header)?
        {
            return Ok(Some(extent));
        }
    }
    Ok(None)
}

/// Where a segment is missing, or ends before the next one begins.
fn gap(segments: &Segments) -> Option<u64> {
    let mut end = 0;
    for extent in segments.extents() {
        if extent.first != end {
            return Some(end);
        }
        end = extent.end();
    }
    None
}

/// What is behind the end, given the place where reading on failed.
fn ending(segments: &Segments, end: u64, broken: Option<(u64, Flaw)>) -> Result<Ending, SegmentError> {
    let Some(last) = segments.last_written(end)? else {
        return Ok(Ending::Clean);
    };
    let (address, flaw) = broken.unwrap_or((end, Flaw::NoFrame));
    // A frame in its place that is whole but does not follow is not torn.
    let is_whole = match flaw {
        Flaw::Discontinuous { .. } | Flaw::Chain | Flaw::Shape | Flaw::Version(_) | Flaw::Gap => true,
        Flaw::NoFrame | Flaw::Beyond | Flaw::Checksum => false,
    };
    if is_whole || find_frame(segments, address + 1)?.is_some() {
        return Ok(Ending::Damaged { address, flaw });
    }
    Ok(Ending::Torn { bytes: last + 1 - end, flaw })
}

/// Looks for a whole frame that begins at an address or behind it.
fn find_frame(segments: &Segments, from: u64) -> Result<Option<u64>, SegmentError> {
    let mut candidates = Vec::new();
    let mut buffer = vec![0; ZEROS.len()];
    segments.visit(from, &mut buffer, &mut |address, bytes| {
        if !super::is_zero(bytes) {
            let starts = bytes.iter().enumerate().filter(|(_, byte)| Some(*byte) == MAGIC.first());
            let follows = |index: usize| {
                let rest = bytes.get(index..).unwrap_or_default();
                let known = rest.len().min(MAGIC.len());
                rest.get(..known) == MAGIC.get(..known)
            };
            candidates
                .extend(starts.filter(|(index, _)| follows(*index)).map(|(index, _)| address + index as u64));
        }
    })?;
    for address in candidates {
        let mut bytes = [0; HEADER_BYTES];
        segments.read_at(address, &mut bytes)?;
        // A frame of a later version is something whole, too, as far as anybody can tell.
        let header = match Header::decode(&bytes, address) {
            Ok(header) => header,
            Err(Flaw::Version(_)) => return Ok(Some(address)),
            Err(_) => continue,
        };
        if is_whole(segments, &header)? {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

fn is_whole(segments: &Segments, header: &Header) -> Result<bool, SegmentError> {
    let room = segments.extent_at(header.address).map_or(0, |extent| extent.end() - header.address);
    if header.frame_bytes() > room {
        return Ok(false);
    }
    let mut bytes = vec![0; usize::try_from(header.frame_bytes()).unwrap_or(0)];
    let count = segments.read_at(header.address, &mut bytes)?;
    Ok(count == bytes.len() && Frame::check(*header, &bytes).is_ok())
}
