//! The governor: holds writers back when reads starve, and lets them go again. Pure; [`crate::live`] acts.
//!
//! - [`rules`]: its figures; [`tuned_knob`]: a knob that it may change; [`observe`]: what it goes by
//! - [`writers`]: what a change left them; [`decide`]: what it does next
//!
//! Multiplicative decrease and additive increase of what writers get, as the kernel's own loops have it (block/blk-wbt.c, kyber), with
//! what these learned: a period that is shorter than the answers take tells nothing (Linux commit 7afcccafa59f), and a period in which
//! nothing is answered is not a good one (f91ffe89b201). No PID: the actuator is a small whole number, and the noise has heavy tails.

pub mod decide;
pub mod observe;
pub mod rules;
pub mod tuned_knob;
pub mod writers;

pub use decide::{Change, Governor, Why};
pub use observe::Observation;
pub use rules::Rules;
pub use tuned_knob::TunedKnob;
