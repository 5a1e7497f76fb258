//! A list of CPUs, such as `/sys/devices/system/cpu/online`.

/// The number of CPUs in a list such as `0-3,6`.
pub fn count(text: &str) -> usize {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.checked_sub(first)?.saturating_add(1))
    };
    text.split(',').filter_map(count).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_cpus_count() {
        assert_eq!(
            [count("0-3,6\n"), count("0\n"), count(""), count("3-1"), count("0-\u{fffd}")],
            [5, 1, 0, 0, 0]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9,\\- x]*") {
            let _ = count(&text);
        }
    }
}
