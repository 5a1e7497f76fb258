//! The directory that every path is relative to, and the machine behind it.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use eke_model::units::PageSize;

use crate::error::{Error, Result};
use crate::sys::{FilesOnly, Host, Sys};

/// Where eke keeps the state that dies with the boot.
pub const RUN_DIR: &str = "run/eke";
/// Where eke keeps what outlives the boot.
pub const STATE_DIR: &str = "var/lib/eke";

/// A root directory. Cheap to clone.
#[derive(Clone)]
pub struct Root {
    dir: PathBuf,
    sys: Arc<dyn Sys>,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root({})", self.dir.display())
    }
}

impl Root {
    /// The running machine.
    pub fn host() -> Self {
        Self::with_sys("/", Arc::new(Host))
    }

    /// A directory that looks like a root (a chroot, an image, a test): files can be read and written, swap cannot be
    /// turned on or off. `/` is the running machine.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        if dir == Path::new("/") { Self::host() } else { Self::with_sys(dir, Arc::new(FilesOnly)) }
    }

    /// A directory with its own idea of a machine; for tests.
    pub fn with_sys(dir: impl Into<PathBuf>, sys: Arc<dyn Sys>) -> Self {
        Self { dir: dir.into(), sys }
    }

    /// Is it the running machine's `/`?
    pub fn is_host(&self) -> bool {
        self.dir == Path::new("/")
    }

    /// The calls that touch this machine.
    pub fn sys(&self) -> &dyn Sys {
        self.sys.as_ref()
    }

    /// The absolute path of `relative`. A leading slash is dropped: `Path::join` would throw the root away.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        let normal = relative
            .as_ref()
            .components()
            .filter(|c| !matches!(c, Component::RootDir | Component::Prefix(_)));
        self.dir.join(normal.collect::<PathBuf>())
    }

    /// A file's bytes.
    pub fn read_bytes(&self, relative: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = self.path(relative);
        self.sys.read(&path).map_err(|e| Error::io("read", &path, e))
    }

    /// A file's text; bytes that are not UTF-8 become U+FFFD.
    pub fn read(&self, relative: impl AsRef<Path>) -> Result<String> {
        self.read_bytes(relative).map(|b| {
            String::from_utf8(b).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
        })
    }

    /// A file's text, `None` where there is no such file.
    pub fn read_if_there(&self, relative: impl AsRef<Path>) -> Result<Option<String>> {
        match self.read(relative) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.is_absent() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The names in a directory, sorted; none where there is no such directory.
    pub fn list(&self, relative: impl AsRef<Path>) -> Result<Vec<String>> {
        let path = self.path(relative);
        match self.sys.list(&path) {
            Ok(names) => Ok(names),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(Error::io("list", &path, e)),
        }
    }

    /// Is there such a file or directory?
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.path(relative).exists()
    }

    /// The size of the machine's pages.
    pub fn page_size(&self) -> PageSize {
        self.sys.page_size()
    }

    /// Waits, by the machine's clock.
    pub fn sleep(&self, time: Duration) {
        self.sys.sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_path_stays_below_the_root() {
        let root = Root::at("/fake");
        assert_eq!(root.path("/sys/block"), Path::new("/fake/sys/block"));
        assert_eq!(root.path("sys/block"), Path::new("/fake/sys/block"));
    }
}
