//! The decisions of the compressed page cache, without system calls: numbers in, decisions out.
//!
//! # Layout
//! - [`admission`]: which files' blocks the store admits, and which files the kernel reads itself
//! - [`size`]: how much memory the store may have now
//! - [`aside`]: whether the mount is of use, or had better leave the directory tree
//!
//! # Admission
//! ```text
//! Admit   ──► Decline      the file was read twice without enough hits, or is a stream that does not fit
//! Decline ──► Admit        hits of the admitted sample save more than compression costs
//! either  ──► Passthrough  at an open: the path through the cache costs more than the backing file
//! Passthrough ──► Admit    at an open: it does not any more
//! ```
//!
//! Running averages compare the cost of a miss (a read of the backing file), of compression and of a hit, for each file. The
//! time that a thread waits for a processor does not count. While no processor is idle, the least cost of a read counts
//! instead of the mean, unless the disk is slow in any case: the rest is waiting for the kernel's threads. Passthrough is
//! decided at opens, for root's mounts only. No decision is final: samples and probes check it.
//!
//! # Size
//! Inputs are available memory, the headroom of the control groups of the process, and swap traffic. The governor in
//! `eke-cache-serve` decides five times a second while memory moves, and once a second in calm. Tables that grow with the
//! files that the kernel knows (nodes, ledger, stamps, descriptors) count too: they reduce the store's limit, but an eighth
//! of what was asked for stays with the store.

pub mod admission;
pub mod aside;
pub mod size;
