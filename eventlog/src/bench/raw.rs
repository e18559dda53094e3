//! What the disk can do: a file to which groups of bytes are appended, each synced once.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    time::Instant,
};

use tokio::sync::{mpsc, oneshot};

use super::append::Slice;

/// Appends that wait, as for the log.
const QUEUE: usize = 1_024;

/// The file, and how often it was synced.
pub(super) struct RawFile {
    file: File,
    syncs: u64,
}

/// Bytes, and where the answer goes.
type Request = (Vec<u8>, oneshot::Sender<()>);

impl RawFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, syncs: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_data()?;
        self.syncs += 1;
        Ok(())
    }

    /// One writer, with nobody to wait for.
    pub(super) fn write_alone(&mut self, bytes: usize, slice: &mut Slice, until: Instant) -> io::Result<()> {
        let block = vec![b'x'; bytes];
        let syncs = self.syncs;
        while Instant::now() < until {
            let started = Instant::now();
            self.write(&block)?;
            slice.times.push(started.elapsed());
        }
        slice.syncs += self.syncs - syncs;
        Ok(())
    }

    /// Many writers, whose bytes are gathered while a sync is under way, as the log does it.
    pub(super) async fn write_together(
        self,
        writers: usize,
        bytes: usize,
        slice: &mut Slice,
        until: Instant,
    ) -> io::Result<Self> {
        let (queue, requests) = mpsc::channel::<Request>(QUEUE);
        let syncs = self.syncs;
        let thread = std::thread::spawn(move || self.serve(requests));
        let tasks: Vec<_> = (0..writers)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    while Instant::now() < until {
                        let started = Instant::now();
                        let (reply, answer) = oneshot::channel();
                        if queue.send((vec![b'x'; bytes], reply)).await.is_err() || answer.await.is_err() {
                            break;
                        }
                        times.push(started.elapsed());
                    }
                    times
                })
            })
            .collect();
        drop(queue);
        for task in tasks {
            slice.times.extend(task.await.map_err(io::Error::other)?);
        }
        let file = thread.join().map_err(|_| io::Error::other("the raw writer stopped by a defect"))??;
        slice.syncs += file.syncs - syncs;
        Ok(file)
    }

    fn serve(mut self, mut requests: mpsc::Receiver<Request>) -> io::Result<Self> {
        let mut group = Vec::new();
        while let Some((bytes, reply)) = requests.blocking_recv() {
            group.clear();
            group.extend_from_slice(&bytes);
            let mut replies = vec![reply];
            while let Ok((bytes, reply)) = requests.try_recv() {
                group.extend_from_slice(&bytes);
                replies.push(reply);
            }
            self.write(&group)?;
            for reply in replies {
                // A writer that went away needs no answer.
                let _ = reply.send(());
            }
        }
        Ok(self)
    }
}
