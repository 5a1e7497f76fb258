//! The directory that all paths are relative to, and the machine behind it.

use std::any::Any;
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use eke_model::units::PageSize;

use crate::error::{Error, Result};
use crate::inside::Inside;
use crate::source::{Files, Host, Source};

/// Directory of state that ends with the boot.
pub const RUN_DIR: &str = "run/eke";
/// Directory of state that outlives the boot.
pub const STATE_DIR: &str = "var/lib/eke";

/// A root directory. Cheap to clone.
#[derive(Clone)]
pub struct Root {
    dir: PathBuf,
    source: Arc<dyn Source>,
    writer: Option<Arc<dyn Any + Send + Sync>>,
    inside: Option<Arc<Inside>>,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root({})", self.dir.display())
    }
}

impl Root {
    /// The running machine.
    pub fn host() -> Self {
        Self { dir: "/".into(), source: Arc::new(Host), writer: None, inside: None }
    }

    /// A directory that looks like a root (a chroot, an image, a test). Its files can be read and written; swap cannot
    /// be turned on or off. `/` is the running machine.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        if dir == Path::new("/") {
            return Self::host();
        }
        Self { dir, source: Arc::new(Files), writer: None, inside: None }
    }

    /// As [`Root::at`], and symbolic links never lead out of the directory. Only for calls that go through this root and its writer: [`Root::path`] alone
    /// holds nobody inside.
    ///
    /// # Errors
    /// The kernel's answer, or that it lacks openat2(2).
    pub fn confined(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        if dir == Path::new("/") {
            return Ok(Self::host());
        }
        let inside = Inside::new(&dir).map_err(|e| Error::io("use as root", &dir, e))?;
        let inside = Arc::new(inside);
        Ok(Self { source: Arc::clone(&inside) as Arc<dyn Source>, inside: Some(inside), ..Self::at(dir) })
    }

    /// The directory that nothing may leave, if this is [`Root::confined`].
    pub fn inside(&self) -> Option<&Inside> {
        self.inside.as_deref()
    }

    /// A directory with a simulated machine, for tests. `source` answers reads. `writer` is any value that the writing
    /// crate gets back from [`Root::writer`].
    pub fn simulated(
        dir: impl Into<PathBuf>,
        source: Arc<dyn Source>,
        writer: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self { dir: dir.into(), source, writer: Some(writer), inside: None }
    }

    /// Whether it is the running machine's `/`.
    pub fn is_host(&self) -> bool {
        self.dir == Path::new("/")
    }

    /// The writer given to [`Root::simulated`], if it is a `T`.
    pub fn writer<T: Any>(&self) -> Option<&T> {
        self.writer.as_ref()?.downcast_ref()
    }

    /// The kernel's name of the block device at a path below this root.
    pub fn block_device(&self, relative: impl AsRef<Path>) -> Option<String> {
        self.source.block_device(&self.path(relative))
    }

    /// The absolute path of `relative`. Drops a leading slash, because `Path::join` would then replace the root.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        let normal = relative
            .as_ref()
            .components()
            .filter(|c| !matches!(c, Component::RootDir | Component::Prefix(_)));
        self.dir.join(normal.collect::<PathBuf>())
    }

    /// Reads a file's bytes.
    pub fn read_bytes(&self, relative: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = self.path(relative);
        self.source.read(&path).map_err(|e| Error::io("read", &path, e))
    }

    /// Reads the file at an absolute path below this root ([`Root::path`]).
    ///
    /// # Errors
    /// The kernel's answer, unchanged.
    pub fn read_at(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.source.read(path)
    }

    /// Reads a file's text; bytes that are not UTF-8 become U+FFFD.
    pub fn read(&self, relative: impl AsRef<Path>) -> Result<String> {
        self.read_bytes(relative).map(|b| {
            String::from_utf8(b).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
        })
    }

    /// Reads a file's text; `None` if there is no such file.
    pub fn read_if_exists(&self, relative: impl AsRef<Path>) -> Result<Option<String>> {
        match self.read(relative) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.is_absent() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The sorted names in a directory; empty if there is no such directory.
    pub fn list(&self, relative: impl AsRef<Path>) -> Result<Vec<String>> {
        let path = self.path(relative);
        match self.source.list(&path) {
            Ok(names) => Ok(names),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(Error::io("list", &path, e)),
        }
    }

    /// Whether the file or directory exists.
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.source.metadata(&self.path(relative)).is_ok()
    }

    /// Attributes of the file or directory at an absolute path below this root ([`Root::path`]).
    ///
    /// # Errors
    /// The kernel's answer, unchanged.
    pub fn metadata_at(&self, path: &Path) -> io::Result<Metadata> {
        self.source.metadata(path)
    }

    /// The same, of a symbolic link itself.
    ///
    /// # Errors
    /// The kernel's answer, unchanged.
    pub fn link_metadata_at(&self, path: &Path) -> io::Result<Metadata> {
        self.source.link_metadata(path)
    }

    /// The target of the symbolic link at an absolute path below this root.
    ///
    /// # Errors
    /// The kernel's answer, unchanged.
    pub fn read_link_at(&self, path: &Path) -> io::Result<PathBuf> {
        self.source.read_link(path)
    }

    /// The machine's page size.
    pub fn page_size(&self) -> PageSize {
        self.source.page_size()
    }

    /// Sleeps, on the machine's clock.
    pub fn sleep(&self, time: Duration) {
        self.source.sleep(time);
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
