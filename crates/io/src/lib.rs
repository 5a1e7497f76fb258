//! Disk latency by class, what it is caused by, and a governor that keeps reads alive under writers.
//!
//! # Layout
//! - [`class`], [`figures`]: what is measured, as data; pure
//! - [`sense`]: how it is measured
//! - [`knobs`]: settings by the names that people know; [`target`]: how fast reads should be
//! - [`verdict`]: what is the matter, and who causes it
//! - [`compare`]: a setting at several values under the same load
//! - [`governor`]: what holds writers back; [`live`]: the process that does it
//!
//! # Design
//! - *Sensor*: per-CPU histograms in powers of two for each disk and class, with exact sums and squares; whole, queue and device time apart. Waiting before
//!   a request exists (a free tag, the writeback throttle) is in none. Without BPF: `/sys/block/*/stat`, averages. ZFS: `zpool iostat -wHp`. `eke` asks a process
//!   (`eke-io sense`) for windows as JSON, so that it has no libbpf.
//! - *Verdict* is pure: the disk's window, CPU pressure, time of compressing kernel threads, and the writers (`/proc/PID/io`, since writeback's own requests are
//!   the kernel's).
//! - *Comparison*: runs A B A B of a load; differences of pairs with a seeded bootstrap. At most one change is in the journal at any time.
//! - *Governor* is pure, one for each disk. A window is longer than three times the latency and has enough reads. Unknown is not good, and no answer is bad: two
//!   errors that io.cost had, as replayed traces in `tests/`. It halves after three bad windows and raises by an eighth after six good ones, twice as many after
//!   each raise that went wrong. It judges each change by what writers keep and reads gain. Writeback comes in bursts, so a loss counts only beyond the
//!   standard error of the windows, or after twenty of them. On giving up it restores the last setting that helped.
//! - *The process* runs beside the agent. At its start it undoes what a dead one left, and leaves other values alone.
//! - *Requests in flight* sit in an array by their tag, whose lookups the JIT inlines; only collisions go to a hash.

pub mod class;
pub mod compare;
pub mod figures;
pub mod governor;
pub mod knobs;
pub mod live;
pub mod sense;
pub mod target;
pub mod verdict;

pub use eke_model::histogram::{self, Histogram};

pub use class::{Class, Mode, Operation};
pub use figures::{Device, Latency, Window};
