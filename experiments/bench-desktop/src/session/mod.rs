//! A *session*: what a person at a small machine does, described as data. A driver does it and reports each event.
//!
//! The driver (`eke lab session SPEC`) is a process in the box, or in the small machine. It prints one [`event::Event`] a line
//! and flushes, so the events before a kill are known. Both places measure the same.
//!
//! - [`spec`]: the acts of a session
//! - [`event`]: its events
//! - [`metrics`]: metrics from events (pure)
//! - [`run`]: runs a session in a box and reads its events

pub mod event;
pub mod metrics;
pub mod run;
pub mod spec;

pub use event::{End, Event, MemoryUse};
pub use spec::{Act, Ballast, Spec};
