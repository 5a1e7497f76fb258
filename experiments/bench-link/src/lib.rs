//! `eke bench link`: the cipher that `eke link` chooses beside every one that is allowed, measured exhaustively.
//!
//! The study's table ("thin client with an Atom 330: AES128-CTR 30 MB/s, RC4 45, without encryption 110") with today's ciphers: two
//! network namespaces joined by a veth pair of a given rate, an ssh server in the far one, ssh in the near one on a CPU that is as it is,
//! without AES instructions, or small.
//!
//! ```text
//! near: { ssh: OPENSSL_ia32cap, CPU quota } ── veth, tbf ── far: { sshd }
//! ```
//!
//! - [`plan`]: links, CPUs, settings (pure)
//! - [`net`]: the namespaces and the link between them; [`server`]: the ssh server; [`near`]: ssh on a smaller CPU, calibrated
//! - [`trial`]: every cipher in one setting, then eke's choice
//! - [`x11`]: a moving picture through `ssh -Y`; [`picture`]: its client
//! - [`verdict`]: is eke's choice among the best? (pure); [`report`]: the table (pure)
//!
//! Nothing stays: namespaces, the group and the server's directory have names that say their owner, and the next experiment sweeps them.

pub mod error;
mod hold;
pub mod near;
pub mod net;
pub mod picture;
pub mod plan;
pub mod report;
pub mod server;
pub mod trial;
pub mod verdict;
pub mod x11;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use eke_linux::Root;
use eke_present::progress::Progress;

pub use error::Error;
pub use hold::run;
use plan::{Cpu, Rate};

/// What the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Shorter slices.
    pub quick: bool,
    /// Slices of each cipher and way.
    pub rounds: usize,
    /// How often eke decides in each setting.
    pub repeats: usize,
    /// Also the X session.
    pub x11: bool,
    /// The links.
    pub links: Vec<Rate>,
    /// The CPUs.
    pub cpus: Vec<Cpu>,
}

/// The experiment's surroundings.
pub struct Bench<'a> {
    /// The machine.
    pub root: &'a Root,
    /// `eke`.
    pub program: PathBuf,
    /// What the user asks for.
    pub options: Options,
    /// The command line that makes it again.
    pub command: String,
    /// Who shows how far it is.
    pub progress: &'a dyn Progress,
    /// Set by a signal.
    pub shutdown: &'a AtomicBool,
}
