//! x
use super::Context;
use crate::exit::Outcome;
pub struct Options { pub write: bool, pub undo: bool, pub compressor: Option<String>, pub max_pool_percent: Option<u32> }
pub fn run(_: &Context, _: &Options) -> Outcome { Ok(crate::exit::Status::Failed) }
