//! Experiments in little memory: `eke bench paging`, `switch` and `capacity`.
//!
//! ```text
//! documents on a test image ─> calibration with memory to spare ─> rounds of variants ─> events ─> rows ─> Report
//!                                                          │
//!     ArrangedMachine::apply(Arrangement) ─> box { eke-bench lab session SPEC } ─> ArrangedMachine::restore
//! ```
//!
//! - [`paging`], [`switch`], [`capacity`]: the experiments
//! - [`guard`]: who keeps a machine usable when its memory ends, in the small machine
//! - [`experiment`]: what experiments in a box share
//! - [`study`]: the results beside those of the study of 2008
//! - [`guest`]: a session in the small machine, with each peer by its own package where that runs
//!
//! A session is data: a `Spec` (documents to open, pages, switches) goes to a driver as JSON. The driver answers with one `Event` per line
//! and flushes each, so events before a kill are known. The drivers of windows and of browser tabs send the same events, in a box and in the
//! small machine.
//!
//! A page counts as drawn when the window's pixels have the hash that they had in the calibration. The driver runs in the box, with its own
//! memory locked: only the desktop's programs wait.
//!
//! The disk is mounted anew before each run, so it is cold, and the box is charged for its page cache. `eke-bench` serves the slow disk from
//! outside the box.

pub mod capacity;
pub mod experiment;
pub mod guard;
pub mod guest;
pub mod paging;
pub mod study;
pub mod switch;
