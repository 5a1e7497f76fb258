//! Chooses the maps to prefetch, from the probabilities of programs.

use serde::{Deserialize, Serialize};

use crate::predict::{Bid, Chance, Maps, Reading};

/// The order in which maps are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By their probability, small before large.
    Probability,
    /// By their probability per byte.
    PerByte,
    /// By the predictor's own bids.
    Own,
}

impl Order {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Probability => "probability",
            Self::PerByte => "per byte",
            Self::Own => "own",
        }
    }
}

/// The chosen maps.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// For each map, the bytes to read; `None` if it was not chosen.
    pub read: Vec<Option<u64>>,
    /// Whether the budget excluded a map.
    pub bound: bool,
}

/// The maps that may be needed, the best first.
pub fn ranking(chances: &[Chance], maps: &Maps, order: Order) -> Vec<usize> {
    let mut not_needed = vec![0.0_f64; maps.all().len()];
    for chance in chances.iter().filter(|chance| chance.probability > 0.0) {
        // Without this limit, one certain program would make all others equal.
        let ln = (1.0 - chance.probability).max(1e-12).ln();
        maps.of(chance.program).iter().for_each(|map| not_needed[*map] += ln);
    }
    let bytes = |map: usize| maps.all()[map].bytes();
    let worth = |map: usize, ln: f64| match order {
        Order::PerByte => -ln.exp_m1() / bytes(map) as f64,
        Order::Probability | Order::Own => -ln,
    };
    let wanted = not_needed.iter().enumerate().filter(|(_, ln)| **ln < 0.0);
    let mut ranked: Vec<(f64, u64, usize)> =
        wanted.map(|(map, ln)| (worth(map, *ln), bytes(map), map)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    ranked.into_iter().map(|(.., map)| map).collect()
}

/// The maps by bids, the lowest first.
pub fn by_bids(bids: &[Bid]) -> Vec<usize> {
    bids.iter().filter(|bid| bid.lnprob < 0.0).map(|bid| bid.map).collect()
}

/// Chooses maps in the order of the ranking, up to a budget.
pub fn fill(ranking: &[usize], maps: &Maps, budget_bytes: u64, reading: Reading) -> Choice {
    let mut choice = Choice { read: vec![None; maps.all().len()], bound: false };
    let mut left = budget_bytes;
    for map in ranking {
        let bytes = maps.all()[*map].bytes();
        if bytes <= left {
            choice.read[*map] = Some(bytes);
            left -= bytes;
        } else {
            choice.bound = true;
            if reading.stops_at_first {
                break;
            }
        }
    }
    if let Some(cap) = reading.range_cap_bytes {
        cut(&mut choice, maps, cap);
    }
    choice
}

/// Limits the read of each range of adjacent chosen maps to its first bytes.
fn cut(choice: &mut Choice, maps: &Maps, cap_bytes: u64) {
    let mut before: Option<(usize, u64)> = None;
    let mut left = 0;
    for (map, read) in maps.all().iter().zip(&mut choice.read).filter(|(_, read)| read.is_some()) {
        if before != Some((map.file, map.span.first)) {
            left = cap_bytes;
        }
        let take = map.bytes().min(left);
        *read = Some(take);
        left -= take;
        before = Some((map.file, map.span.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::MapsBuilder;
    use eke_prefetch_model::pages::{PAGE_BYTES, Span};
    use eke_prefetch_model::program::ProgramId;

    const A: ProgramId = ProgramId(1);
    const B: ProgramId = ProgramId(2);

    /// Shared: 4 pages. Own maps: A 8 pages, B 2 and 1 adjacent ones.
    fn maps() -> Maps {
        let mut maps = MapsBuilder::default();
        for (program, file, first, end) in [
            (A, "0 shared", 0, 4),
            (B, "0 shared", 0, 4),
            (A, "1 a", 0, 8),
            (B, "2 b", 0, 2),
            (B, "3 b", 5, 6),
        ] {
            maps.add(program, file, Span { first, end });
        }
        maps.add(A, "2 b", Span { first: 2, end: 3 });
        maps.build()
    }

    fn chances(a: f64, b: f64) -> [Chance; 2] {
        [Chance { program: A, probability: a }, Chance { program: B, probability: b }]
    }

    #[test]
    fn shared_maps_count_once_with_both_chances() {
        // Needed: shared 1 - 0.5·0.6 = 0.7, A's 0.5 (1 and 8 pages), B's 0.4 (1 and 2 pages).
        assert_eq!(ranking(&chances(0.5, 0.4), &maps(), Order::Probability), [0, 3, 1, 4, 2]);
        // Per page: 0.175, 0.0625, 0.2 (2 pages), 0.5 (A's page), 0.4 (B's page).
        assert_eq!(ranking(&chances(0.5, 0.4), &maps(), Order::PerByte), [3, 4, 2, 0, 1]);
        assert_eq!(ranking(&chances(0.0, 0.4), &maps(), Order::Probability), [4, 2, 0]);
    }

    #[test]
    fn a_budget_is_filled_and_reported_to_bind() {
        let (maps, budget) = (maps(), 6 * PAGE_BYTES);
        let chosen = |reading| {
            let choice = fill(&[0, 1, 3, 2], &maps, budget, reading);
            let taken: Vec<usize> = (0..5).filter(|map| choice.read[*map].is_some()).collect();
            (taken, choice.bound)
        };
        assert_eq!(chosen(Reading::default()), (vec![0, 3], true));
        assert_eq!(chosen(Reading { stops_at_first: true, range_cap_bytes: None }), (vec![0], true));
        assert!(!fill(&[0], &maps, budget, Reading::default()).bound);
    }

    #[test]
    fn a_range_of_adjacent_maps_is_read_up_to_the_cap() {
        let reading = Reading { stops_at_first: false, range_cap_bytes: Some(5 * PAGE_BYTES / 2) };
        let choice = fill(&[0, 1, 2, 3, 4], &maps(), u64::MAX, reading);
        let pages = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / PAGE_BYTES as f64);
        let read: Vec<_> = choice.read.into_iter().map(pages).collect();
        assert_eq!(read, [2.5, 2.5, 2.0, 0.5, 1.0].map(Some));
    }
}
