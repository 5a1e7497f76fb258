//! Prefetch: traces and learns launches, and reads what the next ones will need. Decisions are made in `eke-prefetch-model`, learned programs are
//! stored by `eke-prefetch-store` and shown by `eke-prefetch-learned`, disks are measured by `eke-prefetch-disk`; this crate acts.
//!
//! ```text
//! trace ─> live ─> probe ─> choose ─> schedule ─> read
//! ```
//!
//! # Layout
//! - [`trace`]: traces execs, exits and pages
//! - [`live`]: the process `eke-prefetch`: its loop, and the pipeline of four stages
//! - [`probe`]: checks whether a program's files are resident: from a program to a [`Residency`](probe::prober::Residency)
//! - `choose`: selects what to read: from candidates to [`ReadRequest`](request::ReadRequest)s
//! - [`schedule`]: orders and paces reads: from requests to [`Job`](read::Job)s of device queues
//! - [`read`]: worker threads: from jobs to a [`FetchReport`](read::FetchReport)
//! - [`request`]: the data that stages pass on; [`file`]: one file of a request; `reclaim`: what reclaim of memory takes from programs;
//!   `group_memory`: what control groups let a process have; `owners`: who has subordinate users
//!
//! # Design
//! - *One process*, as root, started and supervised by the agent, so that a hanging read (a dead NFS server) blocks neither the agent nor the loop.
//!   Only workers open files; a stuck worker is abandoned, and their number is bounded.
//! - *Events carry inodes and names.* Paths come from the kernel's dentries; learning opens nothing. Page tracers are attached only while a launch is
//!   learned, so pages of its first milliseconds are known only if they are mapped. Exec and exit are cheap and always traced.
//! - *Read-ahead is not need*, but madvise(2) and readahead(2) are: a launch waits for them (LibreOffice requests 96 MB and touches 55).
//! - *Large folios*: from Linux 6.18 a fault maps all of a large folio without a tracepoint. BPF looks the folio up in the page cache and counts it
//!   as touched. A folio that fills a page table reports nothing, so its arrival counts.
//! - *An exec of a running program is no launch*: browsers execute themselves for each tab. An exec of another program always is one, also within a
//!   launch that is recorded: a wrapper must not have its program's pages. A page counts for the launch of the process that touches it.
//! - *A tracer is tested* at its start: it must report a test program. Otherwise (in a container) the next method is used, and `eke status` names it.
//! - *Reading ahead* uses the idle class. Every 20 ms a gate closes, requests drain, and the disk's counters show the I/O of others; they are exact
//!   only between our own reads. Reading at exec uses the normal class, without a gate.
//! - *Most launches are warm*, so detecting one is cheap: a residency probe of a few files (cachestat(2) or mincore(2), 0.3 ms) before reading the
//!   store. No answer within 4 ms means that paths are looked up on a disk: cold. A file counts as missing if an eighth of the probed pages is.
//! - *Disk order*: at exec, the arm of a rotating disk crosses it once, with many reads in flight. Workers submit in disk order and wait in parallel.
//!   Large files come after the small ones, so that the program can work with these meanwhile.
//! - *Root's reads are harmless*: a file is compared through an O_PATH descriptor before it is opened, so that a FIFO or a device in its place is not
//!   touched.

mod choose;
pub mod file;
mod group_memory;
pub mod live;
mod owners;
pub mod probe;
pub mod read;
mod reclaim;
pub mod request;
pub mod schedule;
pub mod trace;
