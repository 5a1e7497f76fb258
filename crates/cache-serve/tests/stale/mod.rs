//! What changes backing files while they are served: a program with mappings, a server, a disk that runs full.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

pub mod full_disk;
pub mod mapping;
pub mod server;
