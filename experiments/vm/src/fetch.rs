//! Gets the parts of a [`Kit`] with apt: installs programs, downloads and extracts the rest.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

use super::apt::Apt;
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
        Self::fetch_by(&Apt::own(), cache)
    }

    /// The same with the kernel of another suite of Debian, such as `trixie`, in a directory of its own below `cache`.
    ///
    /// # Errors
    /// As [`Kit::fetch`].
    pub fn fetch_of(suite: &str, cache: &Path) -> Result<Self> {
        let place = cache.join(suite);
        Self::fetch_by(&Apt::of(suite, &place.join("apt"))?, &place)
    }

    fn fetch_by(apt: &Apt, cache: &Path) -> Result<Self> {
        make_directory(cache)?;
        let lock = std::fs::File::open(cache).map_err(on("open", cache))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| on("lock", cache)(error.into()))?;
        let Err(missing) = Self::find(cache) else { return Ok(Self::find(cache)?) };
        can_fetch(&missing)?;
        install(&missing.parts)?;
        for part in missing.parts.iter().filter(|part| !part.is_installed()) {
            download_part(apt, *part, cache)?;
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
    download(&Apt::own(), &[name.to_owned()], cache, |_| Ok(()))?;
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
    // Programs of this machine come from its own suite.
    let apt = Apt::own();
    let install = || {
        run_to_end(apt.command("apt-get").args(["install", "-y", "--no-install-recommends"]).args(&packages))
    };
    apt.after_update_if_needed(install).map(drop)
}

fn download_part(apt: &Apt, part: Part, cache: &Path) -> Result<()> {
    match part {
        Part::Kernel => download(apt, &kernel_packages(apt)?, cache, prepare_kernel),
        _ => download(apt, &[part.package().to_owned()], cache, |_| Ok(())),
    }
}

/// Downloads packages and extracts them into one directory, which has the name of the first; `prepare` runs before it gets that.
fn download(
    apt: &Apt,
    packages: &[String],
    cache: &Path,
    prepare: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let work = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(cache)
        .map_err(on("make a directory in", cache))?;
    let extracted = work.path().join("extracted");
    for package in packages {
        let place = work.path().join(package);
        make_directory(&place)?;
        apt.after_update_if_needed(|| {
            run_to_end(apt.command("apt-get").args(["download", package]).current_dir(&place))
        })?;
        run_to_end(Command::new("dpkg-deb").arg("-x").arg(downloaded(&place)?).arg(&extracted))?;
    }
    prepare(&extracted)?;
    let name = packages.first().map(String::as_str).unwrap_or_default();
    move_into_place(&extracted, &cache.join(name))
}

/// Gives a complete directory its final name, so that an interrupted fetch leaves no partial one.
fn move_into_place(extracted: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place).map_err(on("remove the incomplete", place))?;
    }
    std::fs::rename(extracted, place).map_err(on("make", place))
}

/// The newest kernel's packages, its own first: image and modules are in packages of their own since Debian 14.
fn kernel_packages(apt: &Apt) -> Result<Vec<String>> {
    let names = apt.dependencies(Part::Kernel.package())?;
    let newest = concrete_kernel(&names).ok_or_else(|| Error::Command {
        command: "apt-cache depends linux-image-amd64".to_owned(),
        answer: format!("names no kernel package (is this Debian?): {}", names.join(" ")),
    })?;
    let mut needs = apt.dependencies(&newest)?;
    needs.retain(|name| name.starts_with("linux-binary-") || name.starts_with("linux-modules-"));
    needs.insert(0, newest);
    Ok(needs)
}

/// The newest concrete kernel package among those that linux-image-amd64 needs.
fn concrete_kernel(names: &[String]) -> Option<String> {
    let kernels = names.iter().filter(|name| name.starts_with("linux-image-"));
    kernels.max_by_key(|name| version_key(name)).cloned()
}

/// Prepares an extracted kernel below `root`: decompresses its modules, runs `depmod`, and extracts the kernel from its image if possible.
fn prepare_kernel(root: &Path) -> Result<()> {
    let depmod = program("depmod").unwrap_or_else(|| "depmod".into());
    let place = root.join("lib/modules");
    // Since Debian 13 /lib is a link to it.
    let merged = root.join("usr/lib");
    if !place.exists() && merged.exists() {
        std::fs::rename(&merged, root.join("lib")).map_err(on("rename", &merged))?;
    }
    decompress_modules(&place)?;
    for entry in std::fs::read_dir(&place).map_err(on("list", &place))?.flatten() {
        let version = entry.file_name();
        run_to_end(Command::new(&depmod).arg("-b").arg(root).arg(&version))?;
        let boot = |name: &str| root.join("boot").join(format!("{name}-{}", version.to_string_lossy()));
        // Without it the image is booted, which only takes longer.
        drop(extract(&boot("vmlinuz"), &boot("vmlinux")));
    }
    Ok(())
}

/// Debian 13 has its modules compressed (`.ko.xz`).
fn decompress_modules(place: &Path) -> Result<()> {
    let find = run_to_end(Command::new("find").arg(place).args(["-name", "*.ko.xz"]))?;
    let files: Vec<&str> = find.lines().collect();
    for some in files.chunks(500) {
        run_to_end(Command::new("xz").arg("--decompress").args(some))?;
    }
    Ok(())
}

fn downloaded(place: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(place).map_err(on("list", place))?.flatten();
    let package =
        entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "deb"));
    package.ok_or_else(|| on("find the downloaded package in", place)(std::io::ErrorKind::NotFound.into()))
}

#[cfg(test)]
mod tests {
    use super::concrete_kernel;

    #[test]
    fn the_kernel_package_is_read_from_its_meta_package() {
        let names = ["linux-base-amd64", "linux-image-6.1.0-9-amd64", "linux-image-6.1.0-56-amd64"];
        let names = names.map(str::to_owned);
        assert_eq!(concrete_kernel(&names).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(concrete_kernel(&names[..1]), None);
    }
}
