//! Groups of processes: which version the machine has, and whose a group of eke's is.

use serde::{Deserialize, Serialize};

pub mod name;

/// The version of control groups that has the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hierarchy {
    /// `sys/fs/cgroup/memory`.
    V1,
    /// `sys/fs/cgroup`, or `sys/fs/cgroup/unified` on a hybrid machine that has the controller there.
    V2,
}
