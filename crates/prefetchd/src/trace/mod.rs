//! Tracing: execs and exits always, and the pages that chosen launches touch while they are learned.
//!
//! # Layout
//! - [`way`]: what all ways of tracing have in common; [`tracer`]: the best one here
//! - [`watch`]: a tracer and a learner together
//! - `bpf` (feature `bpf`): the programs of `bpf/launch.bpf.c`, loaded, attached, read; [`record`]: what they send; `btf`: what
//!   the kernel lets them see
//! - [`plain`]: without BPF, by the kernel's process events ([`connector`], [`proc_event`]) or looks at `/proc` ([`scan`]), and mapped pages
//! - `hears`: whether a tracer sees what happens here at all
//! - [`places`], [`maps`]: pure; [`mounts`], [`mapped`], [`process`]: what they are read from
//!
//! Nothing here opens a file to learn of it. Where a file's state is not told by the kernel it is looked at (stat), but not on network
//! file systems and FUSE, which may never answer.

#[cfg(feature = "bpf")]
mod bpf;
pub mod connector;
mod hears;
pub mod mapped;
pub mod maps;
pub mod mounts;
pub mod places;
pub mod plain;
pub mod proc_event;
pub mod process;
pub mod record;
pub mod scan;
pub mod tracer;
pub mod watch;
pub mod way;

pub use eke_prefetch_model::source::{Source, Way};
pub use tracer::{Tracer, available};
pub use watch::{Listen, News, Watch};
pub use way::{Refused, Trace};
