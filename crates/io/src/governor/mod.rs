//! The governor throttles writers when reads starve, and releases them again. Pure; the crate `eke-iod` acts.
//!
//! - [`rules`]: thresholds; [`tuned_knob`]: a knob that it may change; [`observe`]: a disk in a time
//! - [`throughput`]: what a change leaves of it; [`decide`]: the next change
//!
//! Multiplicative decrease and additive increase, as in the kernel's own loops (block/blk-wbt.c, kyber), with two of their lessons: a period
//! shorter than the latency shows nothing (Linux commit 7afcccafa59f), and a period in which nothing completes is bad (f91ffe89b201). No PID
//! controller: the actuator is a small whole number, and the noise has heavy tails.

pub mod decide;
pub mod observe;
pub mod rules;
pub mod throughput;
pub mod tuned_knob;

pub use decide::{Change, ChangeKind, Governor};
pub use observe::Observation;
pub use rules::Rules;
pub use tuned_knob::TunedKnob;
