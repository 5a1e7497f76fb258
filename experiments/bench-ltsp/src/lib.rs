//! `eke bench ltsp`: an LTSP server and its clients, emulated. What does a client hold, and how does it feel, with LTSP alone, with a zram script
//! made by hand, and with eke?
//!
//! ```text
//! mmdebstrap ─> trees ─> image.squashfs ──┐
//! ltsp.conf, session ─> ltsp initrd, ipxe ┴─> server (rpcbind, NFS, dnsmasq) ─ bridge ─ taps ─ clients (QEMU, PXE) ─> outcome ─> rows
//! ```
//!
//! # Layout
//! - [`plan`]: what is compared, on which machines; [`conf`]: the texts of LTSP's and the server's files; [`session`]: what a client does; pure
//! - [`trees`]: Debian for server and clients in a cache; [`boot_files`]: what clients get for one run
//! - [`network`]: the namespace with its bridge; [`server`]: the server in it; [`client`]: a client; [`echo`]: a login that must stay usable
//! - [`faults`]: the server hangs, and is restarted
//! - [`outcome`]: what one client did, and rows from it; pure
//! - [`experiment`]: all of it

pub mod boot_files;
pub mod client;
pub mod conf;
pub mod echo;
pub mod error;
pub mod experiment;
pub mod faults;
pub mod network;
pub mod outcome;
pub mod plan;
pub mod server;
pub mod session;
pub mod trees;

pub use error::{Error, Result};
pub use experiment::{Lab, Options};
