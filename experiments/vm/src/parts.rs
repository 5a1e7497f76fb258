//! The parts of a small machine, and how to get missing ones.

use std::fmt;
use std::path::{Path, PathBuf};

/// The parts of a [`crate::Kit`] that are not on this host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    /// The parts that are missing.
    pub parts: Vec<Part>,
    /// The directory in which downloaded parts were searched.
    pub cache: PathBuf,
}

/// One part of a [`crate::Kit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// QEMU's `qemu-system-x86_64`.
    Qemu,
    /// `mke2fs` of e2fsprogs.
    Mke2fs,
    /// `depmod` of kmod: needed only until a kernel is extracted.
    Depmod,
    /// A static busybox.
    Busybox,
    /// Debian's kernel, extracted, with `modules.dep`.
    Kernel,
}

impl Part {
    /// Its Debian package.
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

    /// Whether root must install it; the other parts are only downloaded and extracted.
    #[must_use]
    pub fn is_installed(self) -> bool {
        matches!(self, Self::Qemu | Self::Mke2fs | Self::Depmod)
    }

    pub(super) fn sought(self, cache: &Path) -> String {
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
                ". EKE_VM=fetch makes the tests download and extract {names} (apt-get download, no install)"
            )?;
        }
        Ok(())
    }
}
