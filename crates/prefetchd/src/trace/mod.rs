//! Tracing: execs and exits always, and the pages of chosen launches while they are recorded.
//!
//! # Layout
//! - [`method`]: the interface of all methods; [`tracer`]: selects the best one here
//! - [`watch`]: a tracer together with a learner
//! - `bpf` (feature `bpf`): loads, attaches and reads the programs of `bpf/launch.bpf.c`; [`record`]: their records
//! - [`plain`]: without BPF, from the kernel's process events ([`connector`], [`proc_event`]), opened programs ([`exec_opens`]) or polls of `/proc`
//!   ([`scan`]), and mapped pages
//! - `script_path`: the host's path of a script that was given as another namespace has it
//! - `self_test`: tests whether a tracer reports anything here
//! - [`mount_index`], [`pagemap`]: pure; [`mounts`], [`mapped`], [`process`]: read their input; [`memory_files`]: reads what a process's own lock guards;
//!   `lookup`: what is at a path that a user chose
//!
//! Learning opens no file. If the kernel does not report a file's state, fstat(2) of an O_PATH descriptor does, except on network file systems and
//! FUSE, which may never answer.

#[cfg(feature = "bpf")]
mod bpf;
pub mod connector;
pub mod exec_opens;
mod lookup;
pub mod mapped;
pub mod memory_files;
pub mod method;
pub mod mount_index;
pub mod mounts;
pub mod pagemap;
pub mod plain;
pub mod proc_event;
pub mod process;
pub mod record;
pub mod scan;
pub mod script_path;
mod self_test;
pub mod tracer;
pub mod watch;

pub use eke_prefetch_model::source::{Source, TraceMethod};
pub use method::{OthersReads, Trace, TraceError};
pub use tracer::{Tracer, available};
pub use watch::{Observation, TraceListener, Watch};
