//! Notes on what limits a variant, and on uncertain means. Pure.

use eke_io::Operation;
use eke_io::counters::Latency;
use eke_io::governor::Rules;
use eke_io::governor::throughput::Throughput;
use eke_results::report::words::shown;

use super::plan::{Run, Variant, Writer};
use super::trial::Trial;

/// A standard error above this share of the mean is too large for a comparison to 5 %.
const UNCERTAIN: f64 = 0.10;

/// Lists the variants whose mean write rate is uncertain, because writeback comes in bursts.
pub fn unsteady(trials: &[(Run, Trial)], writer: Writer, variants: &[Variant]) -> Option<String> {
    let of = |variant: &Variant| {
        let (mean, error) = mean_and_error(&written(trials, writer, *variant))?;
        let text = format!("{} ± {} MB/s ({})", shown(mean), shown(error), variant.name());
        (error > UNCERTAIN * mean).then_some(text)
    };
    let all: Vec<String> = variants.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| {
        format!(
            "With {}, writes reached the disk in bursts, and their mean is uncertain by more than a tenth: {}. Longer or more runs give a better mean (--seconds, --repeats).",
            writer.name(),
            all.join(", ")
        )
    })
}

fn written(trials: &[(Run, Trial)], writer: Writer, variant: Variant) -> Vec<f64> {
    let same = trials.iter().filter(|(run, _)| run.variant == variant && run.writer == writer);
    same.flat_map(|(_, trial)| trial.written_mb_s.iter().copied()).collect()
}

/// The mean and its standard error; `None` for fewer than two samples.
fn mean_and_error(samples: &[f64]) -> Option<(f64, f64)> {
    let rates: Throughput = samples.iter().copied().collect();
    (samples.len() > 1).then(|| (rates.mean(), rates.error()))
}

/// Compares where reads wait with eke and by the kernel's default.
pub fn waits(trials: &[(Run, Trial)], writer: Writer) -> Option<String> {
    let (default, eke) = (split(trials, writer, Variant::Default)?, split(trials, writer, Variant::Eke)?);
    Some(format!(
        "Where reads wait beside {}: with eke {} ms in the queue and {} ms in the driver and the disk on average, by the kernel's default {} ms and {} ms. In the disk a read waits for the writes submitted before it: fewer or shorter writes help, reordering the queue does not.",
        writer.name(),
        shown(eke.0),
        shown(eke.1),
        shown(default.0),
        shown(default.1)
    ))
}

/// Why the governor changed nothing.
pub fn nothing(trial: &Trial) -> String {
    let rules = Rules::new(trial.target);
    let acts = format!(
        "it acts when more than {:.0} % take longer than {} in {} seconds on end",
        100.0 * rules.bad,
        trial.target,
        rules.bad_row
    );
    let missed = trial.device.of(Operation::Read).whole.share_over(trial.target.0);
    let why = missed.map(|share| format!(" ({:.0} % of all reads took longer; {acts})", 100.0 * share));
    format!("nothing{}", why.unwrap_or_default())
}

/// Mean milliseconds in the queue and in the device, over all reads of all runs.
fn split(trials: &[(Run, Trial)], writer: Writer, variant: Variant) -> Option<(f64, f64)> {
    let mut reads = Latency::default();
    let same = trials.iter().filter(|(run, _)| run.variant == variant && run.writer == writer);
    same.for_each(|(_, trial)| reads.merge(&trial.device.of(Operation::Read)));
    Some((reads.queue.mean_ns()? / 1e6, reads.device.mean_ns()? / 1e6))
}

#[cfg(test)]
mod tests {
    use eke_io::counters::{ClassLatency, Device};
    use eke_io::{Class, Mode};
    use eke_model::units::Nanos;

    use super::*;

    fn trial(variant: Variant, written_mb_s: &[f64], queue_ms: u64, device_ms: u64) -> (Run, Trial) {
        let mut latency = Latency::default();
        latency.queue.record(queue_ms * 1_000_000);
        latency.device.record(device_ms * 1_000_000);
        let class = Class::new(Operation::Read, Mode::Sync);
        let device = Device { classes: vec![ClassLatency { class, latency }], ..Device::default() };
        let run = Run { round: 0, variant, writer: Writer::Stream };
        (run, Trial { written_mb_s: written_mb_s.to_vec(), device, ..Trial::default() })
    }

    #[test]
    fn bursts_are_noted_and_a_steady_writer_is_not() {
        let all = [
            trial(Variant::Default, &[0.0, 40.0, 0.0, 40.0], 1, 1),
            trial(Variant::Eke, &[30.0, 31.0], 1, 1),
        ];
        let note = unsteady(&all, Writer::Stream, &[Variant::Default, Variant::Eke]).unwrap();
        assert!(note.contains(": 20 ± 11.5 MB/s (kernel default). Longer"), "{note}");
        assert_eq!(unsteady(&all, Writer::Stream, &[Variant::Eke]), None);
        assert_eq!(unsteady(&all, Writer::Fsync, &[Variant::Default]), None);
    }

    #[test]
    fn the_note_on_an_idle_governor_names_its_threshold() {
        let (_, mut trial) = trial(Variant::Eke, &[], 1, 1);
        trial.target = Nanos(10_000_000);
        (0..4).for_each(|i| {
            trial.device.classes[0].latency.whole.record(if i == 0 { 70_000_000 } else { 100_000 })
        });
        let note = nothing(&trial);
        assert_eq!(
            note,
            "nothing (25 % of all reads took longer; it acts when more than 10 % take longer than 10.0 ms in 3 seconds on end)"
        );
        assert_eq!(nothing(&Trial::default()), "nothing");
    }

    #[test]
    fn one_sample_has_no_error() {
        assert_eq!(mean_and_error(&[3.0]), None);
        assert_eq!(mean_and_error(&[3.0, 3.0]), Some((3.0, 0.0)));
    }

    #[test]
    fn waits_are_compared_with_the_default() {
        let all = [trial(Variant::Default, &[], 4, 8), trial(Variant::Eke, &[], 2, 16)];
        let note = waits(&all, Writer::Stream).unwrap();
        assert!(note.contains("with eke 2 ms in the queue and 16 ms"), "{note}");
        assert_eq!(waits(&all[..1], Writer::Stream), None);
    }
}
