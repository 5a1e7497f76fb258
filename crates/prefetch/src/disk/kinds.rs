//! Which file systems have no block device below, by the names that mountinfo gives them.

/// What a file system keeps its files in, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// A block device.
    Disk,
    /// A server, elsewhere or a program on this machine, which may never answer.
    Network,
    /// This machine's memory, or nothing: there is nothing to fetch.
    Memory,
    /// Directories of other file systems.
    Overlay,
    /// Devices of its own, which it does not tell (zfs): no counters are there to see others by.
    Opaque,
}

/// Those with a server (fs/*/Kconfig under "Network File Systems", and programs' mounts by FUSE).
const NETWORK: [&str; 17] = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "coda", "lustre", "gfs", "ncpfs",
    "orangefs", "pvfs2", "beegfs", "virtiofs", "autofs",
];
const MEMORY: [&str; 24] = [
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "proc",
    "sysfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "pstore",
    "bpf",
    "mqueue",
    "hugetlbfs",
    "configfs",
    "fusectl",
    "binfmt_misc",
    "efivarfs",
    "rpc_pipefs",
    "nsfs",
    "selinuxfs",
    "pipefs",
    "sockfs",
];

/// By the name of the type.
pub fn nature(file_system: &str) -> Nature {
    // `fuse.sshfs`, and `fuseblk` too: its server reads the device, and may hang as any other.
    if file_system.starts_with("fuse") && file_system != "fusectl" || NETWORK.contains(&file_system) {
        Nature::Network
    } else if MEMORY.contains(&file_system) {
        Nature::Memory
    } else {
        match file_system {
            "overlay" | "aufs" | "unionfs" => Nature::Overlay,
            "zfs" | "bcachefs" => Nature::Opaque,
            _ => Nature::Disk,
        }
    }
}

/// Does it keep its metadata in the page cache of its block device, so that reading the device brings them?
/// ext2 to ext4 do (sb_bread); xfs and btrfs have caches of their own, f2fs inodes of its own.
pub fn keeps_metadata_in_device(file_system: &str) -> bool {
    matches!(file_system, "ext2" | "ext3" | "ext4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natures() {
        let table = [
            ("ext4", Nature::Disk),
            ("btrfs", Nature::Disk),
            ("squashfs", Nature::Disk),
            ("nfs4", Nature::Network),
            ("fuse", Nature::Network),
            ("fuse.sshfs", Nature::Network),
            ("fuseblk", Nature::Network),
            ("fusectl", Nature::Memory),
            ("tmpfs", Nature::Memory),
            ("overlay", Nature::Overlay),
            ("zfs", Nature::Opaque),
        ];
        for (name, expected) in table {
            assert_eq!(nature(name), expected, "{name}");
        }
        assert!(keeps_metadata_in_device("ext4") && !keeps_metadata_in_device("xfs"));
    }
}
