//! Fourth stage: worker threads do the jobs of a device queue, in its order, and say what came of each.
//!
//! # Layout
//! - [`job`]: the input, as data; [`report`]: the output, as data
//! - `queue`: jobs that wait, workers that are busy, and what came of it; the scheduler and the workers share it
//! - `worker`: a thread that opens files: the only kind that may hang; `stuck`: which ones do, and on which mounts
//! - `files`: open files; [`pread`]: one piece, one directory; `extents`: where a file lies on the disk

mod extents;
mod files;
pub mod job;
pub mod pread;
mod queue;
pub mod report;
mod stuck;
mod worker;

pub(crate) use files::Files;
pub use job::{DeviceQueue, Extent, Job, MountedRequest, Piece};
pub(crate) use queue::{Gate, Hanging, JobQueue, Standing};
pub use report::{Ended, Failure, Report};
pub use stuck::StuckWorkers;
pub(crate) use worker::Worker;
