//! Compressed swap: zram, or zswap in front of a disk, chosen by measurement.
//!
//! # Layout
//! - [`facts`]: what a machine has and lacks for swap, as data
//! - [`probe`]: those facts from a [`eke_linux::Root`]; reads only
//! - [`measure`]: what compression gives on this machine's own pages, and what its disks take
//! - [`decide`]: from facts and figures to a plan; pure
//! - [`remedy`]: probing and measuring on the real machine, with scratch devices that stand in the journal
//! - [`live`]: what the agent does while a plan is applied
//! - [`error`]: what can go wrong in the two stages that touch the machine
//!
//! Invariants: the pages that are sampled are never written anywhere but to a scratch zram device; what is measured
//! leaves no device behind, on any path; nothing here knows another remedy.

pub mod decide;
pub mod error;
pub mod facts;
pub mod live;
pub mod measure;
pub mod probe;
pub mod remedy;

pub use error::{Error, Result};
pub use remedy::Swap;
