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
use super::display::SERVER;
use super::{home, needs};

/// How long the server may take to tell its number.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Numbers of displays that nobody else has.
const FIRST_APART: u32 = 600;
const SIZE: &str = "1280x800x24";

/// A screen that ends when it is dropped.
#[derive(Debug)]
pub struct Screen {
    // In the order in which they must go.
    server: Children,
    host: &'static str,
    number: u32,
    home: TempDir,
}

impl Screen {
    /// Starts it.
    ///
    /// # Errors
    /// In words: there is no X server, or it does not start.
    pub fn start() -> Result<Self, String> {
        let mut screen = Self::start_below(&[], &["-nolisten", "tcp"])?;
        screen.server.listens(PathBuf::from(format!("/tmp/.X11-unix/X{}", screen.number)));
        Ok(screen)
    }

    /// The same in the network namespace that `before` enters (`ip netns exec NAME`), to be reached by TCP there. It has no socket below /tmp:
    /// servers see whose display a number is by who listens, which they do not see of another namespace, and take the place of its socket.
    ///
    /// # Errors
    /// As [`Screen::start`].
    pub fn start_apart(before: &[&str]) -> Result<Self, String> {
        let is_free = |n: &u32| !Path::new(&format!("/tmp/.X{n}-lock")).exists();
        let number = (FIRST_APART..FIRST_APART + 100).find(is_free).ok_or("no display number is free")?;
        let listen = ["-nolisten", "unix", "-nolisten", "local", "-listen", "tcp"];
        let screen = Self::start_below(before, &[&[format!(":{number}").as_str()], &listen[..]].concat())?;
        Ok(Self { host: "127.0.0.1", ..screen })
    }

    fn start_below(before: &[&str], listen: &[&str]) -> Result<Self, String> {
        let program =
            needs::find(&[SERVER]).ok_or("no X server here (Xvfb); Debian: apt-get install xvfb")?;
        let home = directory().map_err(|e| e.to_string())?;
        let key =
            Cookie::new().and_then(|c| c.write(home.path())).map_err(|e| format!("no key to it: {e}"))?;
        let mut command = match before {
            [] => command(program, home.path()),
            [first, rest @ ..] => {
                let wrapper = needs::find(&[first]).ok_or_else(|| format!("no {first} here"))?;
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
        let number = child
            .stdout
            .take()
            .and_then(number)
            .ok_or("the X server does not tell the number of its display")?;
        Ok(Self { server, host: "", number, home })
    }

    /// `:1`, for who is where it is.
    pub fn display(&self) -> String {
        format!("{}:{}", self.host, self.number)
    }

    /// The 1 of it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The file with the key, Xau(3).
    pub fn key(&self) -> PathBuf {
        self.home.path().join(".Xauthority")
    }
}

/// A home directory for programs of an experiment, empty, removed when dropped or by the next experiment.
///
/// # Errors
/// It cannot be made.
pub fn directory() -> std::io::Result<TempDir> {
    home::make(&std::env::temp_dir())
}

/// What it says by `-displayfd`.
fn number(mut told: impl Read + std::os::fd::AsFd) -> Option<u32> {
    let until = Instant::now() + STARTS_WITHIN;
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        let left = until.checked_duration_since(Instant::now())?;
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        poll(&mut [PollFd::new(&told, PollFlags::IN)], Some(&timeout)).ok()?;
        let mut bytes = [0; 16];
        match told.read(&mut bytes) {
            Ok(n) if n > 0 => text.extend_from_slice(&bytes[..n]),
            _ => return None,
        }
    }
    String::from_utf8_lossy(&text).trim().parse().ok()
}

/// Where X servers listen.
pub fn sockets() -> &'static Path {
    Path::new("/tmp/.X11-unix")
}
