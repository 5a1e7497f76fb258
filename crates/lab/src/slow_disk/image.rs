//! Opens or makes the image.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eke_core::units::Bytes;
use rustix::fs::MemfdFlags;

use super::error::{Error, Result, on};
use super::{Image, SlowDiskSpec};

/// An image that was made for this disk: removed when dropped, unless kept.
#[derive(Debug)]
pub(super) struct Made(Option<PathBuf>);

impl Made {
    /// The disk is there.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The image, with the specified size.
pub(super) fn open(spec: &SlowDiskSpec) -> Result<(File, Made)> {
    match &spec.image {
        Image::Memory => memory(spec.size),
        Image::File(path) => file(path, spec.size),
    }
}

fn memory(size: Bytes) -> Result<(File, Made)> {
    let path = Path::new("memory for an image");
    let fd = rustix::fs::memfd_create("eke-slow-disk", MemfdFlags::CLOEXEC).map_err(on("get", path))?;
    let file = File::from(fd);
    file.set_len(size.0).map_err(on("size", path))?;
    Ok((file, Made(None)))
}

fn file(path: &Path, size: Bytes) -> Result<(File, Made)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.open(path) {
        Ok(file) => {
            let found = file.metadata().map_err(on("look at", path))?.len();
            same_size(path, size, found)?;
            Ok((file, Made(None)))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let file = options.create_new(true).mode(0o600).open(path).map_err(on("make", path))?;
            let made = Made(Some(path.to_owned()));
            file.set_len(size.0).map_err(on("size", path))?;
            Ok((file, made))
        }
        Err(e) => Err(on("open", path)(e)),
    }
}

fn same_size(path: &Path, wanted: Bytes, found: u64) -> Result<()> {
    if found == wanted.0 {
        return Ok(());
    }
    let path = path.display();
    Err(Error::Spec(format!(
        "{path} has {found} bytes, the disk is to have {}; give its size or another image",
        wanted.0
    )))
}

#[cfg(test)]
mod tests {
    use super::super::Profile;
    use super::*;

    fn spec(path: &Path, size: Bytes) -> SlowDiskSpec {
        SlowDiskSpec::new(Image::File(path.to_owned()), size, Profile::sd())
    }

    #[test]
    fn a_new_image_goes_with_an_error_and_stays_with_a_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        drop(open(&spec(&path, Bytes::mib(1))).unwrap());
        assert!(!path.exists());
        open(&spec(&path, Bytes::mib(1))).unwrap().1.keep();
        drop(open(&spec(&path, Bytes::mib(1))).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 1 << 20, "somebody's image is never removed");
    }

    #[test]
    fn an_image_of_another_size_is_refused_and_left_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = open(&spec(file.path(), Bytes::mib(1)));
        assert!(matches!(refused, Err(Error::Spec(_))), "{refused:?}");
        assert_eq!(file.path().metadata().unwrap().len(), 0);
    }
}
