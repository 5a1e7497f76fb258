//! The log of a long-running process: lines on standard error with a limited rate, and a limited size if that is a file
//! of eke's.
//!
//! A service manager that runs eke takes its standard error and limits it. Otherwise it is a file in `/run`, which is
//! memory, and nothing else rotates it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

use eke_model::repeats::Repeats;
use eke_model::text::one_line;
use rustix::fs::{FileType, Mode, OFlags, fstat, ftruncate, open};

use eke_linux::read::monotonic_ms;

/// A longer file is emptied; the same amount of its end is kept in a second file with `.1` appended.
pub const MOST_BYTES: u64 = 1 << 20;

/// Writes lines. Threads may share it.
#[derive(Debug)]
pub struct Log {
    repeats: Mutex<Repeats>,
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

impl Log {
    /// An unused log.
    pub const fn new() -> Self {
        Self { repeats: Mutex::new(Repeats::new()) }
    }

    /// Writes one line, unless its kind was too frequent. A write error is ignored: a full disk must not end the
    /// process.
    pub fn write_line(&self, line: &str) {
        if let Some(line) = self.admit(line, monotonic_ms()) {
            let _ = shorten(io::stderr().as_fd());
            let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
        }
    }

    fn admit(&self, line: &str, now_ms: u64) -> Option<String> {
        let line = one_line(line.trim_end());
        match self.repeats.try_lock() {
            Ok(mut repeats) => repeats.admit(&line, now_ms),
            Err(TryLockError::Poisoned(locked)) => locked.into_inner().admit(&line, now_ms),
            // Another thread is writing, or was when this process was forked from it.
            Err(TryLockError::WouldBlock) => Some(line.into_owned()),
        }
    }
}

/// Makes it a stream in which each write is one line.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_line(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Empties the file if it is eke's own log and too long. All writers append, so they continue at its new start.
fn shorten(log: impl AsFd) -> io::Result<()> {
    let stat = fstat(&log)?;
    let length = u64::try_from(stat.st_size).unwrap_or(0);
    if length <= MOST_BYTES || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(());
    }
    let path = path_of(&log)?;
    if is_own(&path) {
        // Without room for the copy, the log is emptied all the same.
        let _ = keep_end(&path, length);
        ftruncate(&log, 0)?;
    }
    Ok(())
}

fn path_of(log: impl AsFd) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", log.as_fd().as_raw_fd()))
}

/// `/run/eke/agent.log`, or `caches/log` in a directory of eke's. A file that a user chose is that user's to limit.
fn is_own(path: &Path) -> bool {
    let of_eke = |dir: Option<&Path>| {
        dir.and_then(Path::file_name).and_then(|name| name.to_str()).is_some_and(|n| n.starts_with("eke"))
    };
    path.ends_with("run/eke/agent.log") || (path.ends_with("caches/log") && of_eke(path.ancestors().nth(2)))
}

fn keep_end(path: &Path, length: u64) -> io::Result<()> {
    let mut from = File::open(path)?;
    from.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES)))?;
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut to = File::from(open(Path::new(&name), flags, Mode::RUSR | Mode::WUSR)?);
    io::copy(&mut from.take(MOST_BYTES), &mut to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(path: &Path) -> File {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap()
    }

    #[test]
    fn repeated_events_do_not_fill_the_log_and_names_are_escaped() {
        let log = Log::new();
        let lost = |n: u64| log.admit(&format!("eke-prefetch: the tracer lost {n} events"), n);
        assert_eq!((0..10_000).filter_map(lost).count(), 6);
        let line = log.admit("cannot open /tmp/\u{1b}[2J\nINFO all is well\n", 0);
        assert_eq!(line.as_deref(), Some("cannot open /tmp/\\u001b[2J\\u000aINFO all is well"));
    }

    #[test]
    fn an_own_log_that_is_too_long_is_emptied_and_its_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["run/eke/agent.log", "run/user/7/eke/caches/log", "tmp/eke-7/caches/log"] {
            let path = dir.path().join(name);
            let (mut log, mut children) = (appended(&path), appended(&path));
            log.write_all(&vec![b'a'; 3 << 20]).unwrap();
            log.write_all(b"the last line\n").unwrap();
            shorten(&log).unwrap();
            children.write_all(b"the next line\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "the next line\n");
            let kept = std::fs::read_to_string(format!("{}.1", path.display())).unwrap();
            assert!(kept.len() == 1 << 20 && kept.ends_with("the last line\n"), "{}", kept.len());
            shorten(&log).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 14);
        }
    }

    #[test]
    fn a_users_own_log_file_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["my.log", "caches/log", "eke/agent.log"] {
            let mut log = appended(&dir.path().join(name));
            log.write_all(&vec![b'a'; 3 << 20]).unwrap();
            shorten(&log).unwrap();
            assert_eq!(log.metadata().unwrap().len(), 3 << 20, "{name}");
        }
    }
}
