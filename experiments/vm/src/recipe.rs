//! The specification of a machine and its task. Data only.

use std::path::PathBuf;
use std::time::Duration;

/// A machine and its task, from power-on to power-off. [`Recipe::new`] returns defaults that can be changed field by
/// field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// RAM in MiB. Of 124 MiB the kernel leaves about 74 MiB as `MemTotal`.
    pub memory_mib: u32,
    /// Processors. They are emulated: each is 10 to 18 times slower than the host's.
    pub cpus: u32,
    /// Additional kernel arguments, such as `zswap.enabled=1`.
    pub kernel_args: Vec<String>,
    /// The mounts at /sys/fs/cgroup.
    pub cgroup: Cgroup,
    /// The user space.
    pub system: System,
    /// Whether to discard writes to the root disk at the end, so that each run starts with the original image.
    pub forget_root: bool,
    /// Virtio disks, in order; [`Recipe::device`] returns each one's device in the machine.
    pub disks: Vec<Disk>,
    /// Virtio network cards: eth0 and so on. They need the module virtio_net.
    pub cards: Vec<Card>,
    /// Modules to load in order before the script. They must be in the [`Userland`]. Drivers for the disks and the root
    /// file system are loaded automatically.
    pub load: Vec<String>,
    /// A `sh` script, run as root in /root without input; [`super::Outcome::output`] contains its output.
    pub script: String,
    /// How the machine ends after the script.
    pub ending: Ending,
    /// The time limit of the whole run on the host's clock; then QEMU is killed.
    pub timeout: Duration,
}

impl Recipe {
    /// 124 MiB, two processors, cgroup v2, no disks, a fresh busybox system with the default modules, two minutes.
    #[must_use]
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            memory_mib: 124,
            cpus: 2,
            kernel_args: Vec::new(),
            cgroup: Cgroup::V2,
            system: System::Fresh,
            forget_root: false,
            disks: Vec::new(),
            cards: Vec::new(),
            load: Vec::new(),
            script: script.into(),
            ending: Ending::PowerOff,
            timeout: Duration::from_secs(120),
        }
    }

    /// The same recipe on a root disk made by [`super::make_root`]. Running several recipes on one image is like
    /// rebooting.
    #[must_use]
    pub fn on_root(mut self, image: impl Into<PathBuf>) -> Self {
        self.system = System::Root(image.into());
        self
    }

    /// The device of `disks[index]` in the machine, such as `/dev/vda`. A root disk comes first.
    #[must_use]
    pub fn device(&self, index: u8) -> String {
        let first = if matches!(self.system, System::Root(_)) { b'b' } else { b'a' };
        format!("/dev/vd{}", char::from(first.saturating_add(index)))
    }
}

/// The user space of a [`Recipe`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum System {
    /// Extracted into RAM at each start, and lost at the end. Its files take RAM (tmpfs, which can be swapped out).
    Fresh,
    /// On an ext4 image of [`super::make_root`], which keeps its writes. Boots with busybox init, which runs
    /// `/etc/rcS.d/S*`, `/etc/rc2.d/S*` (each with `start`) and `/etc/rc.local` before the script.
    Root(PathBuf),
}

/// The files of a system in addition to busybox and its applets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Userland {
    /// Kernel modules for modprobe and for the kernel's own requests; their dependencies are added. Built-in ones may
    /// be named, too.
    pub modules: Vec<String>,
    /// Static binaries of the host; each becomes `/bin/NAME`.
    pub binaries: Vec<PathBuf>,
    /// Other files.
    pub files: Vec<GuestFile>,
}

/// The modules of [`Userland::default`]: compressed swap with all its algorithms, virtio disks, ext4.
pub const DEFAULT_MODULES: [&str; 16] = [
    "virtio_pci",
    "virtio_blk",
    "ext4",
    "crc32c_generic",
    "crc32c_intel",
    "zram",
    "zsmalloc",
    "zbud",
    "z3fold",
    "lzo",
    "lzo_rle",
    "lz4",
    "lz4hc",
    "zstd",
    "deflate",
    "loop",
];

impl Default for Userland {
    fn default() -> Self {
        let modules = DEFAULT_MODULES.map(str::to_owned).to_vec();
        Self { modules, binaries: Vec::new(), files: Vec::new() }
    }
}

/// One file in the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFile {
    /// Its absolute path there.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Its permissions, such as 0o644.
    pub mode: u32,
}

impl GuestFile {
    /// A file with these permissions.
    #[must_use]
    pub fn new(path: impl Into<String>, mode: u32, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), mode }
    }
}

/// The cgroup hierarchies of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cgroup {
    /// Version 2 at /sys/fs/cgroup, with every controller enabled for the top groups.
    #[default]
    V2,
    /// Version 1: /sys/fs/cgroup/memory, cpu,cpuacct, blkio, pids, freezer, cpuset.
    V1,
    /// The controllers in version 1, and version 2 without controllers at /sys/fs/cgroup/unified.
    Hybrid,
    /// No cgroup file system is mounted.
    None,
}

/// How the machine ends after the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// Runs `/etc/rc0.d/K* stop` of a root disk, syncs, and switches off.
    #[default]
    PowerOff,
    /// Switches off at once: unsynced writes are lost.
    PowerCut,
}

/// One virtio disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The raw image on the host. A missing one is created (sparse, with `format`); an existing one is used unchanged.
    pub image: PathBuf,
    /// Its size in bytes if it is created.
    pub size: u64,
    /// The content of a new image.
    pub format: Format,
    /// Most requests per second (reads and writes together); `None` for no limit.
    pub iops: Option<u32>,
    /// Most bytes per second (reads and writes together); `None` for no limit.
    pub bytes_per_second: Option<u64>,
}

impl Disk {
    /// A disk without limits.
    #[must_use]
    pub fn new(image: impl Into<PathBuf>, size: u64, format: Format) -> Self {
        Self { image: image.into(), size, format, iops: None, bytes_per_second: None }
    }
}

/// One network card, without addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Card {
    /// To the host alone, which is 10.0.2.2, with whatever it serves on its loopback. Needs no rights on the host.
    Host,
    /// A cable to another machine's card, which has the same two sockets the other way round. They are made on the host.
    Cable {
        /// This end.
        own: PathBuf,
        /// The other end. What is sent before it is there is lost.
        other: PathBuf,
    },
}

/// The content of a new [`Disk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Zeros.
    #[default]
    None,
    /// An empty ext4 file system.
    Ext4,
    /// A swap area, ready for `swapon`.
    Swap,
}
