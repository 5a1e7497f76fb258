//! The process between a worker and the engine of the shared tier: `eke-cache-shared`. It has the network, TLS and the engine's password, and
//! nothing else: no file of the mount, no key of sealed blocks, no rights.
//!
//! # Layout
//! - [`confine`]: what it gives up before it reads a byte of the network
//! - [`connect`]: connections to one engine, to the master that sentinels name ([`sentinel`]), to a cluster
//! - [`line`](mod@line): a connection that is made anew after it broke; [`pause`]: how long nobody tries that
//! - [`refusal`]: what a refusal says of the connection
//! - [`serve`]: asks, a thread for neighbouring parts of the engine; `send`: replies to the worker; [`offers`]: blocks for it;
//!   [`state`]: how it is
//!
//! # Invariants
//! - An ask is answered or failed, and dropped when nobody waits for it any more.
//! - An offer never keeps an ask waiting: it has its own socket, threads and connections.
//! - The process ends when the worker's ends of its sockets are closed, and when the engine refuses its password or certificate.

pub mod confine;
pub mod connect;
pub mod line;
pub mod offers;
pub mod pause;
pub mod refusal;
mod send;
pub mod sentinel;
pub mod serve;
pub mod state;
