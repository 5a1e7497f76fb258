//! Which run has which value. Pure.

/// Runs in order, each the number of its value. Every round has each value once: what drifts (temperature, a filling disk) is the same for all.
/// Of two values the order is A B A B; of more it is turned by one each round, so that none is always after the same.
pub fn order(values: usize, rounds: usize) -> Vec<usize> {
    let round = |round: usize| (0..values).map(move |i| if values > 2 { (i + round) % values } else { i });
    (0..rounds).flat_map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_are_interleaved_and_more_are_turned() {
        assert_eq!(order(2, 3), [0, 1, 0, 1, 0, 1]);
        assert_eq!(order(3, 3), [0, 1, 2, 1, 2, 0, 2, 0, 1]);
        assert_eq!(order(3, 0), Vec::<usize>::new());
    }
}
