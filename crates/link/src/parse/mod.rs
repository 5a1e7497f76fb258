//! What `ssh`, the kernel and configuration files say; text in, data out. Nothing here knows a path.

pub mod config;
pub mod facts;
pub mod handshake;
pub mod ltsp;
pub mod refusal;
pub mod sample;
pub mod ssh_config;
pub mod traffic;
