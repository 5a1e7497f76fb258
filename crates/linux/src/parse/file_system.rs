//! What the types of file systems are, by the names that mountinfo gives them.

/// What a file system keeps its files in, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// A block device.
    Disk,
    /// A server, elsewhere or a program on this machine, or a cluster: it may never answer.
    Network,
    /// Nothing: others are mounted there when somebody asks, and may never come (autofs).
    Trigger,
    /// This machine's memory, or what the kernel makes up: there is nothing to fetch.
    Memory,
    /// Directories of other file systems.
    Overlay,
    /// Devices of its own, which it does not tell (zfs): no counters are there to see others by.
    Opaque,
}

/// Those with a server or a cluster (fs/*/Kconfig under "Network File Systems"; out of the tree: beegfs, glusterfs, lustre, afuse, davfs).
const NETWORK: [&str; 22] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "afuse",
    "beegfs",
    "ceph",
    "coda",
    "davfs",
    "gfs",
    "gfs2",
    "glusterfs",
    "lustre",
    "ncpfs",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "vboxsf",
    "virtiofs",
];

const MEMORY: [&str; 24] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "pipefs",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sockfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// By the name of the type.
pub fn nature(kind: &str) -> Nature {
    // `fuse.sshfs`, and `fuseblk` too: its server reads the device, and may hang as any other.
    if matches!(kind, "fuse" | "fuseblk") || kind.starts_with("fuse.") || NETWORK.contains(&kind) {
        Nature::Network
    } else if MEMORY.contains(&kind) {
        Nature::Memory
    } else {
        match kind {
            "autofs" => Nature::Trigger,
            "overlay" | "aufs" | "unionfs" => Nature::Overlay,
            "zfs" | "bcachefs" => Nature::Opaque,
            _ => Nature::Disk,
        }
    }
}

/// Can files of this type of file system be on a disk, here or elsewhere?
pub fn is_on_disk(kind: &str) -> bool {
    !matches!(nature(kind), Nature::Memory | Nature::Trigger)
}

/// May looking at a file of this type of file system hang?
pub fn may_hang(kind: &str) -> bool {
    matches!(nature(kind), Nature::Network | Nature::Trigger)
}

/// Does it keep its metadata in the page cache of its block device, so that reading the device brings them?
/// ext2 to ext4 do (sb_bread); xfs and btrfs have caches of their own, f2fs inodes of its own.
pub fn keeps_metadata_in_device(kind: &str) -> bool {
    matches!(kind, "ext2" | "ext3" | "ext4")
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
            ("autofs", Nature::Trigger),
            ("overlay", Nature::Overlay),
            ("zfs", Nature::Opaque),
        ];
        for (name, expected) in table {
            assert_eq!(nature(name), expected, "{name}");
        }
        assert!(keeps_metadata_in_device("ext4") && !keeps_metadata_in_device("xfs"));
    }

    #[test]
    fn file_systems_are_told_apart() {
        assert!(is_on_disk("ext4") && is_on_disk("nfs4") && !is_on_disk("proc") && !is_on_disk("tmpfs"));
        assert!(may_hang("fuse.sshfs") && may_hang("nfs4") && !may_hang("btrfs") && !may_hang("overlay"));
        assert!(may_hang("autofs") && !is_on_disk("autofs"));
    }
}
