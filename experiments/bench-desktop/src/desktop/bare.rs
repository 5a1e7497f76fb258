//! An X server alone, without a window manager: for experiments that start programs themselves and time their windows.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tempfile::TempDir;

pub use super::children::{Children, command, die_with_parent};
use super::cookie::Cookie;
use super::home;
use super::programs::{SERVER, find};

/// How long the server may take to print its display number.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// The first display number in a network namespace; other servers do not use numbers so high.
const FIRST_IN_NAMESPACE: u32 = 600;
const SIZE: &str = "1280x800x24";

/// An X server that ends when it is dropped.
#[derive(Debug)]
pub struct Screen {
    // Dropped in this order: the server ends before its home directory is removed.
    server: Children,
    host: &'static str,
    number: u32,
    home: TempDir,
}

impl Screen {
    /// Starts a server that listens on a Unix socket.
    ///
    /// # Errors
    /// A sentence: no X server is installed, or it does not start.
    pub fn start() -> Result<Self, String> {
        let mut screen = Self::start_with(&[], &["-nolisten", "tcp"])?;
        screen.server.listens(PathBuf::from(format!("/tmp/.X11-unix/X{}", screen.number)));
        Ok(screen)
    }

    /// Starts a server in the network namespace that `enter` enters (`ip netns exec NAME`). Programs reach it there by TCP. It
    /// has no socket below /tmp: a server decides by its listener whether a display number is taken, does not see the
    /// listener of another namespace, and would replace its socket.
    ///
    /// # Errors
    /// As [`Screen::start`].
    pub fn start_in_namespace(enter: &[&str]) -> Result<Self, String> {
        let is_free = |n: &u32| !Path::new(&format!("/tmp/.X{n}-lock")).exists();
        let mut numbers = FIRST_IN_NAMESPACE..FIRST_IN_NAMESPACE + 100;
        let number = numbers.find(is_free).ok_or("no display number is free")?;
        let listen = ["-nolisten", "unix", "-nolisten", "local", "-listen", "tcp"];
        let screen = Self::start_with(enter, &[&[format!(":{number}").as_str()], &listen[..]].concat())?;
        Ok(Self { host: "127.0.0.1", ..screen })
    }

    fn start_with(enter: &[&str], listen: &[&str]) -> Result<Self, String> {
        let program =
            find(&[SERVER]).ok_or("no X server is installed (Xvfb); Debian: apt-get install xvfb")?;
        let home = directory().map_err(|e| e.to_string())?;
        let key = Cookie::new()
            .and_then(|c| c.write(home.path()))
            .map_err(|e| format!("cannot make a key to the X server: {e}"))?;
        let mut command = match enter {
            [] => command(program, home.path()),
            [first, rest @ ..] => {
                let wrapper = find(&[first]).ok_or_else(|| format!("{first} is not installed"))?;
                let mut wrapped = command(wrapper, home.path());
                wrapped.args(rest).arg(program);
                wrapped
            }
        };
        command
            .arg("-auth")
            .arg(key)
            .args(["-displayfd", "1", "-noreset", "-screen", "0", SIZE])
            .args(listen);
        command.stdout(Stdio::piped());
        let mut server = Children::default();
        let child = server.start("X server", &mut command, Signal::TERM).map_err(|e| format!("{e:?}"))?;
        let number =
            child.stdout.take().and_then(number).ok_or("the X server did not print its display number")?;
        Ok(Self { server, host: "", number, home })
    }

    /// `:1`, for programs in the same network namespace.
    pub fn display(&self) -> String {
        format!("{}:{}", self.host, self.number)
    }

    /// The display number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The file with the key, Xau(3).
    pub fn key(&self) -> PathBuf {
        self.home.path().join(".Xauthority")
    }
}

/// An empty home directory for an experiment's programs, removed when dropped, or by the next experiment.
///
/// # Errors
/// The directory cannot be made.
pub fn directory() -> std::io::Result<TempDir> {
    home::make(&std::env::temp_dir())
}

/// The display number that the server prints (`-displayfd`).
fn number(mut output: impl Read + std::os::fd::AsFd) -> Option<u32> {
    let until = Instant::now() + STARTS_WITHIN;
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        let left = until.checked_duration_since(Instant::now())?;
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&timeout)).ok()?;
        let mut bytes = [0; 16];
        match output.read(&mut bytes) {
            Ok(n) if n > 0 => text.extend_from_slice(&bytes[..n]),
            _ => return None,
        }
    }
    String::from_utf8_lossy(&text).trim().parse().ok()
}

/// The directory of X servers' sockets.
pub fn sockets() -> &'static Path {
    Path::new("/tmp/.X11-unix")
}
