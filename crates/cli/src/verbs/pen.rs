//! x
use super::Context;
use crate::exit::Outcome;
pub fn run(_: &Context, _: eke_core::units::Bytes, _: Vec<std::ffi::OsString>) -> Outcome { Ok(crate::exit::Status::Failed) }
