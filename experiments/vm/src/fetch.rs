//! Gets the parts of a [`Kit`] with apt: installs programs, downloads and extracts the rest.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

use super::error::{Error, Result, on};
use super::kit::{Kit, version_key};
use super::parts::{Missing, Part};
use super::scratch::{make_directory, program, run_to_end};
use super::vmlinux::extract;

impl Kit {
    /// Finds the kit, and gets missing parts with apt. An ordinary user can download and extract kernel and busybox
    /// into `cache`; installing QEMU, kmod and e2fsprogs needs root. Waits for other processes that fetch into the same
    /// cache. Needs no network if the kit is complete.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no apt-get, or if a program must be installed and this is not root;
    /// [`Error::Command`] if apt fails.
    pub fn fetch(cache: &Path) -> Result<Self> {
        make_directory(cache)?;
        let lock = std::fs::File::open(cache).map_err(on("open", cache))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| on("lock", cache)(error.into()))?;
        let Err(missing) = Self::find(cache) else { return Ok(Self::find(cache)?) };
        can_fetch(&missing)?;
        install(&missing.parts)?;
        for part in missing.parts.iter().filter(|part| !part.is_installed()) {
            download_part(*part, cache)?;
        }
        Ok(Self::find(cache)?)
    }
}

/// The files of a Debian package, extracted into `cache` and not installed: a directory that looks like `/`. Downloads
/// the package if necessary (`apt-get download`, which an ordinary user can do); afterwards needs no network.
///
/// # Errors
/// [`Error::Command`] if there is no apt, or no such package.
pub fn fetch_package(cache: &Path, name: &str) -> Result<PathBuf> {
    make_directory(cache)?;
    let lock = std::fs::File::open(cache).map_err(on("open", cache))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| on("lock", cache)(error.into()))?;
    if let Some(place) = find_package(cache, name) {
        return Ok(place);
    }
    download(name, cache, |_| Ok(()))?;
    Ok(cache.join(name))
}

/// The directory of an earlier [`fetch_package`]; needs no network.
#[must_use]
pub fn find_package(cache: &Path, name: &str) -> Option<PathBuf> {
    Some(cache.join(name)).filter(|place| place.is_dir())
}

fn can_fetch(missing: &Missing) -> Result<()> {
    let installs = missing.parts.iter().any(|part| part.is_installed());
    let allowed = !installs || rustix::process::geteuid().is_root();
    if allowed && program("apt-get").is_some() && program("dpkg-deb").is_some() {
        return Ok(());
    }
    Err(missing.clone().into())
}

fn install(parts: &[Part]) -> Result<()> {
    let packages: Vec<&str> =
        parts.iter().filter(|part| part.is_installed()).map(|part| part.package()).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let install =
        || run_to_end(apt("apt-get").args(["install", "-y", "--no-install-recommends"]).args(&packages));
    after_update_if_needed(install).map(drop)
}

fn download_part(part: Part, cache: &Path) -> Result<()> {
    match part {
        Part::Kernel => download(&newest_kernel_package()?, cache, prepare_kernel),
        _ => download(part.package(), cache, |_| Ok(())),
    }
}

/// Downloads and extracts a package; `prepare` runs before the directory gets its final name.
fn download(package: &str, cache: &Path, prepare: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let work = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(cache)
        .map_err(on("make a directory in", cache))?;
    after_update_if_needed(|| {
        run_to_end(apt("apt-get").args(["download", package]).current_dir(work.path()))
    })?;
    let extracted = work.path().join("extracted");
    run_to_end(Command::new("dpkg-deb").arg("-x").arg(downloaded(work.path())?).arg(&extracted))?;
    prepare(&extracted)?;
    move_into_place(&extracted, &cache.join(package))
}

/// Gives a complete directory its final name, so that an interrupted fetch leaves no partial one.
fn move_into_place(extracted: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place).map_err(on("remove the incomplete", place))?;
    }
    std::fs::rename(extracted, place).map_err(on("make", place))
}

fn newest_kernel_package() -> Result<String> {
    let depends = || run_to_end(apt("apt-cache").args(["depends", Part::Kernel.package()]));
    let answer = after_update_if_needed(depends)?;
    concrete_kernel(&answer).ok_or_else(|| Error::Command {
        command: "apt-cache depends linux-image-amd64".to_owned(),
        answer: format!("names no kernel package (is this Debian?): {}", answer.trim()),
    })
}

/// The newest concrete kernel package in the output of `apt-cache depends linux-image-amd64`.
fn concrete_kernel(answer: &str) -> Option<String> {
    let names = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let kernels = names.filter(|name| name.starts_with("linux-image-"));
    kernels.max_by_key(|name| version_key(name)).map(str::to_owned)
}

/// Prepares an extracted kernel below `root`: runs `depmod`, and extracts the kernel from its image if possible.
fn prepare_kernel(root: &Path) -> Result<()> {
    let depmod = program("depmod").unwrap_or_else(|| "depmod".into());
    let place = root.join("lib/modules");
    for entry in std::fs::read_dir(&place).map_err(on("list", &place))?.flatten() {
        let version = entry.file_name();
        run_to_end(Command::new(&depmod).arg("-b").arg(root).arg(&version))?;
        let boot = |name: &str| root.join("boot").join(format!("{name}-{}", version.to_string_lossy()));
        // Without it the image is booted, which only takes longer.
        drop(extract(&boot("vmlinuz"), &boot("vmlinux")));
    }
    Ok(())
}

fn downloaded(place: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(place).map_err(on("list", place))?.flatten();
    let package =
        entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "deb"));
    package.ok_or_else(|| on("find the downloaded package in", place)(std::io::ErrorKind::NotFound.into()))
}

/// Tries `action`; if it fails, updates apt's lists (which may be missing or old) and tries once more.
fn after_update_if_needed(action: impl Fn() -> Result<String>) -> Result<String> {
    action().or_else(|_| {
        run_to_end(apt("apt-get").arg("update"))?;
        action()
    })
}

fn apt(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
    command
}

#[cfg(test)]
mod tests {
    use super::concrete_kernel;

    #[test]
    fn the_kernel_package_is_read_from_its_meta_package() {
        let answer = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n";
        assert_eq!(concrete_kernel(answer).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(concrete_kernel("linux-image-amd64\n"), None);
    }
}
