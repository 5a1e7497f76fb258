//! `eke status`: what is applied, what it gains, what was predicted.

use std::time::Duration;

use eke_core::model::Model;
use eke_core::sample::Sample;
use eke_core::snapshot::{Applied, Snapshot};
use eke_kernel::{read, state};

use super::Context;
use crate::agent;
use crate::documents;
use crate::exit::{Outcome, Status};
use crate::put;
use crate::show;

/// Between two samples where no agent keeps any.
const INTERVAL: Duration = Duration::from_millis(500);

/// The verb.
pub fn run(context: &Context) -> Outcome {
    let document = document(context)?;
    context.print(&document, |d| put!("{}", show::status::text(d)))?;
    Ok(if document.snapshot.agent.is_some() { Status::Done } else { Status::NoAgent })
}

/// With the caches, which the agent knows nothing of.
pub fn document(context: &Context) -> Outcome<documents::Status> {
    Ok(documents::Status { snapshot: snapshot(context)?, caches: super::cache::status::caches(context) })
}

/// The agent's, or one's own reading of the machine where none runs.
pub fn snapshot(context: &Context) -> Outcome<Snapshot> {
    match agent::snapshot(&context.root)? {
        Some(snapshot) => Ok(snapshot),
        None => own(context),
    }
}

fn own(context: &Context) -> Outcome<Snapshot> {
    let root = &context.root;
    let kswapd = read::kswapd_pids(root);
    let before = read::sample(root, read::monotonic_ms(), &kswapd)?;
    root.sleep(INTERVAL);
    let now = read::sample(root, read::monotonic_ms(), &kswapd)?;
    let applied: Option<Applied> = state::load(root, state::APPLIED);
    Ok(Snapshot {
        agent: None,
        applied: applied.is_some(),
        backend: backend(context, &now),
        prediction: applied.and_then(|a| a.plans.into_iter().find_map(|p| p.prediction)),
        model: Model::new(&now, Some(&before)),
        prefetch: None,
        io: None,
        events: Vec::new(),
    })
}

fn backend(context: &Context, sample: &Sample) -> String {
    let swaps: Vec<&str> = sample.swaps.iter().filter_map(|a| a.zram_name()).collect();
    let zram = sample.zram.iter().find(|z| swaps.contains(&z.name.as_str()));
    let zswap = |name| {
        context.root.read(format!("sys/module/zswap/parameters/{name}")).unwrap_or_default().trim().to_owned()
    };
    match zram {
        Some(z) => format!("zram ({})", z.algorithm),
        None if zswap("enabled") == "Y" && !sample.swaps.is_empty() => {
            format!("zswap ({})", zswap("compressor"))
        }
        None => "none".into(),
    }
}
