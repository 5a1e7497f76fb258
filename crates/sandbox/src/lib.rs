//! Commands in a box: a group with a budget for memory and for the compressed swap that it causes.
//!
//! zram's pool is charged to no control group, and on cgroup v1 zswap's is not either. So the box charges it: its share of the swapped pages × the pool is
//! taken off its limit every 100 ms. A box over budget for more than a second is killed and counted. A box's child enters its group between fork and exec, the
//! one write outside the writer.

pub mod cgroup_box;
pub mod demo;
pub mod stressor;
