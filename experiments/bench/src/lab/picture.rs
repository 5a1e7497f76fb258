//! `eke-bench lab picture`: the X client of `eke bench link`.

use std::time::Duration;

use eke_bench_link::picture;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;

/// The verb.
pub fn run(time_ms: u64) -> Outcome {
    let frames = picture::show(Duration::from_millis(time_ms));
    putln!("{}", serde_json::to_string(&frames.map_err(|why| Failure::new(Status::Failed, why))?)?);
    Ok(Status::Done)
}
