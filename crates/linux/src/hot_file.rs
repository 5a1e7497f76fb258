//! A file that is read repeatedly: it stays open, and one buffer serves all reads.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const ROOM: usize = 16 << 10;
/// Far above the size of any kernel file that eke reads this way.
const MOST: usize = 1 << 20;

/// A file of `/proc` or `/sys`. The kernel generates its text anew for each read from offset 0.
#[derive(Debug)]
pub struct HotFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl HotFile {
    /// Opens the file.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: File::open(path)?, buffer: vec![0; ROOM] })
    }

    /// Opens a file of one short line.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn open_short(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: File::open(path)?, buffer: vec![0; 1024] })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn text(&mut self) -> io::Result<Cow<'_, str>> {
        let mut length = 0;
        loop {
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(n) => length += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            if length == self.buffer.len() && length < MOST {
                self.buffer.resize(length * 2, 0);
            }
        }
        Ok(String::from_utf8_lossy(&self.buffer[..length]))
    }

    /// Reads the start of the file with one call, which is enough for a file of one line.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn start(&mut self) -> io::Result<Cow<'_, str>> {
        let length = self.file.read_at(&mut self.buffer, 0)?;
        Ok(String::from_utf8_lossy(&self.buffer[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole_and_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        eke_testkit::tree::put(dir.path(), "long", &"line\n".repeat(9000));
        let mut hot = HotFile::open(&path).unwrap();
        assert_eq!(hot.text().unwrap().len(), 45_000);
        eke_testkit::tree::put(dir.path(), "long", "short");
        assert_eq!(hot.text().unwrap(), "short");
        assert_eq!(hot.start().unwrap(), "short");
    }
}
