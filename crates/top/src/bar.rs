//! Bars of characters.

/// Divides `width` columns among the parts in proportion, by the largest remainders. A part smaller than a column gets one from a larger
/// part, if that has more than one.
pub fn columns(parts: &[u64], width: usize) -> Vec<usize> {
    let whole: u128 = parts.iter().map(|p| u128::from(*p)).sum();
    if whole == 0 {
        return vec![0; parts.len()];
    }
    let exact = |part: u64| u128::from(part) * width as u128;
    let mut columns: Vec<usize> = parts.iter().map(|p| (exact(*p) / whole) as usize).collect();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by_key(|i| std::cmp::Reverse(exact(parts[*i]) % whole));
    let rest = width - columns.iter().sum::<usize>();
    by_remainder.iter().take(rest).for_each(|i| columns[*i] += 1);
    show_small_ones(parts, &mut columns);
    columns
}

fn show_small_ones(parts: &[u64], columns: &mut [usize]) {
    for i in 0..parts.len() {
        if parts[i] == 0 || columns[i] > 0 {
            continue;
        }
        let largest = (0..columns.len()).max_by_key(|j| columns[*j]).unwrap_or(i);
        if columns[largest] > 1 {
            columns[largest] -= 1;
            columns[i] = 1;
        }
    }
}

/// A bar of `width` columns of which `share` (0 to 1) is full. From 0.5 % at least one column is full.
pub fn gauge(share: f64, width: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    let full = if share >= 0.005 { full.max(1).min(width) } else { full };
    "█".repeat(full) + &"·".repeat(width - full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_remainders_get_what_is_left() {
        assert_eq!(columns(&[50, 30, 20], 10), [5, 3, 2]);
        assert_eq!(columns(&[1, 1, 1], 10).iter().sum::<usize>(), 10);
        assert_eq!(columns(&[0, 0], 10), [0, 0]);
    }

    #[test]
    fn small_parts_are_visible() {
        assert_eq!(columns(&[1_000_000, 1, 0], 10), [9, 1, 0]);
        assert_eq!(gauge(0.01, 10), "█·········");
        assert_eq!([gauge(0.0, 3), gauge(0.5, 4), gauge(7.0, 3)], ["···", "██··", "███"]);
    }

    proptest::proptest! {
        #[test]
        fn the_columns_are_always_all(parts in proptest::collection::vec(proptest::num::u64::ANY, 1..8), width in 0usize..300) {
            let all: usize = columns(&parts, width).iter().sum();
            proptest::prop_assert_eq!(all, if parts.iter().all(|p| *p == 0) { 0 } else { width });
        }
    }
}
