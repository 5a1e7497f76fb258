//! The peers of guests, as data.

use eke_model::units::{Bytes, MIB};
use eke_results::report::{Role, Variant};
use serde::{Deserialize, Serialize};

use super::SLOWER;

/// A guest's means against a shortage of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "peer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Peer {
    /// Nothing.
    Nothing,
    /// A zram device of this size with the kernel's default algorithm and settings: the row of the sizes.
    Zram {
        /// The device's size, uncompressed.
        size: Bytes,
    },
    /// Debian's zram-tools with its defaults.
    ZramTools,
    /// systemd's zram-generator with Debian's configuration.
    ZramGenerator,
    /// zram-generator with Fedora's configuration.
    Fedora,
    /// ChromeOS' size.
    ChromeOs,
    /// The advice of guides: twice the RAM, zstd, and their settings.
    TunedZram,
    /// Swap on the slow disk, without zswap.
    DiskSwap,
    /// zswap as the kernel has it, before the slow disk's swap.
    ZswapDefaults,
    /// zswap as on the study's laptop, before the slow disk's swap.
    ZswapLaptop,
    /// The same with zstd, as guides for zswap advise.
    ZswapZstd,
    /// `eke up` at boot, from an earlier measurement, and its agent.
    Eke {
        /// Is there swap on the slow disk?
        disk: bool,
        /// More arguments for `eke up`; with any, it is one of eke's variations.
        arguments: Vec<String>,
    },
}

/// The disk of a peer's swap: the profile `laptop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapDisk {
    /// Its size.
    pub size: Bytes,
    /// Requests per second of the host's clock.
    pub iops: u32,
    /// Bytes per second of the host's clock.
    pub bytes_per_second: u64,
}

/// 120 requests and 60 MB a second of the guest's own time, which passes [`super::SLOWER`]: beside a CPU 15 times slower, and
/// with 15 times the patience, a disk as fast as on the host's clock would be one of 1800 requests a second. With that,
/// swap on the disk alone held more than any compressed pool.
pub const LAPTOP: SwapDisk = SwapDisk {
    size: Bytes(256 * MIB),
    iops: 120 / SLOWER as u32,
    bytes_per_second: 60_000_000 / SLOWER as u64,
};

/// Fedora's `/usr/lib/systemd/zram-generator.conf` of zram-generator-defaults.
pub(super) const FEDORA: &str = "[zram0]\nzram-size = min(ram, 8192)";

impl Peer {
    /// The compared peers, `nothing` first and eke last.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let eke = |disk| Self::Eke { disk, arguments: Vec::new() };
        vec![
            Self::Nothing,
            Self::ZramTools,
            Self::ZramGenerator,
            Self::Fedora,
            Self::ChromeOs,
            Self::TunedZram,
            Self::DiskSwap,
            Self::ZswapDefaults,
            Self::ZswapLaptop,
            Self::ZswapZstd,
            eke(true),
            eke(false),
        ]
    }

    /// The peer's swap disk.
    #[must_use]
    pub fn disk(&self) -> Option<SwapDisk> {
        match self {
            Self::DiskSwap
            | Self::ZswapDefaults
            | Self::ZswapLaptop
            | Self::ZswapZstd
            | Self::Eke { disk: true, .. } => Some(LAPTOP),
            _ => None,
        }
    }

    /// The name in a report's rows.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Nothing => "nothing".into(),
            Self::Zram { size } => format!("zram {size}"),
            Self::ZramTools => "zram-tools".into(),
            Self::ZramGenerator => "zram-generator".into(),
            Self::Fedora => "Fedora".into(),
            Self::ChromeOs => "ChromeOS".into(),
            Self::TunedZram => "tuned zram".into(),
            Self::DiskSwap => "disk swap".into(),
            Self::ZswapDefaults => "zswap".into(),
            Self::ZswapLaptop => "zswap as on the laptop".into(),
            Self::ZswapZstd => "zswap with zstd".into(),
            Self::Eke { disk, arguments } => {
                let words: Vec<&str> =
                    ["eke"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
                words.join(" ") + if *disk { " with a disk" } else { "" }
            }
        }
    }

    /// The report's variant: name, role, set-up.
    #[must_use]
    pub fn variant(&self) -> Variant {
        let role = match self {
            Self::Nothing => Role::Baseline,
            Self::Eke { arguments, .. } if arguments.is_empty() => Role::Ours,
            Self::Eke { .. } => Role::Variation,
            _ => Role::Peer,
        };
        Variant { name: self.name(), role, set_up: self.set_up() }
    }

    fn set_up(&self) -> String {
        let text = match self {
            Self::Nothing => "no swap",
            Self::Zram { .. } => "zram of this size, the kernel's algorithm and settings, priority 100",
            Self::ZramTools => {
                "Debian's package: `zramswap start` with its defaults (256 MiB, lz4, priority 100)"
            }
            Self::ZramGenerator => {
                "Debian's package systemd-zram-generator: its binary, its configuration (min(ram / 2, 4 GiB), the \
                 kernel's algorithm), `swapon` as in its unit"
            }
            Self::Fedora => {
                "the binary of systemd-zram-generator with the configuration of Fedora's zram-generator-defaults \
                 (min(ram, 8 GiB), the kernel's algorithm)"
            }
            Self::ChromeOs => {
                "by its documented value: zram of twice the RAM, the kernel's algorithm; no writeback, as without a disk"
            }
            Self::TunedZram => {
                "by the values of guides (Arch's, Pop!_OS'): zram of twice the RAM, zstd, swappiness 180, page-cluster \
                 0, watermark_scale_factor 125, watermark_boost_factor 0"
            }
            Self::DiskSwap => "256 MiB of swap on a disk of 120 IOPS and 60 MB/s",
            Self::ZswapDefaults => {
                "zswap switched on with what the kernel has (compressor, zpool, 20 %), before 256 MiB of swap on a disk \
                 of 120 IOPS and 60 MB/s"
            }
            Self::ZswapLaptop => {
                "zswap with deflate, zsmalloc and 90 %, before 256 MiB of swap on a disk of 120 IOPS and 60 MB/s"
            }
            Self::ZswapZstd => {
                "zswap with zstd, zsmalloc and 90 %, before 256 MiB of swap on a disk of 120 IOPS and 60 MB/s"
            }
            Self::Eke { .. } => return self.eke(),
        };
        text.to_owned()
    }

    fn eke(&self) -> String {
        let Self::Eke { disk, arguments } = self else { return String::new() };
        let disk = if *disk { ", with 256 MiB of swap on a disk of 120 IOPS and 60 MB/s" } else { "" };
        let arguments: String = arguments.iter().map(|word| format!(" {word}")).collect();
        format!(
            "`eke up --boot{arguments}`{disk}: at boot, from what `eke up` had measured in an earlier boot \
             with memory to spare while the first document was open; the agent runs"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_every_set_up_is_said() {
        let mut names: Vec<String> = Peer::all().iter().map(Peer::name).collect();
        let count = names.len();
        assert!(names.iter().all(|name| !name.contains(',')), "`--variants` takes a list with commas");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(Peer::all().iter().all(|peer| !peer.variant().set_up.is_empty()));
        assert_eq!(Peer::Zram { size: Bytes::mib(64) }.name(), "zram 64 MiB");
    }

    #[test]
    fn an_argument_makes_a_lever_of_eke() {
        let eke = |arguments: &[&str]| Peer::Eke {
            disk: false,
            arguments: arguments.iter().map(ToString::to_string).collect(),
        };
        assert_eq!((eke(&[]).variant().role, eke(&[]).name()), (Role::Ours, "eke".to_owned()));
        let thing = eke(&["--algorithm", "lz4"]).variant();
        assert_eq!((thing.role, thing.name.as_str()), (Role::Variation, "eke --algorithm lz4"));
        assert!(thing.set_up.starts_with("`eke up --boot --algorithm lz4`: "), "{}", thing.set_up);
    }
}
