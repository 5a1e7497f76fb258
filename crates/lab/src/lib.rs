//! eke-lab

pub mod hog;
pub mod machine;
pub mod pen;
