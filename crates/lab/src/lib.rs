//! eke-lab

pub mod machine;
