//! One set of samples.

/// The samples in ascending order.
fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The middle sample, or the mean of the two middle ones; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some(f64::midpoint(sorted[half - 1], sorted[half])),
    }
}

/// The `q` quantile (0 to 1) by nearest rank, which is always one of the samples; `None` without samples.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(samples);
    sorted.get(rank(sorted.len(), q)?).copied()
}

/// As [`quantile`], of whole numbers, which it sorts.
pub fn quantile_sorting(samples: &mut [u64], q: f64) -> Option<u64> {
    samples.sort_unstable();
    samples.get(rank(samples.len(), q)?).copied()
}

/// The index of the `q` quantile among `count` sorted samples.
fn rank(count: usize, q: f64) -> Option<usize> {
    let rank = (q.clamp(0.0, 1.0) * count as f64).ceil() as usize;
    rank.clamp(1, count.max(1)).checked_sub(1)
}

/// The least and the greatest sample; infinity and minus infinity without samples.
pub fn range(samples: &[f64]) -> (f64, f64) {
    samples.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), s| (low.min(*s), high.max(*s)))
}

/// The mean; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// The standard error of the mean; `None` with fewer than two samples.
pub fn standard_error(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples).filter(|_| samples.len() > 1)?;
    let squares: f64 = samples.iter().map(|s| (s - mean).powi(2)).sum();
    let count = samples.len() as f64;
    Some((squares / (count - 1.0) / count).sqrt())
}

/// Student's t, 97.5 %, for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The 95 % interval of the mean (Student's t); `None` with fewer than two samples.
pub fn interval(samples: &[f64]) -> Option<(f64, f64)> {
    let (mean, error) = (mean(samples)?, standard_error(samples)?);
    let half = error * T.get(samples.len() - 2).copied().unwrap_or(1.96);
    Some((mean - half, mean + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(
            [median(&[]), median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])],
            [None, Some(2.0), Some(2.5)]
        );
    }

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            (quantile(&samples, 0.99), quantile(&samples, 0.0), quantile(&samples, 2.0)),
            (Some(99.0), Some(1.0), Some(100.0))
        );
        assert_eq!((quantile(&[], 0.5), quantile_sorting(&mut [], 0.5)), (None, None));
        let whole = [0.5, 0.99, 0.0].map(|q| quantile_sorting(&mut [5, 1, 9, 3], q));
        assert_eq!(whole, [Some(3), Some(9), Some(1)]);
    }

    #[test]
    fn ranges_have_ends() {
        assert_eq!(range(&[2.0, -1.0, 3.0]), (-1.0, 3.0));
        assert_eq!(range(&[]), (f64::INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn an_interval_is_as_wide_as_the_samples_are_uncertain() {
        let (low, high) = interval(&[9.0, 10.0, 11.0]).unwrap();
        assert!((low - 7.516).abs() < 0.01 && (high - 12.484).abs() < 0.01);
        assert_eq!(
            (interval(&[3.0]), standard_error(&[3.0]), standard_error(&[3.0, 3.0])),
            (None, None, Some(0.0))
        );
    }
}
