//! What all experiments share.
//!
//! ```text
//! options ─ set_up ─> Fixture ─ plan ─> runs ─ prepare, measure ─> Results ─ report ─> Report ─> table, page, JSON
//! ```
//!
//! # Layout
//! - [`experiment`]: the trait of all experiments; [`runner`]: plans, measures, reports; [`environment`]: what it needs
//! - [`variants`]: today's tools and eke, and how each is arranged on the machine
//! - [`test_image`]: programs and documents on a slow disk
//! - [`cache`]: the directory that keeps images for the next run
//! - [`command`]: programs of the host; [`fault`]: errors of all experiments
//! - [`disk_reads`]: reads of a disk; [`kept`]: measurements of an interrupted experiment
//! - [`process`]: CPU time and memory of one process
//!
//! # Rules
//! - A plan, the metrics and the report are pure. Fixtures and runs act, in one order up and in the reverse order down.
//! - A report is rows of samples, by variant, metric and conditions. Table and page are made from it alone, so `eke bench show` needs
//!   nothing else. `docs/results` has such reports; a test reads each of them and its command.
//! - A plan has every variant once per round. Rounds begin with different variants where a run can affect the next one.
//! - Peers are data, with the source of each value. eke's variant is its real plan, decided from a measurement, with the box as the machine.
//!   A variation is that plan with one thing changed. A variation without effect is left out, with a note.
//! - Nothing stays. The journal restores settings. Groups, test images and slow disks have their owner in their names
//!   (`LABEL-PID-START`), so the next experiment and `eke down` remove those of killed ones. Processes end with their parent
//!   (`PR_SET_PDEATHSIG`).
//! - A process that serves a slow disk does not read from that disk in a thread of its own: nothing could kill it while the thread waits.
//!   A mount namespace that copied a mount of the disk keeps it busy, so the file server's connection is cut off at the end.

pub mod cache;
pub mod command;
pub mod disk_reads;
pub mod environment;
pub mod experiment;
pub mod fault;
pub mod kept;
pub mod process;
pub mod runner;
pub mod settings;
pub mod test_image;
pub mod variants;

pub use environment::Environment;
pub use experiment::{Experiment, OnFailure, Results, shuffled};
pub use runner::{Failure, run};
