//! Magic numbers of file systems, as `f_type` of statfs(2) has them (`include/uapi/linux/magic.h`).

/// The kernel's AFS.
pub const AFS: u32 = 0x6b41_4653;
/// Btrfs.
pub const BTRFS: u32 = 0x9123_683e;
/// Ceph.
pub const CEPH: u32 = 0x00c3_6400;
/// SMB 1, by the module cifs.
pub const CIFS: u32 = 0xff53_4d42;
/// ext2 to ext4.
pub const EXT: u32 = 0xef53;
/// F2FS.
pub const F2FS: u32 = 0xf2f5_2010;
/// FUSE.
pub const FUSE: u32 = 0x6573_5546;
/// GFS2.
pub const GFS2: u32 = 0x0116_1970;
/// NFS.
pub const NFS: u32 = 0x6969;
/// OCFS2.
pub const OCFS2: u32 = 0x7461_636f;
/// OpenAFS.
pub const OPEN_AFS: u32 = 0x5346_414f;
/// overlayfs.
pub const OVERLAYFS: u32 = 0x794c_7630;
/// ramfs.
pub const RAMFS: u32 = 0x8584_58f6;
/// SMB, by the module smbfs.
pub const SMB: u32 = 0x517b;
/// SMB 2 and 3, by the module cifs.
pub const SMB2: u32 = 0xfe53_4d42;
/// tmpfs.
pub const TMPFS: u32 = 0x0102_1994;
/// 9P.
pub const V9FS: u32 = 0x0102_1997;
/// XFS.
pub const XFS: u32 = 0x5846_5342;

/// File systems in memory.
pub const IN_MEMORY: [u32; 2] = [TMPFS, RAMFS];
