//! Parsers of ssh's output, kernel files and configuration files: text in, data out. None knows a path.

pub mod config;
pub mod facts;
pub mod handshake;
pub mod refusal;
pub mod sample;
pub mod ssh_config;
pub mod traffic;
