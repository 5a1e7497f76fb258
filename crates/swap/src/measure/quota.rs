//! The number of pages to sample from each process. Pure.

/// Divides `requested` pages in proportion to `weights`, with at most `caps` for each; the sum is `requested`, or that of `caps`. If one slice is shorter,
/// its missing items count as 0.
pub(crate) fn quotas(weights: &[u64], caps: &[usize], requested: usize) -> Vec<usize> {
    let n = weights.len().min(caps.len());
    let mut given = vec![0; n];
    let mut left = requested.min(caps[..n].iter().fold(0, |sum, c| sum.saturating_add(*c)));
    while left > 0 {
        let round = one_round(weights, &caps[..n], &given, left);
        let taken: usize = round.iter().sum();
        given.iter_mut().zip(&round).for_each(|(g, r)| *g += r);
        left -= taken;
    }
    given
}

/// Divides at least one and at most `left` pages among processes below their cap: the integer part of each share, or one page each for the
/// heaviest if every share is less than one.
fn one_round(weights: &[u64], caps: &[usize], given: &[usize], left: usize) -> Vec<usize> {
    let room = |i: usize| caps[i] - given[i];
    let weight = |i: usize| u128::from(weights[i].max(1));
    let mut open: Vec<usize> = (0..caps.len()).filter(|i| room(*i) > 0).collect();
    let total: u128 = open.iter().map(|i| weight(*i)).sum();
    let mut round = vec![0; caps.len()];
    for i in &open {
        round[*i] = room(*i).min((left as u128 * weight(*i) / total) as usize);
    }
    if round.iter().all(|r| *r == 0) {
        open.sort_by_key(|i| std::cmp::Reverse(weight(*i)));
        open.iter().take(left).for_each(|i| round[*i] = 1);
    }
    round
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn in_proportion_to_size() {
        assert_eq!(quotas(&[100, 300], &[1000, 1000], 40), [10, 30]);
    }

    #[test]
    fn others_make_up_for_one_that_has_too_few() {
        assert_eq!(quotas(&[100, 300, 0], &[1000, 10, 5], 40).iter().sum::<usize>(), 40);
        assert_eq!(quotas(&[100, 300], &[3, 4], 40), [3, 4]);
    }

    proptest! {
        #[test]
        fn sums_to_what_is_wanted_and_never_exceeds_what_each_has(
            have in proptest::collection::vec((any::<u64>(), 0usize..5000), 0..40), requested in 0usize..20_000
        ) {
            let (weights, caps): (Vec<u64>, Vec<usize>) = have.into_iter().unzip();
            let q = quotas(&weights, &caps, requested);
            prop_assert_eq!(q.iter().sum::<usize>(), requested.min(caps.iter().sum()));
            prop_assert!(q.iter().zip(&caps).all(|(q, c)| q <= c));
        }
    }
}
