//! A question to the supervisor of a mount.

use std::io;
use std::time::Duration;

use super::line::{ANSWER_MOST, LineError, receive, send};
use super::socket::connect;
use super::{Dirs, Mount};
use crate::status::{Request, Response};

/// Why there is no answer, though somebody is there.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be connected to.
    #[error("its supervisor cannot be connected to: {0}")]
    Connect(#[source] io::Error),
    /// It does not answer as it should.
    #[error("its supervisor does not answer: {0}")]
    Answer(#[source] LineError),
}

/// Asks, and waits at most `within` for each of the connection's two directions; `None`: nobody listens, the supervisor is dead.
///
/// # Errors
/// Somebody listens and does not answer, or is another user.
pub fn ask(
    dirs: &Dirs,
    mount: &Mount,
    request: Request,
    within: Duration,
) -> Result<Option<Response>, AskError> {
    let Some(stream) = connect(dirs, mount.device, mount.uid).map_err(AskError::Connect)? else {
        return Ok(None);
    };
    let answer =
        send(&stream, &request, within).and_then(|()| receive::<Response>(&stream, ANSWER_MOST, within));
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(e) if e.is_gone() => Ok(None),
        Err(e) => Err(AskError::Answer(e)),
    }
}
