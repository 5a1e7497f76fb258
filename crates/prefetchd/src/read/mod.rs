//! Fourth stage: worker threads do the jobs of a device queue in order, and report the results.
//!
//! # Layout
//! - [`job`]: the input, as data; [`report`]: the output, as data
//! - `queue`: pending jobs, busy workers and results, shared by the scheduler and the workers
//! - `worker`: a thread that opens files, the only kind that may hang; `stuck`: the hanging workers and their mounts
//! - `files`: open files; [`pread`]: reads a piece or a directory; `extents`: the extents of a file

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
pub(crate) use queue::{Gate, Hanging, JobQueue, Pace, QueueStatus};
pub use report::{Failure, FetchEnd, FetchReport};
pub use stuck::StuckWorkers;
pub(crate) use worker::{Worker, cpu_time};
