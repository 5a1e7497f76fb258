//! Output of a process, collected up to a bound, so that the process never waits for a reader.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most text of a login shell's start, of an answer, or of standard error.
pub(super) const LONGEST_TEXT: usize = 4 << 20;
const PAUSE: Duration = Duration::from_millis(2);

/// See the module.
#[derive(Debug)]
pub(super) struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Ends with the output; `None`: there is none.
    listener: Option<JoinHandle<()>>,
}

impl Collected {
    /// Of a pipe, in a thread.
    pub fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let listener = pipe.map(|pipe| std::thread::spawn(move || listen(pipe, &shared)));
        Self { bytes, listener }
    }

    /// The text until now.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// The text until its end, or until a time has passed.
    pub fn rest(&self, within: Duration) -> String {
        let until = Instant::now() + within;
        let is_open = || self.listener.as_ref().is_some_and(|listener| !listener.is_finished());
        while is_open() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        self.text()
    }
}

fn listen(mut pipe: impl Read, collected: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(n) = pipe.read(&mut bytes) {
        if n == 0 {
            return;
        }
        let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
        if collected.len() < LONGEST_TEXT {
            collected.extend_from_slice(&bytes[..n]);
        }
    }
}
