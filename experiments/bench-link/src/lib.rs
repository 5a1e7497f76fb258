//! `eke bench link`: compares the cipher that `eke link` chooses with every allowed cipher, measured exhaustively.
//!
//! It repeats the study's table ("thin client with an Atom 330: AES128-CTR 30 MB/s, RC4 45, without encryption 110") with today's ciphers.
//! A veth pair of a given rate joins two network namespaces: sshd runs in the server's, ssh in the client's. The client's CPU is this
//! machine's, has no AES instructions, or is slow.
//!
//! ```text
//! client: { ssh: OPENSSL_ia32cap, CPU quota } ── veth, tbf ── server: { sshd }
//! ```
//!
//! - [`plan`]: links, CPUs, settings (pure)
//! - [`net`]: the namespaces and the link between them; [`server`]: the ssh server; [`client`]: ssh on a slower CPU, calibrated
//! - [`trial`]: measures every cipher in one setting, then lets eke choose
//! - [`x11`]: a moving picture through `ssh -Y`; [`picture`]: its client
//! - [`verdict`]: whether eke's choice is among the best (pure); [`report`]: the table (pure)
//!
//! The slow CPU is a group with a part of one CPU, found by measuring AES128-CTR until it has the study's 30 MB/s. All allowed ciphers are
//! measured over connections that are open at the same time. eke chooses by the code of `eke link`, through the same ssh; the lower
//! end of the ratio's 95 % interval decides whether its choice is among the best. The X server belongs to the client; sshd's displays begin at 700, since all of root's
//! share a file of keys.
//!
//! Namespaces, the group and the server's directory are removed at the end. Their names contain their owner, so the next experiment
//! removes those of killed ones.

pub mod client;
pub mod error;
mod experiment;
pub mod net;
pub mod picture;
pub mod plan;
pub mod report;
pub mod server;
pub mod trial;
pub mod verdict;
pub mod x11;

pub use error::Error;
pub use experiment::Link;
use plan::{Cpu, Rate};

/// The user's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether to use shorter slices.
    pub quick: bool,
    /// Slices of each cipher in each direction.
    pub rounds: usize,
    /// How often eke decides in each setting.
    pub repeats: usize,
    /// Whether to measure the X session too.
    pub x11: bool,
    /// The links.
    pub links: Vec<Rate>,
    /// The CPUs.
    pub cpus: Vec<Cpu>,
}
