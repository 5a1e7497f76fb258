//! What kind of machine is wanted, and what it shall do. Data only.

use std::path::PathBuf;
use std::time::Duration;

/// A machine and its one task, from power-on to power-off. [`Recipe::new`] gives one that can be changed field by field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// RAM in MiB. Of 124 the kernel leaves about 74 MiB as `MemTotal`.
    pub memory_mib: u32,
    /// Processors (emulated: each is 10 to 18 times slower than the host's).
    pub cpus: u32,
    /// More arguments for the kernel's command line, such as `zswap.enabled=1`.
    pub kernel_args: Vec<String>,
    /// What is mounted at /sys/fs/cgroup.
    pub cgroup: Cgroup,
    /// What user space runs.
    pub system: System,
    /// What is written to the root disk is gone at the end: every start finds the image as it was made.
    pub forget_root: bool,
    /// Virtio disks, in order; [`Recipe::device`] says what each is called in the machine.
    pub disks: Vec<Disk>,
    /// Modules that are loaded, in order, before the script. They must be in the [`Userland`]. Drivers for the disks and
    /// the root file system need no mention.
    pub load: Vec<String>,
    /// A `sh` script, run as root in /root with no input; what it prints is [`super::Outcome::output`].
    pub script: String,
    /// How the machine ends after the script.
    pub ending: Ending,
    /// The longest that the whole may take on the host's clock; then QEMU is killed.
    pub timeout: Duration,
}

impl Recipe {
    /// 124 MiB, two processors, cgroup v2, no disks, a fresh busybox system with the default modules at hand, two minutes.
    #[must_use]
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            memory_mib: 124,
            cpus: 2,
            kernel_args: Vec::new(),
            cgroup: Cgroup::V2,
            system: System::Fresh(Userland::default()),
            forget_root: false,
            disks: Vec::new(),
            load: Vec::new(),
            script: script.into(),
            ending: Ending::PowerOff,
            timeout: Duration::from_secs(120),
        }
    }

    /// The same recipe in a fresh system (in RAM) with this user space.
    #[must_use]
    pub fn with_userland(mut self, userland: Userland) -> Self {
        self.system = System::Fresh(userland);
        self
    }

    /// The same recipe on a root disk made by [`super::make_root`]. Running recipes on one image in turn is rebooting.
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
    /// Unpacked in RAM at each start and gone at the end. Its files take RAM (tmpfs, which can be swapped out).
    Fresh(Userland),
    /// On an ext4 image that [`super::make_root`] made, which keeps what is written. Boots with busybox init, which runs
    /// `/etc/rcS.d/S*`, `/etc/rc2.d/S*` (each with `start`) and `/etc/rc.local` before the script.
    Root(PathBuf),
}

/// The files of a system besides busybox with its applets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Userland {
    /// Kernel modules at hand for modprobe and for the kernel's own requests, with all that these need. What is built in
    /// may be named too.
    pub modules: Vec<String>,
    /// Static binaries on the host; each becomes `/bin/NAME`.
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

/// Which control groups the machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cgroup {
    /// Version 2 at /sys/fs/cgroup, every controller on for the top groups.
    #[default]
    V2,
    /// Version 1: /sys/fs/cgroup/memory, cpu,cpuacct, blkio, pids, freezer, cpuset.
    V1,
    /// The controllers as version 1, and version 2 without controllers at /sys/fs/cgroup/unified.
    Hybrid,
    /// Nothing is mounted.
    None,
}

/// How the machine ends when the script has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// Runs `/etc/rc0.d/K* stop` of a root disk, writes everything out, switches off.
    #[default]
    PowerOff,
    /// Switches off at once: what the machine had not written to its disks is lost.
    PowerCut,
}

/// One virtio disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The raw image on the host. Made (sparse, with `format`) when it is not there; else used as it is.
    pub image: PathBuf,
    /// Bytes, when the image is made.
    pub size: u64,
    /// What is put on it when it is made.
    pub format: Format,
    /// Requests per second that QEMU lets through (reads and writes together); `None` for no limit.
    pub iops: Option<u32>,
    /// Bytes per second that QEMU lets through (reads and writes together); `None` for no limit.
    pub bytes_per_second: Option<u64>,
}

impl Disk {
    /// A disk without limits.
    #[must_use]
    pub fn new(image: impl Into<PathBuf>, size: u64, format: Format) -> Self {
        Self { image: image.into(), size, format, iops: None, bytes_per_second: None }
    }
}

/// What a new [`Disk`] holds.
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
