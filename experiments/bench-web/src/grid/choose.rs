//! Which cells of the model's grid are measured. Pure.

use std::collections::BTreeSet;

use eke_bench_cache::tiers::grid::Cell;

/// The measured cells.
pub const CELLS: usize = 36;
/// Every value of every axis is in so many cells at least.
const EACH: usize = 3;
/// A value that is in too few cells counts as much as so many new pairs.
const RARE: usize = 100;

/// The worst cells of the model, then those of `all` that have most values which are rare so far, and most pairs of values that are new.
pub fn choose(worst: &[Cell], all: &[Cell]) -> Vec<Cell> {
    let mut chosen: Vec<Cell> = worst.to_vec();
    while chosen.len() < CELLS.min(all.len()) {
        let seen: BTreeSet<_> = chosen.iter().flat_map(pairs).collect();
        let score = |cell: &Cell| {
            let new = pairs(cell).filter(|pair| !seen.contains(pair)).count();
            new + RARE * rare(cell, &chosen)
        };
        let left = all.iter().filter(|cell| !chosen.contains(cell));
        // The first of equal ones: max_by_key has the last.
        let Some(next) = left.rev().max_by_key(|cell| score(cell)) else { break };
        chosen.push(*next);
    }
    chosen
}

/// The values of `cell` that are in too few of `chosen`.
fn rare(cell: &Cell, chosen: &[Cell]) -> usize {
    let is_rare = |(axis, value): &(usize, usize)| {
        chosen.iter().filter(|other| other.at()[*axis] == *value).count() < EACH
    };
    cell.at().into_iter().enumerate().filter(is_rare).count()
}

/// Its pairs of values on two axes.
fn pairs(cell: &Cell) -> impl Iterator<Item = [(usize, usize); 2]> + use<> {
    let at = cell.at();
    let second = move |a: usize| (a + 1..at.len()).map(move |b| [(a, at[a]), (b, at[b])]);
    (0..at.len()).flat_map(second)
}

#[cfg(test)]
mod tests {
    use eke_bench_cache::tiers::grid::AXES;

    use super::*;

    #[test]
    fn the_cells_have_the_worst_ones_and_cover_the_grid() {
        let all = Cell::all(false);
        let worst: Vec<Cell> = all.iter().copied().take(10).collect();
        let chosen = choose(&worst, &all);
        assert_eq!((chosen.len(), &chosen[..10]), (CELLS, &worst[..]));
        assert_eq!(chosen.iter().collect::<BTreeSet<_>>().len(), CELLS, "each once");
        for (axis, (name, count)) in AXES.into_iter().enumerate() {
            for value in 0..count {
                let cells = chosen.iter().filter(|cell| cell.at()[axis] == value).count();
                assert!(cells >= EACH, "{name} {value}: {cells}");
            }
        }
        let covered: BTreeSet<_> = chosen.iter().flat_map(pairs).collect();
        let possible: BTreeSet<_> = all.iter().flat_map(pairs).collect();
        assert!(10 * covered.len() >= 9 * possible.len(), "{} of {}", covered.len(), possible.len());
        assert_eq!(chosen, choose(&worst, &all));
    }
}
