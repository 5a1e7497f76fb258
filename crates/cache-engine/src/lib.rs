//! The process between a worker and the engine of the shared tier: `eke-cache-shared`. It has the network, TLS and the engine's password, and
//! nothing else: no file of the mount, no key of sealed blocks, no rights.
//!
//! # Layout
//! - [`confine`]: what it gives up before it reads a byte of the network
//! - [`connect`]: connections to one engine, to the master that sentinels name ([`sentinel`]), to a cluster ([`cluster`])
//! - [`lost`]: members of a cluster that do not answer, and whom a read asks instead
//! - [`line`](mod@line): a connection that is made anew after it broke; [`renewal`]: one that takes its place; [`pause`]: how long nobody tries that
//! - [`refusal`]: what a refusal says of the connection
//! - [`serve`]: asks, a thread for neighbouring parts of the engine; `send`: replies to the worker; [`offers`]: blocks for it;
//!   [`state`]: how it is; `within`: how long is waited
//!
//! # Invariants
//! - An ask is answered or failed, and dropped when nobody waits for it any more.
//! - While a member of a cluster does not answer, no read waits for it twice: its replica is asked, and the process connects beside the reads.
//! - An offer never keeps an ask waiting: it has its own socket, threads and connections.
//! - The process ends when the worker's ends of its sockets are closed, and when the engine refuses its password or certificate.

pub mod cluster;
pub mod confine;
pub mod connect;
pub mod line;
pub mod lost;
pub mod offers;
pub mod pause;
pub mod refusal;
pub mod renewal;
mod send;
pub mod sentinel;
pub mod serve;
pub mod state;
mod within;
