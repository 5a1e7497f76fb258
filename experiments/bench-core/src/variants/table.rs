//! The peers with their documented values. Data only.

use eke_model::units::Bytes;

/// What people use today.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Its name in reports.
    pub name: &'static str,
    /// What it sets up.
    pub means: Means,
    /// Where the values are from: a package with its version and file, or a document.
    pub documented: &'static str,
}

/// What a peer sets up.
#[derive(Debug, Clone, Copy)]
pub enum Means {
    /// No swap at all.
    Nothing,
    /// A zram device.
    Zram(Zram),
    /// zswap before a disk's swap.
    Zswap(Zswap),
}

/// A peer's zram device and what it sets beside it.
#[derive(Debug, Clone, Copy)]
pub struct Zram {
    /// The size for so much RAM.
    pub size: fn(Bytes) -> Bytes,
    /// The same in words.
    pub formula: &'static str,
    /// The algorithm; `None` leaves the kernel's default.
    pub algorithm: Option<&'static str>,
    /// What becomes of it where the kernel lacks that algorithm.
    pub lacking: Lacking,
    /// The swap priority; `None` leaves it to the kernel.
    pub priority: Option<i16>,
    /// `vm.swappiness`, where it sets one.
    pub swappiness: Option<u32>,
    /// `vm.page-cluster`, where it sets one.
    pub page_cluster: Option<u32>,
    /// What else it sets, and why a box does not see that; empty where there is nothing.
    pub not_in_a_box: &'static str,
}

/// What a peer does without its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// Its own tool stops with an error and sets up nothing: it is left out.
    LeaveOut,
    /// The kernel's default stands for it, and page-cluster is this then.
    KernelsDefault {
        /// `vm.page-cluster` for any other algorithm.
        page_cluster: Option<u32>,
    },
}

/// zswap's settings; `None` leaves the kernel's default.
#[derive(Debug, Clone, Copy)]
pub struct Zswap {
    /// The algorithm.
    pub compressor: Option<&'static str>,
    /// The most of RAM that its pool takes, in percent.
    pub max_pool_percent: Option<u32>,
}

/// Why zswap is not compared in a box.
pub const NO_ZSWAP_IN_A_BOX: &str = "left out in a box: zswap's pool is a share of the host's RAM (max_pool_percent), not of the box's budget; the small machine has it";

/// The name of the variant without any swap.
pub const NOTHING: &str = "nothing";

const GIB: u64 = 1024;

/// The kernel's own algorithm, priority 100, no sysctls: what most set up.
const PLAIN: Zram = Zram {
    size: |ram| ram,
    formula: "ram",
    algorithm: None,
    lacking: Lacking::LeaveOut,
    priority: Some(100),
    swappiness: None,
    page_cluster: None,
    not_in_a_box: "",
};

/// All peers, in the order of a report's table.
pub static PEERS: &[Peer] = &[
    Peer { name: NOTHING, means: Means::Nothing, documented: "no swap at all" },
    Peer {
        name: "zram-tools",
        means: Means::Zram(Zram {
            size: |_| Bytes::mib(256),
            formula: "256 MiB whatever the RAM",
            algorithm: Some("lz4"),
            ..PLAIN
        }),
        documented: "Debian's zram-tools 0.3.3.1-1.1: /usr/sbin/zramswap with /etc/default/zramswap as installed, where every line is a comment",
    },
    Peer {
        name: "zram-generator",
        means: Means::Zram(Zram { size: generators, formula: "min(ram / 2, 4 GiB)", ..PLAIN }),
        documented: "Debian's systemd-zram-generator 1.1.2-2: /etc/systemd/zram-generator.conf as installed, zram-generator.conf(5)",
    },
    Peer {
        name: "Fedora",
        means: Means::Zram(Zram {
            size: |ram| ram.min(Bytes::mib(8 * GIB)),
            formula: "min(ram, 8 GiB)",
            ..PLAIN
        }),
        documented: "zram-generator-defaults since Fedora 34 (Changes/Scale_ZRAM_to_full_memory_size)",
    },
    Peer {
        name: "ChromeOS",
        means: Means::Zram(Zram { size: twice, formula: "2 x ram", priority: None, ..PLAIN }),
        documented: "chromiumos platform2, swap_management/swap_tool.cc: 2.0 x MemTotal, comp_algorithm untouched unless a feature names one, swapon without a priority; its writeback needs a disk",
    },
    Peer {
        name: "Pop!_OS",
        means: Means::Zram(Zram {
            size: |ram| ram.min(Bytes::mib(16 * GIB)),
            formula: "min(ram, 16 GiB)",
            algorithm: Some("zstd"),
            lacking: Lacking::KernelsDefault { page_cluster: Some(1) },
            priority: Some(1000),
            swappiness: Some(180),
            page_cluster: Some(0),
            not_in_a_box: WATERMARKS,
        }),
        documented: "pop-os/default-settings, pop-zram-config: swappiness 180, page-cluster 0 with zstd and 1 otherwise",
    },
    Peer {
        name: "tuned zram",
        means: Means::Zram(Zram {
            size: twice,
            formula: "2 x ram",
            algorithm: Some("zstd"),
            lacking: Lacking::KernelsDefault { page_cluster: Some(0) },
            priority: Some(100),
            swappiness: Some(180),
            page_cluster: Some(0),
            not_in_a_box: WATERMARKS,
        }),
        documented: "a hand-tuned rival: the sysctls that the Arch wiki gives for zram (180, 0), and the most that the kernel's zram.rst advises to declare",
    },
    Peer {
        name: "zswap",
        means: Means::Zswap(Zswap { compressor: None, max_pool_percent: None }),
        documented: "the kernel's defaults with zswap.enabled=1 (Documentation/admin-guide/mm/zswap.rst): 20 % of RAM",
    },
    Peer {
        name: "zswap as on the laptop",
        means: Means::Zswap(Zswap { compressor: Some("deflate"), max_pool_percent: Some(90) }),
        documented: "the settings of the laptop that eke descends from: deflate, 90 % of RAM",
    },
];

const WATERMARKS: &str = "its watermark_boost_factor 0 and watermark_scale_factor 125 steer the machine's kswapd, which a box's limit never wakes";

/// The sizes of the 2008 study's curve: plain zram with the kernel's default algorithm.
pub static STUDY_MIB: [u64; 10] = [32, 64, 96, 128, 160, 192, 224, 256, 288, 320];

/// A plain device of one size, as in the study's curve.
pub fn study_zram() -> Zram {
    PLAIN
}

fn generators(ram: Bytes) -> Bytes {
    Bytes(ram.0 / 2).min(Bytes::mib(4 * GIB))
}

fn twice(ram: Bytes) -> Bytes {
    Bytes(ram.0.saturating_mul(2))
}

/// The peer of that name.
pub fn find(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unlike_and_every_value_has_its_source() {
        for (i, peer) in PEERS.iter().enumerate() {
            assert!(PEERS[..i].iter().all(|p| p.name != peer.name), "{} stands twice", peer.name);
            assert!(!peer.documented.is_empty());
        }
    }
}
