//! Gets the parts of a [`Kit`] with apt: installs what must be installed, downloads and unpacks the rest.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

use super::error::{Error, Result, on};
use super::kit::{Kit, Missing, Part, version_key};
use super::scratch::{make_directory, program, run_to_end};
use super::vmlinux::extract;

impl Kit {
    /// Finds the kit, and gets with apt what is missing of it. The kernel and busybox are downloaded and unpacked below
    /// `cache`, for which an ordinary user is enough; QEMU, kmod and e2fsprogs are installed, for which root is needed.
    /// Waits for another process that fetches into the same cache. Needs no network when all is there.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no apt-get, or where something must be installed and this is not root;
    /// [`Error::Command`] when apt fails.
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

/// The files of a Debian package, unpacked below `cache` and not installed: a directory that looks like `/`. Downloads it
/// (`apt-get download`, for which an ordinary user is enough) if it is not there; then needs no network.
///
/// # Errors
/// [`Error::Command`] where there is no apt, or no such package.
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

/// What [`fetch_package`] has fetched; needs no network.
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

/// Downloads and unpacks a package; `prepare` gets it ready before it is moved into place.
fn download(package: &str, cache: &Path, prepare: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let work = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(cache)
        .map_err(on("make a directory in", cache))?;
    after_update_if_needed(|| {
        run_to_end(apt("apt-get").args(["download", package]).current_dir(work.path()))
    })?;
    let unpacked = work.path().join("unpacked");
    run_to_end(Command::new("dpkg-deb").arg("-x").arg(downloaded(work.path())?).arg(&unpacked))?;
    prepare(&unpacked)?;
    move_into_place(&unpacked, &cache.join(package))
}

/// A directory is moved into place when it is whole, so that an interrupted fetch leaves no half of one.
fn move_into_place(unpacked: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place).map_err(on("remove the incomplete", place))?;
    }
    std::fs::rename(unpacked, place).map_err(on("make", place))
}

fn newest_kernel_package() -> Result<String> {
    let depends = || run_to_end(apt("apt-cache").args(["depends", Part::Kernel.package()]));
    let answer = after_update_if_needed(depends)?;
    concrete_kernel(&answer).ok_or_else(|| Error::Command {
        command: "apt-cache depends linux-image-amd64".to_owned(),
        answer: format!("names no kernel package (is this Debian?): {}", answer.trim()),
    })
}

/// The newest concrete kernel package in what `apt-cache depends linux-image-amd64` printed.
fn concrete_kernel(answer: &str) -> Option<String> {
    let names = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let kernels = names.filter(|name| name.starts_with("linux-image-"));
    kernels.max_by_key(|name| version_key(name)).map(str::to_owned)
}

/// Makes an unpacked kernel ready below `root`: `depmod`, and the kernel out of its image where that can be.
fn prepare_kernel(root: &Path) -> Result<()> {
    let depmod = program("depmod").unwrap_or_else(|| "depmod".into());
    let place = root.join("lib/modules");
    for entry in std::fs::read_dir(&place).map_err(on("list", &place))?.flatten() {
        let version = entry.file_name();
        run_to_end(Command::new(&depmod).arg("-b").arg(root).arg(&version))?;
        let boot = |name: &str| root.join("boot").join(format!("{name}-{}", version.to_string_lossy()));
        // without it the image is started, which only takes longer
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

/// Tries; on failure updates apt's lists (they may be absent or old) and tries once more.
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
