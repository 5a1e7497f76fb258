//! From the runs of the rounds to rows of the table. Pure.

use super::measurements::AlgorithmMeasurement;
use super::ratio::{self, Ratio};
use super::rounds::Row;
use super::sample::Sample;
use super::times::p50_p99;

/// One row of the table; who offers the algorithm is still to be filled in.
pub(crate) fn measurement(row: Row, sample: &Sample, estimated: bool) -> AlgorithmMeasurement {
    let mut out = AlgorithmMeasurement {
        name: row.variant.name,
        params: row.variant.params,
        dictionary: row.variant.dictionary.is_some(),
        hardware: row.variant.hardware,
        estimated,
        ..AlgorithmMeasurement::default()
    };
    let mut run = match row.outcome {
        Ok(run) => run,
        Err(why) => {
            out.unusable = Some(why);
            return out;
        }
    };
    let page_bytes = rustix::param::page_size();
    let Some(Ratio { ratio, ratio_low, ratio_high, incompressible_share }) =
        ratio::from_checkpoints(&run.checkpoints, sample.stored_share(), page_bytes)
    else {
        out.unusable = Some("no page could be stored in its time".into());
        return out;
    };
    (out.ratio, out.ratio_low, out.ratio_high) = (ratio, ratio_low, ratio_high);
    out.incompressible_share = incompressible_share;
    out.pages = run.pages().min(sample.distinct()) as u64;
    (out.store_p50, out.store_p99) = p50_p99(&mut run.store_ns);
    (out.load_p50, out.load_p99) = p50_p99(&mut run.load_ns);
    if !run.load_latency_ns.is_empty() {
        out.cpu_per_page = Some(out.cpu());
        (out.store_p50, out.store_p99) = p50_p99(&mut run.store_latency_ns);
        (out.load_p50, out.load_p99) = p50_p99(&mut run.load_latency_ns);
    }
    out
}
