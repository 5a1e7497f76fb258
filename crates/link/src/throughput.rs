//! Rates and CPU costs from samples. Pure.

use std::time::Duration;

use serde::Serialize;

use crate::parse::sample::Used;
use crate::suite::Suite;

/// The direction of bulk data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    /// From the far end to here.
    ToHere,
    /// From here to the far end.
    ToThere,
}

/// Bulk data in one direction through one cipher.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// MB/s (decimal) of each slice, in order.
    pub mb_per_s: Vec<f64>,
    /// Bytes of all slices.
    pub bytes: u64,
    /// Seconds of all slices.
    pub seconds: f64,
    /// The CPU use of ssh on this machine.
    pub here: Used,
    /// The CPU use of sshd on the far end.
    pub there: Used,
    /// CPU seconds per MB of both, slice by slice, if both ends show them.
    #[serde(skip)]
    pub slices_cpu_per_mb: Vec<(f64, f64)>,
}

/// The measurement of a cipher.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CipherMeasurement {
    /// The cipher.
    pub suite: Suite,
    /// Bulk data from the far end.
    pub to_here: Flow,
    /// Bulk data to the far end.
    pub to_there: Flow,
    /// The median round trip of a line of 64 bytes, in microseconds.
    pub echo_us: Option<f64>,
}

impl Flow {
    /// The median slice, in MB/s.
    pub fn rate(&self) -> f64 {
        median(&self.mb_per_s)
    }

    /// CPU seconds per MB on this machine and on the far end: of the median slice, since a disturbed slice costs more; or of all together.
    pub fn cpu_per_mb(&self) -> (Option<f64>, Option<f64>) {
        // on kernels that count ticks of 10 ms alone, a short slice has none: use the sum then
        let is_fine = |(here, there): &(f64, f64)| *here > 0.0 && *there > 0.0;
        if !self.slices_cpu_per_mb.is_empty() && self.slices_cpu_per_mb.iter().all(is_fine) {
            let (here, there): (Vec<f64>, Vec<f64>) = self.slices_cpu_per_mb.iter().copied().unzip();
            return (Some(median(&here)), Some(median(&there)));
        }
        let mb = self.bytes as f64 / 1e6;
        let per_mb = |used: &Used| used.cpu_s.filter(|_| mb > 0.0).map(|s| s / mb);
        (per_mb(&self.here), per_mb(&self.there))
    }
}

impl CipherMeasurement {
    /// MB/s with equal amounts in both directions: the harmonic mean of both rates.
    pub fn rate(&self) -> f64 {
        both_ways(self.to_here.rate(), self.to_there.rate())
    }

    /// The same for each round.
    pub fn rates(&self) -> Vec<f64> {
        self.to_here.mb_per_s.iter().zip(&self.to_there.mb_per_s).map(|(a, b)| both_ways(*a, *b)).collect()
    }

    /// CPU seconds per MB of both ends together, with equal amounts in both directions; `None` if an end does not show it.
    pub fn cpu_per_mb(&self) -> Option<f64> {
        let sum = |flow: &Flow| flow.cpu_per_mb().0.zip(flow.cpu_per_mb().1).map(|(a, b)| a + b);
        Some((sum(&self.to_here)? + sum(&self.to_there)?) / 2.0)
    }
}

impl CipherMeasurement {
    /// CPU seconds per MB of the end that needs more, with equal amounts in both directions. It bounds one session, since each end is one thread.
    pub fn bound_per_mb(&self) -> Option<f64> {
        let mean = |of: fn(&Flow) -> Option<f64>| Some((of(&self.to_here)? + of(&self.to_there)?) / 2.0);
        Some(mean(|f| f.cpu_per_mb().0)?.max(mean(|f| f.cpu_per_mb().1)?))
    }
}

/// The seconds that the bytes of a request took: `took` less `idle`, the time of an empty request. On a busy machine `idle` may have waited longer
/// than the request itself, so at most half of `took` is subtracted.
pub fn net_seconds(took: Duration, idle: Duration) -> f64 {
    took.saturating_sub(idle).max(took / 2).as_secs_f64().max(1e-6)
}

/// The harmonic mean.
pub fn both_ways(a: f64, b: f64) -> f64 {
    if a <= 0.0 || b <= 0.0 { 0.0 } else { 2.0 / (1.0 / a + 1.0 / b) }
}

/// The median; 0 without samples.
pub fn median(samples: &[f64]) -> f64 {
    eke_statistics::median(samples).unwrap_or(0.0)
}

/// Do their 95 % intervals overlap? `false` if one has no interval.
pub fn overlap(a: &[f64], b: &[f64]) -> bool {
    match (eke_statistics::interval(a), eke_statistics::interval(b)) {
        (Some((a_low, a_high)), Some((b_low, b_high))) => a_low <= b_high && b_low <= a_high,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_both_directions() {
        assert_eq!(both_ways(100.0, 100.0), 100.0);
        assert!((both_ways(30.0, 60.0) - 40.0).abs() < 1e-9);
        assert_eq!(both_ways(0.0, 60.0), 0.0);
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0]), median(&[1.0, 2.0])), (0.0, 2.0, 1.5));
    }

    #[test]
    fn the_time_of_an_empty_request_is_subtracted_up_to_half() {
        let ms = Duration::from_millis;
        assert!((net_seconds(ms(100), ms(10)) - 0.09).abs() < 1e-9);
        assert!((net_seconds(ms(100), ms(500)) - 0.05).abs() < 1e-9);
        assert_eq!(net_seconds(ms(0), ms(0)), 1e-6);
    }

    #[test]
    fn intervals_overlap_or_not() {
        assert!(overlap(&[9.0, 10.0, 11.0], &[12.0, 12.1, 12.2]));
        assert!(!overlap(&[9.9, 10.0, 10.1], &[12.0, 12.1, 12.2]));
        assert!(!overlap(&[10.0], &[10.0]));
    }

    #[test]
    fn cpu_time_is_of_both_ends_and_both_directions() {
        let used = |s: f64| Used { cpu_s: Some(s), ..Used::default() };
        let flow = |here, there| Flow {
            bytes: 10_000_000,
            seconds: 0.5,
            here: used(here),
            there: used(there),
            ..Flow::default()
        };
        let measured = CipherMeasurement {
            suite: Suite::new("aes128-ctr", None),
            to_here: flow(0.1, 0.3),
            to_there: flow(0.2, 0.2),
            echo_us: None,
        };
        assert!((measured.cpu_per_mb().unwrap() - 0.04).abs() < 1e-12);
        let slices_cpu_per_mb = vec![(0.01, 0.02), (0.3, 0.9), (0.01, 0.02)];
        let disturbed = Flow { slices_cpu_per_mb, ..flow(0.1, 0.3) };
        assert_eq!(disturbed.cpu_per_mb(), (Some(0.01), Some(0.02)));
        let ticks = Flow { slices_cpu_per_mb: vec![(0.0, 0.02); 3], ..flow(0.1, 0.3) };
        assert_eq!(ticks.cpu_per_mb(), flow(0.1, 0.3).cpu_per_mb());
        let unknown =
            CipherMeasurement { to_here: Flow { there: Used::default(), ..flow(0.1, 0.3) }, ..measured };
        assert_eq!(unknown.cpu_per_mb(), None);
    }
}
