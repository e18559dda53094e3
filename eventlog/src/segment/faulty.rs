//! A record that fails, is written by half, or whose process dies when it is told to, for tests of what
//! happens then.

use std::sync::Arc;

use super::{Medium, SegmentError, Segments, io_error};

/// Where the record can fail.
pub(crate) enum Moment<'a> {
    /// Somebody is about to read.
    Read,
    /// This frame is about to be written at this address; when it fails, nothing of it is. It may be
    /// changed, and made shorter.
    Commit(u64, &'a mut Vec<u8>),
    /// It was written and synced, and the caller does not know yet.
    Written,
}

/// Says why the record fails at this moment, if it does.
pub(crate) type Faults = dyn Fn(Moment<'_>) -> Result<(), &'static str> + Send + Sync;

impl Segments {
    /// Asks this closure at each moment from now on.
    pub(crate) fn fail_by(&self, faults: Arc<Faults>) {
        let Medium::Files(files) = &*self.0 else { panic!("only files can fail") };
        *files.faults.write().unwrap() = Some(faults);
    }

    pub(crate) fn meet(&self, moment: Moment<'_>) -> Result<(), SegmentError> {
        let Medium::Files(files) = &*self.0 else { return Ok(()) };
        let faults = files.faults.read().unwrap().clone();
        let met = faults.map_or(Ok(()), |faults| faults(moment));
        met.map_err(|reason| io_error("use", files.folder())(std::io::Error::other(reason)))
    }
}
