//! The process `eke-prefetch`: sees launches, keeps what they read, predicts the next ones, and runs the pipeline for them.
//!
//! ```text
//! trace::Watch ─ events ─> running ─> predict ─ chances ─┐
//!      │                                                 ├─> probe ─> choose ─> schedule ─> read
//!      └─ launches ─> learn::unite ─> store ─ file sets ─┘
//! ```
//!
//! # Layout
//! - [`options`]: the settings and options of a run; [`error`]: why it ends
//! - [`process`]: the loop; [`pipeline`]: the two occasions of reading; [`once`]: `eke-prefetch ahead PROGRAM...`
//! - [`launches`], [`ahead`]: the fetches that are under way
//! - [`running`]: which programs run, by their processes (pure)
//! - [`pending`]: what was read ahead and has not been used yet (pure)
//! - [`library`]: what was learned, in a store or, without one, in memory
//! - [`heap`]: gives back what a burst took
//! - [`notice`]: what users are notified of, as lines of JSON
//!
//! One thread does all but probing and reading; nothing in it opens a user's file.

mod ahead;
mod clock;
mod error;
mod heap;
mod launches;
mod library;
mod notice;
mod once;
mod options;
mod pending;
mod pipeline;
mod process;
mod running;

pub use clock::{Clock, SystemClock};
pub use error::Error;
pub use notice::{Notice, Notify};
pub use once::ahead as ahead_once;
pub use options::Options;
pub use process::run;
