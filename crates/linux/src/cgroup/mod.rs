//! Control groups: which version the machine has, which process owns a group of eke's, and which group is at its limit.

use serde::{Deserialize, Serialize};

pub mod limit;
pub mod name;

/// The cgroup version that has the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hierarchy {
    /// `sys/fs/cgroup/memory`.
    V1,
    /// `sys/fs/cgroup`, or `sys/fs/cgroup/unified` on a hybrid machine that has the memory controller there.
    V2,
}
