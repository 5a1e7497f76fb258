//! Has a mount's worker read files into its store. One request, many answers: so long as the connection lasts, the worker reads.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ask::{AskError, ask};
use crate::connection::Connection;
use crate::line::{ANSWER_MOST, LineError, message, parse, send};
use crate::socket::connect;
use crate::status::{Refusal, RefusalKind, Request, Response, Status, WarmProgress};
use crate::{Mount, SocketDirs};

/// How long the supervisor may take to read the request.
const SENT_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks at whether to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// How long reports may fail to come. A worker that waits for a slow disk reports nothing, and its supervisor still has its stats.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// After this time without a report the supervisor is asked.
    silence: Duration,
    /// How long it may take to answer.
    answer: Duration,
    /// After so many questions in a row without the worker's stats it is given up.
    questions: u32,
}

const PATIENCE: Patience =
    Patience { silence: Duration::from_secs(5), answer: Duration::from_secs(5), questions: 3 };

/// How a request to warm ended.
#[derive(Debug)]
pub enum WarmEnd {
    /// The worker has finished, or the store is full.
    Ended(WarmProgress),
    /// `stop` returned true: as far as it was known.
    Stopped(WarmProgress),
    /// The supervisor refused, or the worker does not answer it.
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
    tell: impl FnMut(&WarmProgress) -> bool,
) -> Result<WarmEnd, AskError> {
    warm_with(Silence::new(dirs, mount, PATIENCE), path, tell)
}

fn warm_with(
    mut silence: Silence<'_>,
    path: &Path,
    mut tell: impl FnMut(&WarmProgress) -> bool,
) -> Result<WarmEnd, AskError> {
    let mount = silence.mount;
    let Some(stream) = connect(silence.dirs, mount.device, mount.uid).map_err(AskError::Connect)? else {
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
            silence.ends();
        }
        if let Some(end) = silence.goes_on()? {
            return Ok(end);
        }
    }
}

/// The time without a report.
struct Silence<'a> {
    dirs: &'a SocketDirs,
    mount: &'a Mount,
    patience: Patience,
    since: Instant,
    unanswered: u32,
}

impl<'a> Silence<'a> {
    fn new(dirs: &'a SocketDirs, mount: &'a Mount, patience: Patience) -> Self {
        Self { dirs, mount, patience, since: Instant::now(), unanswered: 0 }
    }

    fn ends(&mut self) {
        (self.since, self.unanswered) = (Instant::now(), 0);
    }

    /// Asks the supervisor after a long one. Returns an end if there will be no report.
    ///
    /// # Errors
    /// The supervisor does not answer.
    fn goes_on(&mut self) -> Result<Option<WarmEnd>, AskError> {
        if self.since.elapsed() < self.patience.silence {
            return Ok(None);
        }
        let answer = ask(self.dirs, self.mount, Request::Status, self.patience.answer)?;
        self.since = Instant::now();
        let pid = match answer {
            None => return Ok(Some(WarmEnd::Dead)),
            Some(Response::Status(status)) => silent_worker(&status),
            Some(_) => None,
        };
        self.unanswered = if pid.is_some() { self.unanswered + 1 } else { 0 };
        let given_up = pid.filter(|_| self.unanswered >= self.patience.questions);
        Ok(given_up.map(|pid| WarmEnd::Refused(not_answering(self.mount, pid))))
    }
}

/// A worker without stats. If it dies, the supervisor ends the request.
fn silent_worker(status: &Status) -> Option<u32> {
    status.worker_pid.filter(|_| status.worker.is_none())
}

fn not_answering(mount: &Mount, worker: u32) -> Refusal {
    let place = mount.place.display();
    let what = format!(
        "cannot warm {place}: the worker {worker} does not answer. If it is stopped, `kill -CONT {worker}` lets it go on; `kill -9 {worker}` has it replaced"
    );
    Refusal { what, kind: RefusalKind::Failed }
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
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;
    use crate::Device;
    use crate::status::RefusalKind;

    /// It asks soon, and waits for the answers.
    const CURIOUS: Patience =
        Patience { silence: Duration::from_millis(1), answer: Duration::from_secs(30), questions: 3 };

    /// A status of a worker with or without stats.
    fn status(has_stats: bool) -> String {
        let settings = r#"{"dir":"/d","place":"/p","memory":{"percent":85},"compress":"async","others":true,"passthrough":"auto","watch":true}"#;
        let stats = if has_stats { "{}" } else { "null" };
        format!(
            "{{\"answer\":\"status\",\"place\":\"/p\",\"dir\":\"/d\",\"uid\":0,\"pid\":6,\"worker_pid\":7,\"restarts\":0,\
             \"last_death\":null,\"up_s\":1,\"settings\":{settings},\"worker\":{stats}}}\n"
        )
    }

    fn request(stream: &UnixStream) -> String {
        let mut request = String::new();
        BufReader::new(stream).read_line(&mut request).unwrap();
        request
    }

    /// Has a supervisor report nothing, answer each question for the status with one of these, and end with the last.
    fn silent(answers: &[Option<String>], patience: Patience) -> Result<WarmEnd, AskError> {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("run")).unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let dirs = SocketDirs::new(root.path(), Some(root.path().join("run")), uid);
        drop(dirs.make().unwrap());
        let listener = UnixListener::bind(root.path().join("run/eke/caches/0-7")).unwrap();
        let mount = Mount {
            id: 7,
            device: Device { major: 0, minor: 7 },
            place: "/p".into(),
            aside: None,
            dir: "/d".into(),
            uid,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut warming, _) = listener.accept().unwrap();
                assert!(request(&warming).contains("warm"));
                let mut open = Vec::new();
                for (nth, answer) in answers.iter().enumerate() {
                    let (mut asking, _) = listener.accept().unwrap();
                    assert!(request(&asking).contains("status"));
                    if nth + 1 == answers.len() {
                        warming.write_all(b"{\"answer\":\"warmed\",\"files\":7}\n").unwrap();
                    }
                    asking.write_all(answer.as_deref().unwrap_or_default().as_bytes()).unwrap();
                    open.push(asking);
                }
                // Whoever waits for an answer closes first.
                open.iter().for_each(|asking| drop(request(asking)));
            });
            warm_with(Silence::new(&dirs, &mount, patience), Path::new(""), |_| true)
        })
    }

    #[test]
    fn a_worker_that_answers_may_report_nothing_for_long() {
        let [busy, hangs] = [true, false].map(|has_stats| Some(status(has_stats)));
        let end = silent(&[busy.clone(), hangs.clone(), hangs, busy.clone(), busy], CURIOUS).unwrap();
        assert!(matches!(end, WarmEnd::Ended(WarmProgress { files: 7, .. })), "{end:?}");
    }

    #[test]
    fn a_worker_or_supervisor_that_is_stopped_is_named() {
        let hangs = || Some(status(false));
        let end = silent(&[hangs(), hangs(), hangs()], CURIOUS).unwrap();
        let WarmEnd::Refused(Refusal { what, .. }) = end else { panic!("{end:?}") };
        assert!(what.contains("the worker 7 does not answer"), "{what}");
        let error = silent(&[None], Patience { answer: Duration::from_millis(50), ..CURIOUS }).unwrap_err();
        assert!(error.to_string().starts_with("its supervisor does not answer"), "{error}");
    }

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
        let mount = Mount { id: 7, device, place: "/p".into(), aside: None, dir: "/d".into(), uid };
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
