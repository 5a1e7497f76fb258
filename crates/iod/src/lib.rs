//! The program `eke-io`: measures disk latency by BPF, and governs writers. Decisions and data are in `eke-io`, which needs no libbpf.
//!
//! - [`sensor`]: measures by BPF, or from the kernel's averages with the reason; `bpf`: the programs of `bpf/latency.bpf.c`
//! - [`cost`]: the CPU time of measuring
//! - [`govern`]: the process that throttles writers
//!
//! The governor's process runs beside the agent. At its start it undoes what a killed one left; values that somebody else set it leaves alone.

#[cfg(feature = "bpf")]
pub mod bpf;
pub mod cost;
pub mod govern;
pub mod sensor;
