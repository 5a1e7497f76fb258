//! Opens or makes the image.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_model::units::Bytes;
use rustix::mount::{MountFlags, mount};

use super::disk::SOURCE;
use super::error::{Error, Result, on};
use super::place::Place;
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
pub(super) fn open(root: &Root, spec: &SlowDiskSpec) -> Result<(File, Made)> {
    match &spec.image {
        Image::Memory => memory(root, spec.size),
        Image::File(path) => file(path, spec.size),
    }
}

/// May the disk hold swap? Not if the image itself can be swapped out: bringing it back would need the disk.
pub(super) fn may_hold_swap(image: &File, of: &Image) -> bool {
    *of == Image::Memory || rustix::fs::fstatfs(image).is_ok_and(|s| !is_tmpfs(s.f_type))
}

/// `TMPFS_MAGIC` (include/uapi/linux/magic.h); the field's type is another on each architecture.
fn is_tmpfs(kind: impl TryInto<i64>) -> bool {
    kind.try_into().is_ok_and(|kind| kind == 0x0102_1994)
}

/// A file on a tmpfs of its own that is never swapped out (`noswap`, Linux 6.4; before that a ramfs, which never is but also
/// fills what is only read). The mount goes at once and the file stays as long as it is open: nothing to remove later.
/// A memfd will not do: its pages are swapped, in the worst case to the disk that they are.
fn memory(root: &Root, size: Bytes) -> Result<(File, Made)> {
    let place = Place::make(root)?;
    let dir = place.dir();
    let mount = |kind, options| mount(SOURCE, dir, kind, MountFlags::empty(), options);
    mount("tmpfs", Some(c"noswap,size=100%,mode=700"))
        .or_else(|_| mount("ramfs", Some(c"mode=700")))
        .map_err(on("mount memory at", dir))?;
    let (file, made) = file(&dir.join("image"), size)?;
    made.keep();
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
    use super::*;
    use crate::Profile;

    fn open(path: &Path) -> Result<(File, Made)> {
        let spec = SlowDiskSpec::new(Image::File(path.to_owned()), Bytes::mib(1), Profile::sd());
        super::open(&Root::at("/nonexistent"), &spec)
    }

    #[test]
    fn a_new_image_goes_with_an_error_and_stays_with_a_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        drop(open(&path).unwrap());
        assert!(!path.exists());
        open(&path).unwrap().1.keep();
        drop(open(&path).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 1 << 20, "somebody's image is never removed");
    }

    #[test]
    fn an_image_of_another_size_is_refused_and_left_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = open(file.path());
        assert!(matches!(refused, Err(Error::Spec(_))), "{refused:?}");
        assert_eq!(file.path().metadata().unwrap().len(), 0);
    }
}
