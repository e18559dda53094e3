//! Arrays of records that are sent piece by piece.
//!
//! A page has as many records as were asked for, and a record may have megabytes. So no page is held: a
//! piece is read and sent, and the next one is read when the client has taken it. Damage in the middle
//! breaks the connection off, so that the client does not take a part for all of it.

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use eventlog::{PAGE_BYTES_MAX, RecordedEvent};

use crate::{convert, error::Answer, state::Server};

/// Gives the next records; none at the end.
pub(crate) type Pieces = Box<dyn FnMut() -> Answer<Vec<RecordedEvent>> + Send>;

/// Writes what follows the records; it is told the seq of the first one.
type Closing = Box<dyn FnOnce(Option<u64>) -> String + Send>;

/// Records, and what stands around them.
pub(crate) struct Records {
    /// What comes before them.
    opening: &'static str,
    pieces: Pieces,
    closing: Closing,
}

impl Records {
    /// A bare array.
    pub(crate) fn array(pieces: Pieces) -> Self {
        Self { opening: "[", pieces, closing: Box::new(|_| "]".to_owned()) }
    }

    /// A page: the array is its `data`. `closing` writes the other fields.
    pub(crate) fn page(pieces: Pieces, closing: Closing) -> Self {
        Self { opening: "{\"data\":[", pieces, closing }
    }
}

/// What is being sent.
struct Sending {
    pieces: Pieces,
    closing: Closing,
    first_seq: Option<u64>,
    text: String,
}

impl Sending {
    /// Adds pieces to the text until it is enough to be sent. Says whether there may be more.
    fn fill(&mut self) -> Answer<bool> {
        while self.text.len() < PAGE_BYTES_MAX {
            let piece = (self.pieces)()?;
            if piece.is_empty() {
                return Ok(false);
            }
            for record in &piece {
                if self.first_seq.is_some() {
                    self.text.push(',');
                }
                self.first_seq.get_or_insert(record.seq.get());
                self.text.push_str(&convert::event::to_text(record)?);
            }
        }
        Ok(true)
    }

    fn close(mut self) -> Bytes {
        self.text.push_str(&(self.closing)(self.first_seq));
        self.text.into()
    }
}

impl Server {
    /// Answers with the records. What goes wrong before anything is sent is a problem as ever.
    pub(crate) async fn send(
        &self,
        open: impl FnOnce(&Self) -> Answer<Records> + Send + 'static,
    ) -> Answer<Response> {
        let begin = move |server: &Self| {
            let Records { opening, pieces, closing } = open(server)?;
            let mut sending = Sending { pieces, closing, first_seq: None, text: opening.to_owned() };
            sending.fill().map(|is_more| (sending, is_more))
        };
        let (sending, is_more) = self.read(begin).await?;
        let body = if is_more { rest(self.clone(), sending) } else { Body::from(sending.close()) };
        let json = HeaderValue::from_static("application/json");
        Ok(([(header::CONTENT_TYPE, json)], body).into_response())
    }
}

/// Sends what there is, and reads on when it is taken.
fn rest(server: Server, mut sending: Sending) -> Body {
    Body::from_stream(async_stream::stream! {
        let mut is_more = true;
        while is_more {
            yield Ok(Bytes::from(std::mem::take(&mut sending.text)));
            let fill = server.read(move |_| sending.fill().map(|is_more| (sending, is_more)));
            match fill.await {
                Ok(filled) => (sending, is_more) = filled,
                Err(error) => {
                    yield Err(std::io::Error::other(error.detail().to_owned()));
                    return;
                }
            }
        }
        yield Ok(sending.close());
    })
}
