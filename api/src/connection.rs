//! A connection that is dropped when its client stops reading.
//!
//! A response body is asked for more only while the client reads, so no deadline inside a body can
//! notice that it has stopped. Here, below the HTTP library, a write that does not progress keeps a
//! clock running, and when that runs out the connection fails.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::OwnedSemaphorePermit,
    time::Sleep,
};

/// A client's connection.
pub(crate) struct Connection<Io> {
    io: Io,
    write_stall: Duration,
    /// Runs while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Its place among the connections of the server.
    _place: OwnedSemaphorePermit,
}

impl<Io> Connection<Io> {
    /// Watches over a connection, and keeps its place until it is closed.
    pub(crate) fn new(io: Io, write_stall: Duration, place: OwnedSemaphorePermit) -> Self {
        Self { io, write_stall, deadline: None, _place: place }
    }

    /// Gives a write its answer, or a timeout when it has waited for too long.
    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let write_stall = self.write_stall;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(write_stall)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Connection<Io> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buffer)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Connection<Io> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.watch(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, parts);
        this.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        sync::Semaphore,
    };

    use super::*;

    fn place() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
    }

    const STALL: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_client_that_does_not_read_is_dropped() {
        let (near, _far) = tokio::io::duplex(16);
        let mut connection = Connection::new(near, STALL, place());
        let error =
            tokio::time::timeout(STALL * 50, connection.write_all(&[0; 64])).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn progress_stops_the_clock() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut connection = Connection::new(near, STALL, place());
        connection.write_all(&[0; 16]).await.unwrap();
        assert!(futures::poll!(std::pin::pin!(connection.write(&[0; 16]))).is_pending());
        assert!(connection.deadline.is_some());
        far.read_exact(&mut [0; 16]).await.unwrap();
        connection.write_all(&[0; 16]).await.unwrap();
        assert!(connection.deadline.is_none());
    }
}
