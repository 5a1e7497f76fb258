//! The value of each run. Pure.

/// Runs in order, each as the index of its value. Every round has each value once, so drift (temperature, a filling disk) affects all alike. Two
/// values run A B A B; more rotate by one each round, so that no value always follows the same one.
pub fn order(values: usize, rounds: usize) -> Vec<usize> {
    let round = |round: usize| (0..values).map(move |i| if values > 2 { (i + round) % values } else { i });
    (0..rounds).flat_map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_alternate_and_more_rotate() {
        assert_eq!(order(2, 3), [0, 1, 0, 1, 0, 1]);
        assert_eq!(order(3, 3), [0, 1, 2, 1, 2, 0, 2, 0, 1]);
        assert_eq!(order(3, 0), Vec::<usize>::new());
    }
}
