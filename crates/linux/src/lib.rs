//! Reads the kernel: parsers of its text, and readers of `/proc` and `/sys`. Nothing here writes.
//!
//! # Layout
//! - [`root`]: [`root::Root`], the directory that all paths are relative to; [`source`]: the trait of the calls that
//!   read; [`inside`]: these calls for a directory that no link may leave
//! - [`parse`]: text to data, one file for each kernel file
//! - [`sampler`]: reads a [`eke_model::sample::Sample`], for every program; [`hot_file`]: its open files
//! - [`read`]: single facts of the machine: swap areas, processes, groups, the battery
//! - [`areas`], [`zram`], [`discard`]: the devices of swap areas, the zram devices, the discard options of swap areas
//! - [`device`]: numbers of devices, and their paths; [`virtual_disk`]: disks of a hypervisor; [`systemd`]: names of units
//! - [`magic`]: magic numbers of file systems
//! - [`page_cache`]: which pages of a file are resident, and which are dirty
//! - [`passed`]: descriptors that the other end of a socket passes
//! - [`inherited`]: descriptors from whoever started the process
//! - [`programs`]: memory use by program
//! - [`io_class`]: the I/O class of the calling thread
//! - [`cgroup`]: the machine's cgroup version, and the owner of a group of eke's
//! - [`settings`]: the user's configuration files
//! - [`token`]: a random token for other machines

pub mod areas;
pub mod cgroup;
pub mod device;
pub mod discard;
pub mod error;
pub mod hot_file;
pub mod inherited;
pub mod inside;
pub mod io_class;
pub mod magic;
pub mod page_cache;
pub mod parse;
pub mod passed;
pub mod programs;
pub mod read;
pub mod root;
pub mod sampler;
pub mod settings;
pub mod source;
pub mod systemd;
pub mod token;
pub mod virtual_disk;
pub mod zram;

pub use error::Error;
pub use root::Root;
