//! Disk latency by class, a verdict on each disk, the comparison of settings, and the decisions of a governor that throttles writers when reads
//! starve. The program `eke-io` (crate `eke-iod`) measures by BPF and governs; `eke` uses this crate alone and links no libbpf.
//!
//! # Layout
//! - [`class`], [`counters`]: measurements as data; pure
//! - [`sensor`]: measures, from the kernel's averages or in a process `eke-io`
//! - [`knobs`]: settings by the names that people know; [`target`]: the latency that reads should have
//! - [`verdict`]: what is wrong with a disk, and which process causes it
//! - [`compare`]: a setting at several values under the same load
//! - [`governor`]: when to throttle writers; pure
//!
//! # Design
//! - *Windows*: per-CPU histograms in powers of two for each disk and class, with exact sums and squares; whole, queue and device time apart. Time
//!   before a request exists (waiting for a free tag, or in the writeback throttle) is in none. Without BPF: `/sys/block/*/stat`, averages. ZFS:
//!   `zpool iostat -wHp`. `eke` requests windows as JSON from a process `eke-io sense`.
//! - *Verdict* is pure: the disk's window, CPU pressure, time of compressing kernel threads, and the writers (`/proc/PID/io`, since the kernel itself
//!   submits the requests of writeback).
//! - *Comparison*: runs A B A B of a load; differences of pairs with a seeded bootstrap. At most one change is in the journal at any time.
//! - *Governor* is pure, one for each disk. A window is longer than three times the latency and has enough reads. Unknown is not good, and no answer
//!   is bad: io.cost had both errors, and `tests/` replays their traces. It halves after three bad windows and raises by an eighth after six good
//!   ones; each raise that went wrong doubles that number. It judges each change by what writers keep and reads gain. Writeback comes in bursts,
//!   so a loss counts only beyond the standard error of the windows, or after twenty of them. On giving up it restores the last setting that
//!   helped.

pub mod class;
pub mod compare;
pub mod counters;
pub mod governor;
pub mod knobs;
pub mod pays;
pub mod sensor;
pub mod target;
pub mod verdict;

pub use eke_model::histogram::{self, Histogram};

pub use class::{Class, Mode, Operation};
pub use counters::{Device, Latency, Window};
