//! What an LTSP server knows of its clients: text in, data out. No file, clock or socket.
//!
//! # Layout
//! - [`entries`](mod@entries): the lines of `ltsp.conf(5)`
//! - [`sections`]: the assignments that hold for one client, in LTSP's order
//! - [`options`]: eke's options, and what is wrong with them
//! - [`leases`]: dnsmasq's leases; [`neighbours`]: addresses in `/proc/net/arp`

pub mod entries;
pub mod leases;
pub mod neighbours;
pub mod options;
pub mod sections;

pub use entries::{Entry, EntryKind, NotLiteral, ParseError, entries, plain};
