//! One file of a request, for the stages that touch files (probe and read): its mount, opening it, its resident pages.

pub mod descriptors;
pub(crate) mod file_system;
pub(crate) mod mount;
pub(crate) mod open;
mod replaced;
pub mod resident;
