//! A blob that is being read, from a data folder or from a server.

use anyhow::Context as _;
use eventlog::BlobReader;
use reqwest::Response;

/// The bytes of a blob, in pieces.
pub(crate) enum Blob {
    /// Read and proven here.
    Folder(Box<BlobReader>),
    /// Proven by the server, which breaks off when it cannot.
    Server(Response),
}

impl Blob {
    /// The next piece; none at the end.
    pub(crate) async fn next_piece(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        match self {
            Self::Folder(reader) => Ok(reader.next_piece()?),
            Self::Server(response) => {
                let piece =
                    response.chunk().await.context("the server broke off before the end of the blob")?;
                Ok(piece.map(|piece| piece.to_vec()))
            }
        }
    }
}
