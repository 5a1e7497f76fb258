//! Has a mount's worker read files into its store. One request, many answers: so long as the connection lasts, the worker reads.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ask::AskError;
use crate::connection::Connection;
use crate::line::{ANSWER_MOST, LineError, message, parse, send};
use crate::socket::connect;
use crate::status::{Refusal, Request, Response, WarmProgress};
use crate::{Mount, SocketDirs};

/// How long the supervisor may take to read the request.
const SENT_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks at whether to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// How a request to warm ended.
#[derive(Debug)]
pub enum WarmEnd {
    /// The worker has finished, or the store is full.
    Ended(WarmProgress),
    /// `stop` returned true: as far as it was known.
    Stopped(WarmProgress),
    /// The supervisor refused.
    Refused(Refusal),
    /// Nobody listens, so the supervisor is dead.
    Dead,
}

/// Has all files below `path`, which is relative to the mount point, read into the store. Calls `tell` several times a second, and
/// stops soon after it returns false.
///
/// # Errors
/// The supervisor listens and does not answer, or belongs to another user than the mount.
pub fn warm(
    dirs: &SocketDirs,
    mount: &Mount,
    path: &Path,
    mut tell: impl FnMut(&WarmProgress) -> bool,
) -> Result<WarmEnd, AskError> {
    let Some(stream) = connect(dirs, mount.device, mount.uid).map_err(AskError::Connect)? else {
        return Ok(WarmEnd::Dead);
    };
    send(&stream, &Request::Warm { path: path.to_owned() }, SENT_WITHIN).map_err(AskError::Answer)?;
    let (mut bytes, mut progress) = (Vec::new(), WarmProgress::default());
    loop {
        if !tell(&progress) {
            return Ok(WarmEnd::Stopped(progress));
        }
        if !more(&stream, &mut bytes).map_err(AskError::Answer)? {
            return Ok(WarmEnd::Dead);
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            match parse(&line).map_err(AskError::Answer)? {
                Response::Warming(now) => progress = now,
                Response::Warmed(now) => return Ok(WarmEnd::Ended(now)),
                Response::Refused(refusal) => return Ok(WarmEnd::Refused(refusal)),
                other => return Err(unexpected(&other)),
            }
        }
    }
}

/// Waits a moment for more bytes. False: the connection is closed.
fn more(mut stream: &Connection, bytes: &mut Vec<u8>) -> Result<bool, LineError> {
    let limit = Timespec::try_from(PAUSE).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    let _ = poll(&mut [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)], Some(&limit));
    let mut piece = [0; 4096];
    match stream.read(&mut piece) {
        Ok(0) => Ok(false),
        Ok(len) if bytes.len() + len > ANSWER_MOST => Err(LineError::TooLong(ANSWER_MOST)),
        Ok(len) => {
            bytes.extend_from_slice(&piece[..len]);
            Ok(true)
        }
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

fn unexpected(answer: &Response) -> AskError {
    let start = String::from_utf8_lossy(&message(answer)).chars().take(40).collect();
    AskError::Answer(LineError::Nonsense { why: "it is not about warming".into(), start })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::Device;
    use crate::status::RefusalKind;

    /// Has a supervisor answer `lines`, at once or not at all. Returns the end, and how often progress was told.
    fn answered(lines: &'static str, tell: impl FnMut(&WarmProgress) -> bool) -> Result<WarmEnd, AskError> {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("run")).unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let dirs = SocketDirs::new(root.path(), Some(root.path().join("run")), uid);
        drop(dirs.make().unwrap());
        let listener = UnixListener::bind(root.path().join("run/eke/caches/0-7")).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            assert_eq!(request, "{\"ask\":\"warm\",\"path\":\"a/b\"}\n");
            stream.write_all(lines.as_bytes()).unwrap();
        });
        let device = Device { major: 0, minor: 7 };
        let mount = Mount { id: 7, device, place: "/p".into(), dir: "/d".into(), uid };
        let end = warm(&dirs, &mount, Path::new("a/b"), tell);
        server.join().unwrap();
        end
    }

    #[test]
    fn reports_come_until_the_end() {
        let lines = "{\"answer\":\"warming\",\"files\":3}\n{\"answer\":\"warming\",\"files\":5}\n{\"answer\":\"warmed\",\"files\":7}\n";
        let end = answered(lines, |_| true).unwrap();
        assert!(matches!(end, WarmEnd::Ended(WarmProgress { files: 7, .. })), "{end:?}");
    }

    #[test]
    fn it_can_be_stopped_refused_or_cut() {
        let end = answered("", |_| false).unwrap();
        assert!(matches!(end, WarmEnd::Stopped(_)), "{end:?}");
        let refused = "{\"answer\":\"refused\",\"what\":\"no\",\"kind\":\"not_permitted\"}\n";
        let end = answered(refused, |_| true).unwrap();
        assert!(matches!(end, WarmEnd::Refused(Refusal { kind: RefusalKind::NotPermitted, .. })), "{end:?}");
        let end = answered("{\"answer\":\"warming\",\"files\":3}\n", |_| true).unwrap();
        assert!(matches!(end, WarmEnd::Dead), "{end:?}");
        for wrong in ["GET /\n", "{\"answer\":\"done\"}\n"] {
            assert!(matches!(answered(wrong, |_| true), Err(AskError::Answer(_))));
        }
    }
}
