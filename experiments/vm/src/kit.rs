//! What the small machine is made of, and where it is on this host.

use std::fmt;
use std::path::{Path, PathBuf};

use super::binaries::check_static;
use super::scratch::program;

/// Everything that a small machine needs of the host, found.
#[derive(Debug, Clone)]
pub struct Kit {
    /// `qemu-system-x86_64`.
    pub qemu: PathBuf,
    /// `mke2fs`, which makes disks with a file system.
    pub mke2fs: PathBuf,
    /// A static busybox, the machine's user space.
    pub busybox: PathBuf,
    /// The kernel: plain ELF where it could be taken out of its image, else the image.
    pub kernel: PathBuf,
    /// The kernel's modules: the directory with its `modules.dep`.
    pub modules: PathBuf,
    /// The kernel's version, as `uname -r` says it in the machine.
    pub version: String,
}

/// What of a [`Kit`] is not on this host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    /// The parts that are missing.
    pub parts: Vec<Part>,
    /// Where the downloaded parts are looked for.
    pub cache: PathBuf,
}

/// One part of a [`Kit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// QEMU's `qemu-system-x86_64`.
    Qemu,
    /// `mke2fs` of e2fsprogs.
    Mke2fs,
    /// `depmod` of kmod: only needed while there is no unpacked kernel.
    Depmod,
    /// A static busybox.
    Busybox,
    /// Debian's kernel, unpacked, with `modules.dep`.
    Kernel,
}

impl Part {
    /// The Debian package that has it.
    #[must_use]
    pub fn package(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-system-x86",
            Self::Mke2fs => "e2fsprogs",
            Self::Depmod => "kmod",
            Self::Busybox => "busybox-static",
            Self::Kernel => "linux-image-amd64",
        }
    }

    /// Whether it has to be installed, by root; the others are only downloaded and unpacked.
    #[must_use]
    pub fn is_installed(self) -> bool {
        matches!(self, Self::Qemu | Self::Mke2fs | Self::Depmod)
    }

    fn sought(self, cache: &Path) -> String {
        let cache = cache.display();
        match self {
            Self::Qemu => "qemu-system-x86_64 (not in PATH)".to_owned(),
            Self::Mke2fs => "mke2fs (not in PATH or /sbin)".to_owned(),
            Self::Depmod => "depmod (not in PATH or /sbin)".to_owned(),
            Self::Busybox => {
                format!("a static busybox (not {cache}/busybox-static/bin/busybox, not in PATH)")
            }
            Self::Kernel => format!("a Debian kernel (no {cache}/linux-image-*/lib/modules/*/modules.dep)"),
        }
    }
}

impl Kit {
    /// Looks for everything on this host; changes nothing and needs no network. `cache` is where [`Kit::fetch`] puts what
    /// it downloads: see [`default_cache`].
    ///
    /// # Errors
    /// [`Missing`] lists each part that is not there.
    pub fn find(cache: &Path) -> Result<Self, Missing> {
        let mut parts = Vec::new();
        let mut need = |part, found: Option<PathBuf>| {
            if found.is_none() {
                parts.push(part);
            }
            found.unwrap_or_default()
        };
        let qemu = need(Part::Qemu, program("qemu-system-x86_64"));
        let mke2fs = need(Part::Mke2fs, program("mke2fs"));
        let busybox = need(Part::Busybox, find_busybox(cache));
        let kernel = newest_kernel(cache);
        if kernel.is_none() {
            need(Part::Depmod, program("depmod"));
        }
        let modules = need(Part::Kernel, kernel);
        if !parts.is_empty() {
            return Err(Missing { parts, cache: cache.to_path_buf() });
        }
        let version = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kernel = kernel_image(&modules, &version);
        Ok(Self { qemu, mke2fs, busybox, kernel, modules, version })
    }
}

/// The cache directory when the caller names none: `$XDG_CACHE_HOME/eke-vm`, else `~/.cache/eke-vm`.
#[must_use]
pub fn default_cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("eke-vm")
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sought: Vec<String> = self.parts.iter().map(|part| part.sought(&self.cache)).collect();
        write!(f, "the small machine needs {}", sought.join("; "))?;
        let (install, download): (Vec<Part>, Vec<Part>) =
            self.parts.iter().partition(|part| part.is_installed());
        let names = |parts: &[Part]| parts.iter().map(|part| part.package()).collect::<Vec<_>>().join(" ");
        if !install.is_empty() {
            let names = names(&install);
            write!(f, ". To get it (Debian), as root: apt-get install -y --no-install-recommends {names}")?;
        }
        if !download.is_empty() {
            let names = names(&download);
            write!(
                f,
                ". EKE_VM=fetch makes the tests download and unpack {names} (apt-get download, no install)"
            )?;
        }
        Ok(())
    }
}

fn find_busybox(cache: &Path) -> Option<PathBuf> {
    let downloaded = cache.join("busybox-static/bin/busybox");
    [Some(downloaded), program("busybox")].into_iter().flatten().find(|file| check_static(file).is_ok())
}

/// The modules' directory of the newest kernel in the cache which is complete.
fn newest_kernel(cache: &Path) -> Option<PathBuf> {
    let unpacked = directories(cache).into_iter().filter(|place| starts_with(place, "linux-image-"));
    let modules = unpacked.flat_map(|place| directories(&place.join("lib/modules")));
    modules.filter(|place| is_complete(place)).max_by_key(|place| version_key(&file_name(place)))
}

fn is_complete(modules: &Path) -> bool {
    modules.join("modules.dep").is_file() && kernel_image(modules, &file_name(modules)).is_file()
}

fn kernel_image(modules: &Path, version: &str) -> PathBuf {
    let boot = modules.join("../../../boot");
    let plain = boot.join(format!("vmlinux-{version}"));
    if plain.is_file() { plain } else { boot.join(format!("vmlinuz-{version}")) }
}

/// The numbers in a version, which order it: "6.1.0-56-amd64" is [6, 1, 0, 56, 64].
pub(super) fn version_key(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn directories(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn starts_with(path: &Path, prefix: &str) -> bool {
    file_name(path).starts_with(prefix)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Kit, Missing, Part, newest_kernel, version_key};
    use crate::scratch::{make_directory, write_scratch};
    use std::path::Path;

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(version_key("6.1.0-9-amd64") < version_key("6.1.0-56-amd64"));
    }

    #[test]
    fn the_newest_complete_kernel_is_taken() {
        let cache = tempfile::tempdir().unwrap();
        for (version, complete) in
            [("6.1.0-9-amd64", true), ("6.1.0-56-amd64", true), ("6.1.0-57-amd64", false)]
        {
            let place = cache.path().join(format!("linux-image-{version}"));
            let modules = place.join("lib/modules").join(version);
            make_directory(&modules).unwrap();
            make_directory(&place.join("boot")).unwrap();
            write_scratch(&place.join(format!("boot/vmlinuz-{version}")), b"").unwrap();
            if complete {
                write_scratch(&modules.join("modules.dep"), b"").unwrap();
            }
        }
        assert!(newest_kernel(cache.path()).unwrap().ends_with("6.1.0-56-amd64"));
    }

    #[test]
    fn an_empty_cache_lacks_the_kernel() {
        let cache = tempfile::tempdir().unwrap();
        assert!(Kit::find(cache.path()).unwrap_err().parts.contains(&Part::Kernel));
    }

    #[test]
    fn missing_says_how_to_get_each_part() {
        let missing = Missing { parts: vec![Part::Qemu, Part::Kernel], cache: Path::new("/c").into() };
        let text = missing.to_string();
        assert!(text.contains("apt-get install -y --no-install-recommends qemu-system-x86. "), "{text}");
        assert!(text.contains("download and unpack linux-image-amd64"), "{text}");
    }
}
