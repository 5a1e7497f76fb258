//! Files with content that is different for each file and version, and what a mount shows of them.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use eke_cache_mounts::status::{Request, Response, WorkerStats};
use eke_cache_mounts::{SocketDirs, ask, mounts};

use super::LONG;
use super::mount::Mount;

/// Files of one size, whose names are numbers from 0.
pub struct Content {
    pub files: u64,
    pub size: usize,
}

impl Content {
    /// Text that a codec halves, different for each file and version.
    pub fn of(&self, file: u64, version: u64) -> Vec<u8> {
        let mut words = file * 1000 + version + 1;
        let mut text = Vec::with_capacity(self.size + 16);
        while text.len() < self.size {
            words = words.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            write!(text, "{:04x} and ", words >> 48).unwrap();
        }
        text.truncate(self.size);
        text
    }

    /// Reads past the kernel's pages, so that the worker is asked.
    pub fn read(&self, mount: &Mount, file: u64) -> Vec<u8> {
        let path = mount.place().join(file.to_string());
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
        let mut bytes = Vec::with_capacity(self.size + 1);
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Reads all files, of which those listed have another version.
    pub fn check(&self, mount: &Mount, versions: &[(u64, u64)]) {
        for file in 0..self.files {
            let version =
                versions.iter().find(|(changed, _)| *changed == file).map_or(0, |(_, version)| *version);
            assert!(self.read(mount, file) == self.of(file, version), "file {file}, version {version}");
        }
    }
}

pub fn stats(mount: &Mount) -> WorkerStats {
    let all = mounts::read().unwrap();
    let shown = mounts::at(&all, mount.place()).unwrap();
    let answer = ask(&SocketDirs::host(), shown, Request::Status, LONG).unwrap();
    let Some(Response::Status(status)) = answer else { panic!("{answer:?}") };
    status.worker.unwrap_or_default()
}
