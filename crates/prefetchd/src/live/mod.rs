//! The process `eke-prefetch`: watches launches, learns them, predicts the next ones, and runs the pipeline for them.
//!
//! ```text
//! trace::Watch ─ events ─> running ─> predict ─ chances ─┐
//!      │                                                 ├─> probe ─> choose ─> schedule ─> read
//!      └─ launches ─> learn::unite ─> store ─ file sets ─┘
//! ```
//!
//! # Layout
//! - [`options`]: the settings and options of a run; [`error`]: why it ends
//! - [`process`]: the loop; [`events`]: what it does with each event; [`pipeline`]: the two occasions of reading; [`once`]: `eke-prefetch ahead PROGRAM...`
//! - [`launches`], [`ahead`]: the running fetches; [`reads`]: both, and what they cost
//! - [`due`]: when reads ahead are chosen (pure)
//! - [`running`]: which programs run, from their processes (pure); [`people`]: which users are people (pure);
//!   [`background`]: which processes are no person's doing; [`log_ins`]: who logs in (pure); [`last_starts`]: which starts are those of a loop (pure)
//! - [`starting`]: what programs read while they start (pure); [`starters_group`]: what a starter's control group lets eke read
//! - [`learned`]: what becomes of a recorded launch; [`private`]: which files the store may not name
//! - [`changed`]: which programs are learned again because their files have changed, and what is gone
//! - [`outdated`]: which programs are forgotten, because they were removed or upgraded; [`removed`]: looks for removed ones
//! - [`wrappers`]: which programs only start others
//! - [`pending`]: pages that were read ahead and not used yet (pure)
//! - [`effect`]: starts that are left alone, to measure what the others gain
//! - [`library`]: the store, or its copy in memory while it cannot be written
//! - [`heap`]: returns heap memory after a burst; [`clock`]: the clock, as a trait
//! - [`notice`]: notices for users, as lines of JSON
//!
//! One thread does everything except what may wait: probing, reading, arguments and mappings of processes, and the search for removed programs. It opens no
//! user's file.

mod ahead;
mod background;
mod changed;
mod clock;
mod due;
mod effect;
mod error;
mod events;
mod heap;
mod last_starts;
mod launches;
mod learned;
mod library;
mod log_ins;
mod notice;
mod once;
mod options;
mod outdated;
mod pending;
mod people;
mod pipeline;
mod private;
mod process;
mod reads;
mod removed;
mod running;
mod starters_group;
mod starting;
mod wrappers;

pub use clock::{Clock, SystemClock};
pub use error::Error;
pub use notice::{Notice, Notify};
pub use once::ahead as ahead_once;
pub use options::Options;
pub use process::run;
