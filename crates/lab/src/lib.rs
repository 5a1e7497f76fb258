//! eke-lab

pub mod demo;
pub mod hog;
pub mod machine;
pub mod pen;
