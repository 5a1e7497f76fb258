//! Opens or creates the image.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_model::units::Bytes;
use rustix::mount::{MountFlags, mount};

use super::error::{Error, Result, on};
use super::mount_dir::{MountDir, SOURCE};
use super::{Image, SlowDiskSpec};

/// A new image file: removed when dropped, unless kept.
#[derive(Debug)]
pub(super) struct Made(Option<PathBuf>);

impl Made {
    /// Keeps the file, because the disk is attached.
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

/// Opens the image with the specified size.
pub(super) fn open(root: &Root, spec: &SlowDiskSpec) -> Result<(File, Made)> {
    match &spec.image {
        Image::Memory => memory(root, spec.size),
        Image::File(path) => file(path, spec.size),
    }
}

/// Whether the disk may hold swap: not if the image itself can be swapped out, because loading it would need the disk.
pub(super) fn may_hold_swap(image: &File, of: &Image) -> bool {
    *of == Image::Memory || rustix::fs::fstatfs(image).is_ok_and(|s| !is_tmpfs(s.f_type))
}

/// Compares with `TMPFS_MAGIC` (include/uapi/linux/magic.h); the field's type depends on the architecture.
fn is_tmpfs(kind: impl TryInto<i64>) -> bool {
    kind.try_into().is_ok_and(|kind| kind == 0x0102_1994)
}

/// A file on a tmpfs of its own that is never swapped out (`noswap`, Linux 6.4; before that a ramfs, which is never
/// swapped out but also keeps pages that were only read). The file stays until it is closed, although the mount is
/// removed at once, so nothing has to be removed later. A memfd does not work: its pages can be swapped, in the worst
/// case to this disk.
fn memory(root: &Root, size: Bytes) -> Result<(File, Made)> {
    let mount_dir = MountDir::make(root)?;
    let dir = mount_dir.dir();
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
            let found = file.metadata().map_err(on("stat", path))?.len();
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
        "{path} has {found} bytes, but the disk needs {}; use that size or another image",
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
    fn a_new_image_is_removed_on_error_and_kept_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        drop(open(&path).unwrap());
        assert!(!path.exists());
        open(&path).unwrap().1.keep();
        drop(open(&path).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 1 << 20, "somebody's image is never removed");
    }

    #[test]
    fn an_image_of_another_size_is_refused_and_unchanged() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = open(file.path());
        assert!(matches!(refused, Err(Error::Spec(_))), "{refused:?}");
        assert_eq!(file.path().metadata().unwrap().len(), 0);
    }
}
