//! `eke-bench lab sweep`: removes what killed experiments left. `eke down` runs it.

use eke_bench_core::test_image;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;

use crate::context::Context;

/// The verb.
pub fn run(context: &Context) -> Outcome {
    context.need_root("mounts and slow disks are removed by root")?;
    let swept = test_image::sweep(&context.root).map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    swept.iter().for_each(|name| putln!("removed: {name}"));
    Ok(Status::Done)
}
