//! A *session*: what a person at a small machine does, said as data, done by a driver and told event by event.
//!
//! The driver (`eke lab session SPEC`) is a process in the box, or in the small machine: it prints one [`event::Event`] a
//! line and flushes, so that what happened before it was killed is known. What is measured is the same in both places.
//!
//! - [`spec`]: what is to be done
//! - [`event`]: what happened
//! - [`figures`]: from that to figures (pure)
//! - [`run`]: a session in a box, heard while it runs

pub mod event;
pub mod figures;
pub mod run;
pub mod spec;

pub use event::{End, Event, Held};
pub use spec::{Act, Ballast, Spec};
