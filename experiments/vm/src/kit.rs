//! Finds the parts of the small machine on this host.

use std::path::{Path, PathBuf};

use super::binaries::check_static;
use super::parts::{Missing, Part};
use super::scratch::program;

/// All parts of a small machine.
#[derive(Debug, Clone)]
pub struct Kit {
    /// `qemu-system-x86_64`.
    pub qemu: PathBuf,
    /// `mke2fs`, which creates disks with a file system.
    pub mke2fs: PathBuf,
    /// A static busybox, the machine's user space.
    pub busybox: PathBuf,
    /// The kernel: plain ELF if it could be extracted from its image, otherwise the image.
    pub kernel: PathBuf,
    /// The directory of the kernel's modules, with `modules.dep`.
    pub modules: PathBuf,
    /// The kernel's version, as in `uname -r` in the machine.
    pub version: String,
}

impl Kit {
    /// Finds all parts on this host; changes nothing and needs no network. `cache` is the directory of [`Kit::fetch`],
    /// see [`default_cache`].
    ///
    /// # Errors
    /// [`Missing`] lists the missing parts.
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

/// The default cache directory: `$XDG_CACHE_HOME/eke-vm`, or `~/.cache/eke-vm`.
#[must_use]
pub fn default_cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("eke-vm")
}

fn find_busybox(cache: &Path) -> Option<PathBuf> {
    let downloaded =
        ["bin", "usr/bin"].map(|place| Some(cache.join("busybox-static").join(place).join("busybox")));
    downloaded.into_iter().chain([program("busybox")]).flatten().find(|file| check_static(file).is_ok())
}

/// The modules' directory of the newest complete kernel in the cache.
fn newest_kernel(cache: &Path) -> Option<PathBuf> {
    let extracted = directories(cache).into_iter().filter(|place| starts_with(place, "linux-image-"));
    let modules = extracted.flat_map(|place| directories(&place.join("lib/modules")));
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

/// The numbers in a version, for sorting: "6.1.0-56-amd64" is [6, 1, 0, 56, 64].
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
    fn missing_shows_how_to_get_each_part() {
        let missing = Missing { parts: vec![Part::Qemu, Part::Kernel], cache: Path::new("/c").into() };
        let text = missing.to_string();
        assert!(text.contains("apt-get install -y --no-install-recommends qemu-system-x86. "), "{text}");
        assert!(text.contains("download and extract linux-image-amd64"), "{text}");
    }
}
