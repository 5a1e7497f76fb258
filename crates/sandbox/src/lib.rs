//! Commands in a box: a control group with a budget for memory and for the compressed swap that it causes.
//!
//! The kernel charges zram's pool to no control group, and on cgroup v1 not zswap's either. So the box charges it: every 100 ms it lowers its limit by its
//! share of the swapped pages times the pool. A box over budget for more than a second is killed and counted. The child enters its group between fork and
//! exec, the one write outside the writer.

pub mod cgroup_box;
pub mod demo;
pub mod stressor;
