//! The file system on the real kernel: every group of requests, on a disk and on a tmpfs, as root and as nobody.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "test code")]

#[path = "real_fs/compressed.rs"]
mod compressed;
#[path = "real_fs/directories.rs"]
mod directories;
#[path = "real_fs/files.rs"]
mod files;
#[path = "real_fs/leases.rs"]
mod leases;
#[path = "real_fs/mounted.rs"]
mod mounted;
#[path = "real_fs/names.rs"]
mod names;
#[path = "real_fs/remote.rs"]
mod remote;
#[path = "real_fs/replaced.rs"]
mod replaced;
#[path = "real_fs/rights.rs"]
mod rights;
#[path = "real_fs/room.rs"]
mod room;
#[path = "real_fs/times.rs"]
mod times;
#[path = "real_fs/users.rs"]
mod users;
