//! The probe on directories that stand for machines.

#![expect(clippy::unwrap_used, reason = "what a test stands on must be there")]

mod disks;
mod hibernation;
mod kernel;
mod kubelet;
mod machine;
mod others;
mod surroundings;
