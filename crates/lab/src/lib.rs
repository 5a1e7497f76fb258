//! eke-lab

pub mod demo;
pub mod hog;
pub mod machine;
pub mod pen;
pub mod slow_disk;
