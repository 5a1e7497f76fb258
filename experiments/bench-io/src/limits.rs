//! What keeps a run from being better, and what keeps its figures from being sure. Pure.

use eke_io::Operation;
use eke_io::figures::Latency;
use eke_io::governor::Rules;
use eke_io::governor::writers::Rates;
use eke_results::report::words::shown;

use super::plan::{Run, Variant, Writer};
use super::trial::Trial;

/// Above this share of the mean its standard error makes a comparison to 5 % senseless.
const UNSURE: f64 = 0.10;

/// Of each variant whose writer wrote so unevenly that its mean says little: writeback comes in bursts.
pub fn unsteady(held: &[(Run, Trial)], writer: Writer, variants: &[Variant]) -> Option<String> {
    let of = |variant: &Variant| {
        let (mean, error) = mean_and_error(&written(held, writer, *variant))?;
        let text = format!("{} ± {} MB/s ({})", shown(mean), shown(error), variant.name());
        (error > UNSURE * mean).then_some(text)
    };
    let all: Vec<String> = variants.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| {
        format!(
            "What was written beside {} came in bursts, and its mean is uncertain by more than a tenth: {}. Longer runs or more of them would say more (--seconds, --repeats).",
            writer.name(),
            all.join(", ")
        )
    })
}

fn written(held: &[(Run, Trial)], writer: Writer, variant: Variant) -> Vec<f64> {
    let same = held.iter().filter(|(run, _)| run.variant == variant && run.writer == writer);
    same.flat_map(|(_, trial)| trial.written_mb_s.iter().copied()).collect()
}

/// The mean and its standard error, of two pieces at least.
fn mean_and_error(pieces: &[f64]) -> Option<(f64, f64)> {
    let rates: Rates = pieces.iter().copied().collect();
    (pieces.len() > 1).then(|| (rates.mean(), rates.error()))
}

/// Where reads waited with eke, and where they did without.
pub fn waits(held: &[(Run, Trial)], writer: Writer) -> Option<String> {
    let (default, eke) = (split(held, writer, Variant::Default)?, split(held, writer, Variant::Eke)?);
    Some(format!(
        "Where reads wait beside {}: with eke {} ms in the queue and {} ms in the driver and the disk on average, by the kernel's default {} ms and {} ms. In the disk a read stands behind the writes that were handed over before it: fewer or shorter ones help, an order of the queue does not.",
        writer.name(),
        shown(eke.0),
        shown(eke.1),
        shown(default.0),
        shown(default.1)
    ))
}

/// Why the governor did nothing.
pub fn nothing(trial: &Trial) -> String {
    let rules = Rules::new(trial.target);
    let acts = format!(
        "it acts when more than {:.0} % take longer than {} in {} seconds on end",
        100.0 * rules.bad,
        trial.target,
        rules.bad_row
    );
    let missed = trial.device.of(Operation::Read).whole.share_over(trial.target.0);
    let seen = missed.map(|share| format!(" ({:.0} % of all reads took longer; {acts})", 100.0 * share));
    format!("nothing{}", seen.unwrap_or_default())
}

/// Milliseconds in the queue and below it, of all reads of all runs.
fn split(held: &[(Run, Trial)], writer: Writer, variant: Variant) -> Option<(f64, f64)> {
    let mut reads = Latency::default();
    let same = held.iter().filter(|(run, _)| run.variant == variant && run.writer == writer);
    same.for_each(|(_, trial)| reads.merge(&trial.device.of(Operation::Read)));
    Some((reads.queue.mean_ns()? / 1e6, reads.device.mean_ns()? / 1e6))
}

#[cfg(test)]
mod tests {
    use eke_io::figures::{Device, Figures};
    use eke_io::{Class, Mode};
    use eke_model::units::Nanos;

    use super::*;

    fn held(variant: Variant, written_mb_s: &[f64], queue_ms: u64, device_ms: u64) -> (Run, Trial) {
        let mut latency = Latency::default();
        latency.queue.record(queue_ms * 1_000_000);
        latency.device.record(device_ms * 1_000_000);
        let class = Class::new(Operation::Read, Mode::Sync);
        let device = Device { classes: vec![Figures { class, latency }], ..Device::default() };
        let run = Run { round: 0, variant, writer: Writer::Stream };
        (run, Trial { written_mb_s: written_mb_s.to_vec(), device, ..Trial::default() })
    }

    #[test]
    fn bursts_are_told_of_and_a_steady_writer_is_not() {
        let all =
            [held(Variant::Default, &[0.0, 40.0, 0.0, 40.0], 1, 1), held(Variant::Eke, &[30.0, 31.0], 1, 1)];
        let said = unsteady(&all, Writer::Stream, &[Variant::Default, Variant::Eke]).unwrap();
        assert!(said.contains(": 20 ± 11.5 MB/s (kernel default). Longer"), "{said}");
        assert_eq!(unsteady(&all, Writer::Stream, &[Variant::Eke]), None);
        assert_eq!(unsteady(&all, Writer::Fsync, &[Variant::Default]), None);
    }

    #[test]
    fn a_governor_that_did_nothing_says_what_it_would_have_acted_on() {
        let (_, mut trial) = held(Variant::Eke, &[], 1, 1);
        trial.target = Nanos(10_000_000);
        (0..4).for_each(|i| {
            trial.device.classes[0].latency.whole.record(if i == 0 { 70_000_000 } else { 100_000 })
        });
        let said = nothing(&trial);
        assert_eq!(
            said,
            "nothing (25 % of all reads took longer; it acts when more than 10 % take longer than 10.0 ms in 3 seconds on end)"
        );
        assert_eq!(nothing(&Trial::default()), "nothing");
    }

    #[test]
    fn one_piece_says_nothing_of_its_error() {
        assert_eq!(mean_and_error(&[3.0]), None);
        assert_eq!(mean_and_error(&[3.0, 3.0]), Some((3.0, 0.0)));
    }

    #[test]
    fn where_reads_wait_is_told_beside_the_default() {
        let all = [held(Variant::Default, &[], 4, 8), held(Variant::Eke, &[], 2, 16)];
        let said = waits(&all, Writer::Stream).unwrap();
        assert!(said.contains("with eke 2 ms in the queue and 16 ms"), "{said}");
        assert_eq!(waits(&all[..1], Writer::Stream), None);
    }
}
