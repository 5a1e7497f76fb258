//! The guests' disk.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use eke_bench_core::test_image::{self, Parts, Tree};
use eke_linux::Root;
use eke_model::units::MIB;
use eke_vm::{Kit, Userland, make_root_from};

use super::error::Error;

/// The version of the disk. It is incremented when the same parts make another disk.
const VERSION: u32 = 1;

/// The disk of [`make_image`], from the cache of [`test_image::ensure`] or made now. Every change of a program, document, package or
/// kernel makes another disk.
///
/// # Errors
/// As [`make_image`]; nothing is left then.
pub fn ensure_image(
    root: &Root,
    kit: &Kit,
    parts: &Parts,
    packages: &[PathBuf],
    cache: &Path,
) -> Result<PathBuf, Error> {
    let name = format!("image-guest-{VERSION}-{:016x}.ext4", key(&Tree::of(parts)?, kit, packages));
    test_image::cached(root, cache, &name, SystemTime::now(), |work| {
        let made = work.join("image");
        make_image(kit, &made, parts, packages).map(|()| made)
    })
}

fn key(tree: &Tree, kit: &Kit, packages: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tree.key().hash(&mut hasher);
    (&kit.busybox, &kit.modules, packages).hash(&mut hasher);
    hasher.finish()
}

/// Makes the root disk of all guests at `image`: the `parts` (of [`super::parts`], and documents), the files of `packages`
/// (of [`super::packages`], each an extracted directory), busybox and the kernel's modules. Every run starts from it and
/// leaves it as it is.
///
/// # Errors
/// A program is not on this machine, a file cannot be read, mke2fs fails, or the image is there already.
pub fn make_image(kit: &Kit, image: &Path, parts: &Parts, packages: &[PathBuf]) -> Result<(), Error> {
    let tree = Tree::of(parts)?;
    let beside = image.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = tempfile::Builder::new().prefix(".eke-guest-").tempdir_in(beside);
    let place = place.map_err(|source| Error::Read { path: beside.to_owned(), source })?;
    test_image::copy_to(&tree, place.path())?;
    let trees: Vec<PathBuf> =
        [place.path().to_path_buf()].into_iter().chain(packages.iter().cloned()).collect();
    // Blocks, inodes, the journal, the modules, and files that the guest writes. The image is sparse.
    let size = (tree.bytes().0 * 3 / 2 + 128 * MIB).next_multiple_of(MIB);
    Ok(make_root_from(kit, image, size, &Userland::default(), &trees)?)
}
