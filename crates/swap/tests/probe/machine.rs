//! A machine for a test: a directory with its files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use eke_linux::Root;
use eke_swap::facts::Facts;
use eke_swap::probe::probe;

/// A directory that stands for a machine.
pub struct Fake(tempfile::TempDir);

impl Fake {
    /// A machine with 2 GiB and nothing else.
    pub fn new() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        fake.file("proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n");
        fake.file("proc/swaps", "Filename Type Size Used Priority\n");
        fake.file("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
        fake
    }

    pub fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(Path::new(target), path).unwrap();
        self
    }

    /// A whole disk with a partition of number 2.
    pub fn disk(&self, name: &str, partition: &str, rotational: &str, removable: &str) -> &Self {
        self.file(&format!("sys/block/{name}/queue/rotational"), rotational);
        self.file(&format!("sys/block/{name}/removable"), removable);
        self.file(&format!("sys/block/{name}/{partition}/partition"), "2\n");
        self.file(&format!("sys/class/block/{partition}/partition"), "2\n");
        self.file(&format!("sys/class/block/{name}/size"), "9\n");
        self.file(&format!("dev/{partition}"), "")
    }

    pub fn swaps(&self, lines: &str) -> &Self {
        self.file("proc/swaps", &format!("Filename Type Size Used Priority\n{lines}"))
    }

    pub fn facts(&self) -> Facts {
        probe(&self.root()).unwrap()
    }

    pub fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.0.path().join(path)).unwrap();
    }
}
