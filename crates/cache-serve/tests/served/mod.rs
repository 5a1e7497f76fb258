//! A directory that the real program serves, for tests that look at where and what it mounts.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use eke_cache_mounts::settings::{Compress, Memory, PassthroughMode, Settings};
use eke_cache_mounts::status::{Ready, Refusal, Request, Response, Start, WorkerStats};
use eke_cache_mounts::{Dirs, Mount, ask, mounts, unmount};
use eke_model::units::Bytes;

/// A hung test fails after this long; nothing is measured by it.
const LONG: Duration = Duration::from_secs(60);

/// A mount that goes when it is dropped.
pub struct Served {
    pub ready: Ready,
    pub shown: Mount,
    server: Child,
}

impl Served {
    /// Serves `dir` at `place` to all users; `words` are the program's.
    pub fn start(dir: &Path, place: &Path, words: &[&str]) -> Result<Self, Refusal> {
        let mut server = Command::new(env!("CARGO_BIN_EXE_eke-cache"))
            .arg("serve")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        serde_json::to_writer(server.stdin.take().unwrap(), &settings(dir, place)).unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match serde_json::from_str(&line) {
            Ok(Start::Ready(ready)) => {
                let all = mounts::read().unwrap();
                let shown = all.into_iter().rfind(|mount| mount.dir == dir).expect("a mount");
                Ok(Self { ready, shown, server })
            }
            Ok(Start::Error(refusal)) => {
                server.wait().unwrap();
                Err(refusal)
            }
            Err(e) => {
                let mut said = String::new();
                server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("eke-cache did not start: {e}, {line:?}, {said}")
            }
        }
    }

    pub fn place(&self) -> PathBuf {
        self.shown.place.clone()
    }

    fn ask(&self, request: Request) -> Option<Response> {
        ask(&Dirs::host(), &self.shown, request, LONG).unwrap()
    }

    /// As `eke cache umount` asks for it.
    pub fn umount(&self) -> Response {
        self.ask(Request::Umount { lazy: false }).expect("an answer")
    }

    pub fn stats(&self) -> WorkerStats {
        match self.ask(Request::Status) {
            Some(Response::Status(status)) => status.worker.expect("the worker's stats"),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = unmount(&self.shown, true);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn settings(dir: &Path, place: &Path) -> Settings {
    Settings {
        dir: dir.to_owned(),
        place: place.to_owned(),
        memory: Memory::Bytes(Bytes::mib(32)),
        compress: Compress::Async,
        others: true,
        passthrough: PassthroughMode::Never,
        watch: true,
    }
}
