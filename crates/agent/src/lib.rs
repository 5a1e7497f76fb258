//! The agent: samples the machine at every tick, maintains what `eke up` applied, and answers on a Unix socket.
//!
//! One thread runs one `poll(2)` loop over the socket, its clients, a pressure-stall trigger of the kernel, the time of
//! the next tick, and the descriptor that a signal makes readable. All of these are arguments of [`run::run`], so tests
//! run a whole agent on a simulated root with a socket of its own.
//!
//! # Layout
//! - [`mod@run`]: the loop
//! - [`watch`]: one tick: sample, model, live decisions, snapshot
//! - [`adopt`]: what an earlier `eke up` applied and is still in force
//! - [`check`]: compares the plan's prediction with the machine
//! - [`child_service`]: `eke-prefetch` and `eke-io` as processes of their own, so that a hang there does not stop the
//!   agent
//! - [`training`]: the process that trains a dictionary anew
//! - [`events`]: the newest actions and observations of the agent, and which programs the guard ended
//! - [`request`]: decodes and authorizes one line of a client
//! - [`client`] and [`clients`]: bounded buffers, deadlines, and a bounded number of clients, in total and per user
//! - [`aside`]: closes connections in which descriptors of a client wait
//! - [`limits`]: the rate of answers per user. Pure
//! - [`socket`] and [`lock`]: where clients connect; one agent per machine
//! - [`pressure`]: the trigger that wakes the agent before its tick
//! - [`protect`]: keeps the agent from the OOM killer and from reclaim
//! - [`clock`]: the clocks, as a trait
//! - [`error`]: why the agent does not start
//!
//! Invariants: no exit reverts anything, but what the guard ([`eke_guard`]) stopped for a moment continues; no client can stall the agent or make it grow; between ticks the agent acts
//! only on requests.

pub mod adopt;
pub mod aside;
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
pub mod training;
pub mod watch;

pub use error::{Error, Result};
pub use run::{Ended, run};
