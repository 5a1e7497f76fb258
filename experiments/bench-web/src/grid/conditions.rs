//! A cell of the grid on this machine: its memory, files, requests and disk. Pure.

use std::time::Duration;

use eke_bench_cache::tiers::grid::{self, Cell, FILES, REQUESTS, WORKING_SETS};
use eke_bench_cache::tiers::{Modelled, modelled};
use eke_cache_replay::tiers::Popularity;
use eke_model::units::Bytes;
use eke_statistics::Random;

use crate::content::classes::FileSpec;
use crate::content::filled::specs;
use crate::plan::{Conditions, DEFAULT_SHARE};
use crate::requests::Requests;
use crate::server;

/// Of this memory the programs in the box take about so much.
const PROGRAMS: Bytes = Bytes::mib(24);
/// A scan's files have so many times the memory: they come again when nothing of them is left.
const SCANNED: f64 = 1.5;
const CONNECTIONS: usize = 32;
const SEED: u64 = 1;

/// The box's memory. Small files need little; of large ones some must fit.
pub fn memory(cell: &Cell) -> Bytes {
    match FILES[cell.files].1 {
        0 => Bytes::mib(512),
        bytes if bytes > 16 << 20 => Bytes::mib(512),
        bytes if bytes <= 4 << 10 => Bytes::mib(96),
        _ => Bytes::mib(128),
    }
}

/// The number of files that come again and again, and all files.
pub fn files(cell: &Cell) -> (usize, Vec<FileSpec>) {
    let (sizes, memory) = (cell.sizes(), memory(cell));
    let count = |times: f64| {
        let count = memory.scaled(times).0 / sizes.mean().max(1);
        usize::try_from(count).unwrap_or(usize::MAX).max(1)
    };
    let repeated = count(WORKING_SETS[cell.working_set]);
    let is_scan = matches!(REQUESTS[cell.requests].1, Popularity::ZipfAndScan(_));
    let all = repeated + if is_scan { count(SCANNED) } else { 0 };
    (repeated, specs(&sizes.of(all, &mut Random::new(SEED))))
}

/// The conditions of its runs.
pub fn conditions(cell: &Cell, repeated: usize) -> Conditions {
    Conditions {
        server: server::Kind::Nginx,
        memory: memory(cell),
        // Only the web server's own content has clients.
        clients: 1,
        connections: CONNECTIONS,
        requests: Requests::Cell { exponent: REQUESTS[cell.requests].1.exponent(), repeated },
        think: Duration::ZERO,
        share: DEFAULT_SHARE,
        disk: grid::profile(cell.disk).map(|profile| profile.name),
    }
}

/// What the model says of the cell with this memory.
pub fn model(cell: &Cell) -> Modelled {
    let memory = memory(cell);
    modelled(*cell, &cell.load(memory, SEED), memory.saturating_sub(PROGRAMS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_working_set_of_its_memory_and_a_scan_has_more_files() {
        let by_files = |cell: &Cell| (cell.content, cell.disk) == (0, 0) && [0, 4].contains(&cell.requests);
        for cell in Cell::all(false).into_iter().filter(by_files) {
            let (repeated, files) = files(&cell);
            let bytes: u64 = files[..repeated].iter().map(|file| file.bytes).sum();
            let wanted = memory(&cell).scaled(WORKING_SETS[cell.working_set]).0;
            assert!(bytes <= 2 * wanted.max(100_000_000), "{:?}: {bytes} of {wanted}", cell.names());
            assert_eq!(files.len() > repeated, cell.requests == 4, "{:?}", cell.names());
        }
        let cell = Cell::all(false)[1599];
        let of = conditions(&cell, 7);
        assert_eq!((of.disk, of.memory), (None, Bytes::mib(512)));
        assert_eq!(conditions(&Cell { disk: 2, ..cell }, 7).disk.unwrap(), "nfs1g");
    }
}
