//! Compressed swap: zram, or zswap in front of a disk, chosen by measurement.
//!
//! # Layout
//! - [`facts`]: facts about a machine and its swap, as data
//! - [`probe`]: reads those facts from a [`eke_linux::Root`]
//! - [`measure`]: ratio and latency of compression on this machine's own pages, and latency of its disks
//! - [`decide`]: from facts and measurements to a plan; pure
//! - [`remedy`]: probes and measures the real machine, with journaled scratch devices
//! - [`retrain`]: a new dictionary when the data has changed
//! - [`live`]: maintenance by the agent while a plan is applied
//! - [`error`]: failures of probing and measuring
//!
//! Invariants: sampled pages are written to scratch zram devices alone; a measurement leaves no device, on any path; nothing here knows another
//! remedy.
//!
//! # Design
//! zram is a module on most distributions. Loading it is a step like any other, for the measurement too.
//!
//! - *Sampling* copies resident anonymous pages, spread over processes by their anonymous size, into locked memory that is wiped when dropped. They leave
//!   the process only for a scratch zram device in RAM. Each algorithm and level gets such a device (journaled), page by page with O_DIRECT, timed, read back
//!   at random and compared. Algorithms that only zswap offers are measured in user space and marked as estimated.
//! - *Back end*: swap of half of RAM on a durable disk → zswap in front of it; less, or a card that wears out → zram; another program's zram → adopted.
//! - *Algorithm*: the highest ratio within two budgets, load p99 (250 µs, that of a good SSD, or a quarter of a file read) and CPU (20 % while 1 % of
//!   RAM, at most 5,000 pages of 4 KiB, goes each way in a second). Of two within 3 % the faster one.
//! - *Size*: share of RAM for the pool × conservative ratio. `mem_limit` is not used: above it zram answers -ENOMEM, the kernel logs write errors and keeps
//!   the page (zram_drv.c). So the declared size is the cap, and the conservative ratio bounds its cost.
//! - *Maintenance*, by the agent, on devices that eke made by the journal: mark idle → recompress (`huge_idle`, `idle`; one explicit priority a call) →
//!   write back (`huge_idle`, then `huge` above 85 % fill). One round at a time, 30 s apart, 2 to 128 MiB by the duration of the last one. If the
//!   kernel marks only "all", marks age first, except on a nearly full device. Idle age follows ChromeOS' curve.
//! - *The gate* must have been open for 30 s. It closes when tasks wait for memory (PSI some avg10), anonymous pages are reclaimed, the CPU is busy, or the
//!   machine is on battery. File refaults close nothing.
//! - *The wear ledger* (`/var/lib/eke/wear.json`): the maximum that a round may write is entered before the round and corrected from `bd_stat` after it.
//!   A crash counts too much, never too little.
//! - *Growth*: above 85 % fill, while the pool at its real ratio is below its share, and after maintenance (at 95 % at once). A further device, journaled,
//!   one priority lower.
//! - *Retraining*: while stored pages compress a tenth worse than the dictionary was chosen for, for an hour, and at most once a day, a child of the agent
//!   compares a new dictionary with the one in use. If it gains, a device with it gets a higher priority; the older one goes in calm, when its pages fit
//!   into unused memory.

pub mod decide;
pub mod error;
pub mod facts;
pub mod live;
pub mod measure;
pub mod probe;
pub mod remedy;
pub mod retrain;

pub use error::{Error, Result};
pub use remedy::Swap;
