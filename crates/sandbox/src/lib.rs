//! Commands in a box: a group with a budget for memory and for the compressed swap that it causes.

pub mod cgroup_box;
pub mod demo;
pub mod stressor;
