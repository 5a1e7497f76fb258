//! A terminal (script(1)) and its screen.

use eke_testkit::program::{end_of, kill};
use eke_testkit::wait::wait_for;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

const SIZE: (u16, u16) = (24, 80);

/// A command on a terminal of 80x24; what it writes goes to the screen.
pub struct Terminal {
    script: Child,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    /// Runs a shell command. `None` if this machine has no script(1).
    pub fn start(command: &str) -> Option<Self> {
        Self::of_kind("xterm", <[u8]>::to_vec, command)
    }

    /// A terminal like the Linux console, which has no alternate screen except in the newest kernels.
    pub fn console(command: &str) -> Option<Self> {
        Self::of_kind("linux", without_alternate_screen, command)
    }

    fn of_kind(term: &str, takes: fn(&[u8]) -> Vec<u8>, command: &str) -> Option<Self> {
        let command = format!("stty rows {} cols {}; {command}", SIZE.0, SIZE.1);
        let mut script = Command::new("script");
        script.args(["-qefc", &command, "/dev/null"]).env("TERM", term).env("LC_ALL", "C.UTF-8");
        script.env_remove("NO_COLOR").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().ok()?;
        let screen = Arc::new(Mutex::new(vt100::Parser::new(SIZE.0, SIZE.1, 0)));
        let (mut from, to) = (script.stdout.take().unwrap(), Arc::clone(&screen));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                to.lock().unwrap().process(&takes(&bytes[..n]));
            }
        });
        Some(Self { script, screen })
    }

    /// The text of the screen.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until `what` is on the screen; returns the whole text.
    pub fn shows(&self, what: &str) -> String {
        wait_for(&format!("{what:?} on the screen"), || {
            let text = self.text();
            if text.contains(what) { Ok(text) } else { Err(text) }
        })
    }

    /// Types text.
    pub fn press(&mut self, keys: &[u8]) {
        self.script.stdin.as_mut().unwrap().write_all(keys).unwrap();
    }

    /// Waits until the old screen is restored with its cursor; returns the exit status.
    pub fn ended(&mut self) -> Option<i32> {
        let status = end_of(&mut self.script).code();
        self.shows_nothing_of_it();
        status
    }

    fn shows_nothing_of_it(&self) {
        wait_for("the usual screen with its cursor", || {
            let parser = self.screen.lock().unwrap();
            match (parser.screen().alternate_screen(), parser.screen().hide_cursor()) {
                (false, false) => Ok(()),
                (alternate, hidden) => Err(format!("alternate screen {alternate}, cursor hidden {hidden}")),
            }
        });
    }
}

/// True if each of these sequences is written in one piece.
fn without_alternate_screen(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.to_vec();
    for sequence in [b"\x1b[?1049h", b"\x1b[?1049l"] {
        while let Some(at) = rest.windows(sequence.len()).position(|w| w == sequence) {
            rest.drain(at..at + sequence.len());
        }
    }
    rest
}

impl Drop for Terminal {
    fn drop(&mut self) {
        kill(&mut self.script);
    }
}
