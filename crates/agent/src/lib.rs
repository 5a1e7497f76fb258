//! The agent: samples the machine at every tick, maintains what `eke up` applied, and answers on a Unix socket.
//!
//! One thread, one `poll(2)` loop: the socket, its clients, a trigger of the kernel's pressure-stall information, the
//! time of the next tick, and the descriptor that a signal makes readable. Everything is given to [`run::run`] from
//! outside, so tests run a whole agent on a made-up root and a socket of their own.
//!
//! # Layout
//! - [`mod@run`]: the loop
//! - [`watch`]: what a tick does: sample, model, live decisions, snapshot
//! - [`adopt`]: what an earlier `eke up` applied and is still in force
//! - [`check`]: the plan's prediction beside what happens
//! - [`child_service`]: `eke-prefetch`, a process of its own, so that what hangs there does not hang here
//! - [`events`]: what the agent did or noticed, the newest few
//! - [`request`]: one line of a client: what it asks and whether it may
//! - [`client`] and [`clients`]: bounded buffers, bounded time, a bounded number, for each user too
//! - [`limits`]: how often a user is answered. Pure
//! - [`socket`] and [`lock`]: where clients connect; one agent a machine
//! - [`pressure`]: the trigger that wakes the agent before its tick
//! - [`protect`]: out of the OOM killer's and of reclaim's reach
//! - [`clock`]: the time, as a trait
//! - [`error`]: why the agent does not start
//!
//! Invariants: leaving, however it happens, reverts nothing; no client can stall the agent or make it grow; between
//! ticks nothing is done that nobody asked for.

pub mod adopt;
pub mod check;
pub mod child_service;
pub mod client;
pub mod clients;
pub mod clock;
pub mod error;
pub mod events;
pub mod limits;
pub mod lock;
pub mod pressure;
pub mod protect;
pub mod request;
pub mod run;
pub mod socket;
pub mod watch;

pub use error::{Error, Result};
pub use run::{Ended, run};
