//! Reduces samples to the least and the greatest of each column of pixels, so that no peak is lost.

use crate::axis::Axis;

/// Lines without gaps, each point a share of the axis and a value, with at most two points per column.
pub fn thin(points: &[(f64, Option<f64>)], axis: &Axis, columns: usize) -> Vec<Vec<(f64, f64)>> {
    let mut lines = Vec::new();
    for line in points.split(|(_, value)| !value.is_some_and(f64::is_finite)) {
        let line: Vec<(f64, f64)> =
            line.iter().filter_map(|(time, value)| Some((axis.share(*time), (*value)?))).collect();
        if !line.is_empty() {
            lines.push(thin_line(&line, columns.max(1)));
        }
    }
    lines
}

fn thin_line(line: &[(f64, f64)], columns: usize) -> Vec<(f64, f64)> {
    if line.len() <= columns {
        return line.to_vec();
    }
    let column = |point: &(f64, f64)| (point.0 * columns as f64) as usize;
    line.chunk_by(|a, b| column(a) == column(b)).flat_map(ends).collect()
}

/// The least and the greatest point of a column in order of time; one point if they are equal.
fn ends(column: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    match (column.iter().min_by(by_value), column.iter().max_by(by_value)) {
        (Some(least), Some(most)) if least.1 == most.1 => vec![*least],
        (Some(least), Some(most)) if least.0 <= most.0 => vec![*least, *most],
        (Some(least), Some(most)) => vec![*most, *least],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    fn axis() -> Axis {
        Axis { low: 0.0, high: 1000.0, ticks: Vec::new(), unit: String::new() }
    }

    #[test]
    fn a_single_peak_survives_and_gaps_stay() {
        let mut points: Vec<(f64, Option<f64>)> = (0..1000).map(|i| (f64::from(i), Some(1.0))).collect();
        points[503].1 = Some(99.0);
        points[700].1 = None;
        let lines = thin(&points, &axis(), 50);
        assert_eq!(lines.len(), 2);
        let all: Vec<f64> = lines.concat().iter().map(|p| p.1).collect();
        assert!(all.len() <= 102 && all.contains(&99.0), "{}", all.len());
    }

    #[test]
    fn few_points_are_all_kept() {
        let points = [(0.0, Some(1.0)), (500.0, Some(1.0)), (1000.0, Some(3.0))];
        assert_eq!(thin(&points, &axis(), 50), [[(0.0, 1.0), (0.5, 1.0), (1.0, 3.0)]]);
        assert!(thin(&[(0.0, None)], &axis(), 50).is_empty());
    }

    proptest! {
        #[test]
        fn the_least_and_the_most_are_kept(values in proptest::collection::vec(any::<i32>(), 1..500), columns in 0usize..60) {
            let points: Vec<(f64, Option<f64>)> = values.iter().enumerate().map(|(i, v)| (i as f64 * 2.0, Some(f64::from(*v)))).collect();
            let kept: Vec<f64> = thin(&points, &axis(), columns).concat().iter().map(|p| p.1).collect();
            for end in [values.iter().min(), values.iter().max()].into_iter().flatten() {
                prop_assert!(kept.contains(&f64::from(*end)));
            }
            prop_assert!(kept.len() <= 2 * columns.max(1) + 2);
        }
    }
}
