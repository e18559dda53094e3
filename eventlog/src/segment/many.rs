//! Reading records by their places.

use super::{SegmentError, Segments};
use crate::keys::location::Location;

/// Records with no more than this between them are read together.
const GAP_BYTES: u64 = 16 * 1024;
/// Read together at most.
const RUN_BYTES_MAX: u64 = 1024 * 1024;

/// Is shown the bytes of a record, and its place in the list. An error ends the reading.
pub(crate) type Shown<'a, E> = dyn FnMut(usize, &[u8]) -> Result<(), E> + 'a;

impl Segments {
    /// Shows the records at ascending places. The system is told of all of them first, so that a
    /// disk is asked once for what lies far apart.
    pub(crate) fn read_many<E: From<SegmentError>>(
        &self,
        places: &[Location],
        show: &mut Shown<'_, E>,
    ) -> Result<(), E> {
        let runs: Vec<&[Location]> = places.chunk_by(|one, next| self.are_near(*one, *next)).collect();
        if runs.len() > 1 {
            for run in &runs {
                if let Some((first, bytes)) = span(run) {
                    self.will_need(first, bytes);
                }
            }
        }
        let (mut index, mut buffer) = (0, Vec::new());
        for run in runs {
            self.read_run(run, &mut buffer, &mut |bytes| {
                index += 1;
                show(index - 1, bytes)
            })?;
        }
        Ok(())
    }

    fn are_near(&self, one: Location, next: Location) -> bool {
        let end = one.address + u64::from(one.length);
        let is_near = next.address >= end && next.address - end <= GAP_BYTES;
        is_near && self.extent_at(one.address) == self.extent_at(next.address)
    }

    fn read_run<E: From<SegmentError>>(
        &self,
        run: &[Location],
        buffer: &mut Vec<u8>,
        show: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = run;
        while let Some(first) = rest.first() {
            let fits = |one: &&Location| {
                one.address + u64::from(one.length) - first.address <= RUN_BYTES_MAX || *one == first
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let Some((address, bytes)) = span(now) else { return Ok(()) };
            buffer.resize(usize::try_from(bytes).unwrap_or(usize::MAX), 0);
            let count = self.read_at(address, buffer)?;
            for one in now {
                let from = usize::try_from(one.address - address).unwrap_or(usize::MAX);
                let record =
                    buffer.get(..count).and_then(|there| there.get(from..from + one.length as usize));
                // What an index says is there and is not.
                let record = record.ok_or_else(|| self.damaged(one.address, super::Flaw::Beyond))?;
                show(record)?;
            }
            rest = later;
        }
        Ok(())
    }
}

/// The first byte and the length of what places cover.
fn span(places: &[Location]) -> Option<(u64, u64)> {
    let (first, last) = (places.first()?, places.last()?);
    Some((first.address, last.address + u64::from(last.length) - first.address))
}
