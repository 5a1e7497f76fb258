//! Starts `eke-cache` and waits for its mount; on failure removes both.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_cache_mounts::line::{ANSWER_MOST, Line, LineError, parse};
use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::status::{Ready, Start};
use eke_cache_mounts::{SocketDirs, mounts, socket, unmount};
use eke_linux::inherited;
use eke_model::shell::word;
use eke_present::exit::{Failure, Outcome, Status};
use rustix::process::{Pid, Signal, kill_process};

use crate::args::CacheMount;
use crate::show::cache::shown;
use crate::verbs::program::CACHE;

const READY_WITHIN: Duration = Duration::from_secs(20);
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// The bytes of the log's end that are searched for the last message.
const LAST_WORDS: u64 = 4096;

/// A mount that was started.
pub struct Started {
    /// The supervisor.
    pub process: Child,
    /// Its answer.
    pub ready: Ready,
}

/// Where a supervisor's standard error goes.
struct Log {
    file: File,
    path: PathBuf,
    /// How long the file was before.
    from: u64,
}

/// Starts `eke-cache` and waits until it is mounted. If that fails, or `stop` is set meanwhile, nothing of it is left.
///
/// # Errors
/// The refusal of `eke-cache`, or how it ended.
pub fn start(settings: &Settings, options: &CacheMount, stop: &AtomicBool) -> Outcome<Started> {
    let log = if options.foreground { None } else { Some(log()?) };
    let mut process = spawn(log.as_ref(), options.served.force)?;
    let answer = send(&mut process, settings).and_then(|()| receive(&mut process, stop));
    match answer {
        Ok(Start::Ready(ready)) => Ok(Started { process, ready }),
        // It mounted nothing. What is at the place, if anything, is another's.
        Ok(Start::Error(refusal)) => {
            end(&mut process);
            Err(super::refused(&refusal))
        }
        Err(e) => {
            let ended = undo(&mut process, settings);
            Err(failure(&e, &ended, log, stop))
        }
    }
}

fn log() -> Outcome<Log> {
    let opened = SocketDirs::host().log().and_then(|(file, path)| {
        let from = file.metadata()?.len();
        Ok(Log { file, path, from })
    });
    opened.map_err(|e| {
        let own = "cannot make a private directory for the cache's socket";
        Failure::new(Status::Failed, format!("{own}: {e}"))
            .hint("it is /run/eke/caches for root, else eke/caches in XDG_RUNTIME_DIR or /tmp/eke-UID: remove what is in its place")
    })
}

fn spawn(log: Option<&Log>, force: bool) -> Outcome<Child> {
    let program = CACHE.find()?;
    let errors = match log {
        Some(log) => Stdio::from(log.file.try_clone()?),
        None => Stdio::inherit(),
    };
    let mut command = Command::new(&program);
    command
        .arg("serve")
        .args(force.then_some("--force"))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors);
    // It outlives the shell or script that mounts.
    inherited::keep_from_children();
    // A group of its own: Ctrl-C in this terminal must not reach it.
    let process = command.process_group(0).spawn();
    process.map_err(|e| Failure::new(Status::Failed, format!("cannot start {}: {e}", program.display())))
}

fn send(process: &mut Child, settings: &Settings) -> Result<(), LineError> {
    let mut line = serde_json::to_vec(settings).map_err(std::io::Error::from)?;
    line.push(b'\n');
    let Some(mut input) = process.stdin.take() else { return Err(LineError::Closed) };
    Ok(input.write_all(&line)?)
}

fn receive(process: &mut Child, stop: &AtomicBool) -> Result<Start, LineError> {
    let Some(mut output) = process.stdout.take() else { return Err(LineError::Closed) };
    let until = Instant::now() + READY_WITHIN;
    let mut line = Line::new(ANSWER_MOST);
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        if let Some(bytes) = line.advance(&mut output, PAUSE)? {
            return parse(&bytes);
        }
    }
    Err(LineError::Late(READY_WITHIN.as_secs_f64()))
}

/// Ends the process and its mount, if there is one. Returns how the process ended.
fn undo(process: &mut Child, settings: &Settings) -> String {
    let ended = end(process);
    let dirs = SocketDirs::host();
    // Others that mount now are not in between mount and socket meanwhile.
    let _turn = dirs.turn(ENDS_WITHIN);
    let all = mounts::read().unwrap_or_default();
    if let Some(mount) = mounts::at(&all, &settings.place) {
        let is_anothers = matches!(socket::connect(&dirs, mount.device, mount.uid), Ok(Some(_)));
        let _ = (!is_anothers).then(|| unmount(mount, true));
    }
    ended
}

/// Ends the process. Returns how it ended.
fn end(process: &mut Child) -> String {
    let _ = kill_process(Pid::from_child(process), Signal::TERM);
    let until = Instant::now() + ENDS_WITHIN;
    let status = loop {
        match process.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(PAUSE),
            _ => {
                let _ = process.kill();
                break process.wait().ok();
            }
        }
    };
    status.map_or_else(|| "its exit status is unknown".to_owned(), |s| s.to_string())
}

fn failure(error: &LineError, ended: &str, log: Option<Log>, stop: &AtomicBool) -> Failure {
    if stop.load(Ordering::Relaxed) {
        return Failure::new(Status::Failed, "interrupted; nothing is mounted");
    }
    let what = if error.is_gone() {
        format!("eke-cache ended before it mounted anything ({ended})")
    } else {
        format!("eke-cache sent an unexpected answer: {error}; eke ended it")
    };
    let Some(log) = log else { return Failure::new(Status::Failed, what) };
    let path = log.path.clone();
    match last_words(log) {
        Some(words) => Failure::new(Status::Failed, format!("{what}; its last message: {words}"))
            .hint(format!("more may be in {}", path.display())),
        None => Failure::new(Status::Failed, what),
    }
}

/// The last line in the log since the start.
fn last_words(log: Log) -> Option<String> {
    let mut file = File::open(&log.path).ok()?;
    let end = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(log.from.max(end.saturating_sub(LAST_WORDS)))).ok()?;
    let mut bytes = Vec::new();
    file.take(LAST_WORDS).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().map(str::trim).find(|l| !l.is_empty()).map(str::to_owned)
}

/// Waits for the supervisor to end. Calls `interrupted` at each Ctrl-C; if that returns true, it stops waiting and returns no status.
///
/// # Errors
/// It cannot be waited for, or `interrupted` fails.
pub fn wait(
    process: &mut Child,
    stop: &AtomicBool,
    mut interrupted: impl FnMut() -> Outcome<bool>,
) -> Outcome<Option<std::process::ExitStatus>> {
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status));
        }
        if stop.swap(false, Ordering::Relaxed) && interrupted()? {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

/// For the text of a hint.
pub fn umount_command(place: &Path) -> String {
    format!("eke cache umount {}", word(&shown(place)))
}
