//! Prefetch: launches are traced and learned, and what the next ones will read is read before they ask. What is decided is in
//! `eke-prefetch-model`, what was learned in `eke-prefetch-store`; here is what acts.
//!
//! ```text
//! trace ─> live ─> probe ─> choose ─> schedule ─> read
//! ```
//!
//! # Layout
//! - [`trace`]: what sees execs, exits and pages
//! - [`live`]: the process `eke-prefetch`: its loop, and the pipeline of the four stages
//! - [`probe`]: are a program's files resident? From a program to a [`Residency`](probe::prober::Residency)
//! - `choose`: what to read. From candidates to [`ReadRequest`](request::ReadRequest)s
//! - [`schedule`]: in which order, and when. From requests to [`Job`](read::Job)s of device queues
//! - [`read`]: worker threads. From jobs to a [`Report`](read::Report)
//! - [`request`]: what the stages pass on; [`file`]: one file of a request
//! - [`disk`]: which disk is below a file system, and what it is like, measured
//! - `io_class`: a thread's I/O class
//!
//! # Design
//! - *One process*, root, started and supervised by the agent, so that a read that hangs (a dead NFS server) blocks neither the agent nor the loop. Only
//!   workers open files; a stuck worker is abandoned, in bounded number.
//! - *Events carry inodes and names.* Paths come from the kernel's dentries; nothing is opened to learn. Page tracers are attached only while something is
//!   learned, so the first milliseconds of a launch are known only as far as they are mapped. Exec and exit are cheap and always traced.
//! - *Read-ahead is not need*, but madvise(2) and readahead(2) are: a launch waits behind them (LibreOffice asks for 96 MB and touches 55).
//! - *Large folios*: from Linux 6.18 a fault maps all of a large folio without a tracepoint. BPF looks the folio up in the page cache and counts it as
//!   touched. A folio that fills a page table reports nothing at all; its arrival counts.
//! - *An exec of a running program is no launch*: browsers execute themselves again for each tab.
//! - *A tracer is tested*: at its start it must report a test program. Otherwise (in a container) the next source is taken, and `eke status` names it.
//! - *Fetching ahead* is idle class. Every 20 ms a gate shuts, requests drain, and the disk's counters show what others do; only between our own reads are they
//!   exact. At exec it is normal class, without a gate.
//! - *Warm launches* are the rule, so detecting one is cheap: a residency probe of a few files (cachestat(2) or mincore(2), 0.3 ms) before the store is
//!   asked. No answer within 4 ms means that paths are looked up on a disk: cold. A file counts as missing if an eighth of the probed pages is.
//! - *Disk order*: at exec, a disk with an arm is crossed once, with many reads in flight. Workers submit in disk order and wait in parallel; large files come
//!   after the small ones, so that the program works with these meanwhile.
//! - *Root's reads are harmless*: a file is compared through a descriptor that opens nothing before it is opened, so that a FIFO or a device in its place is
//!   not touched.

mod choose;
pub mod disk;
pub mod file;
mod io_class;
pub mod live;
pub mod probe;
pub mod read;
pub mod request;
pub mod schedule;
pub mod trace;
