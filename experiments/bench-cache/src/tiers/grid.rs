//! The grid: content, working set, popularity, files and disk, each with each. Pure.

use eke_cache_replay::tiers::{Disk, Load, Machine, Popularity, Sizes};
use eke_model::units::Bytes;
use eke_slow_disk::Profile;

/// The memory of both tiers.
pub const MEMORY: Bytes = Bytes::mib(1024);
/// How well the content compresses.
pub const CONTENTS: [f64; 4] = [1.0, 1.3, 1.9, 2.5];
/// The files' bytes, in multiples of the memory.
pub const WORKING_SETS: [f64; 4] = [0.3, 1.2, 4.0, 10.0];
/// The popularity of files, by its name in the table.
pub const REQUESTS: [(&str, Popularity); 5] = [
    ("zipf 0.6", Popularity::Zipf(0.6)),
    ("zipf 0.8", Popularity::Zipf(0.8)),
    ("zipf 1.0", Popularity::Zipf(1.0)),
    ("uniform", Popularity::Zipf(0.0)),
    ("scan", Popularity::ZipfAndScan(0.8)),
];
/// The sizes of files, by their name in the table; no bytes for the mix.
pub const FILES: [(&str, u64); 5] =
    [("4K", 4 << 10), ("64K", 64 << 10), ("1M", 1 << 20), ("100M", 100_000_000), ("mixed", 0)];
/// The disks, by their name in the table.
pub const DISKS: [&str; 4] = ["2008", "sd", "nfs 1g", "memory"];

/// Reads of a disk as fast as memory.
const MEMORY_RATE: f64 = 8e9;
/// A profile's size of a request for its requests a second.
const PAGE: f64 = 4096.0;

/// A point of the grid, as indices of the lists above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// In [`CONTENTS`].
    pub content: usize,
    /// In [`WORKING_SETS`].
    pub working_set: usize,
    /// In [`REQUESTS`].
    pub requests: usize,
    /// In [`FILES`].
    pub files: usize,
    /// In [`DISKS`].
    pub disk: usize,
}

/// The axes, by their names in the table, and the number of values of each.
pub const AXES: [(&str, usize); 5] = [
    ("content", CONTENTS.len()),
    ("working set", WORKING_SETS.len()),
    ("requests", REQUESTS.len()),
    ("files", FILES.len()),
    ("disk", DISKS.len()),
];

impl Cell {
    /// Its value on each axis, in the order of [`AXES`].
    pub fn at(&self) -> [usize; 5] {
        [self.content, self.working_set, self.requests, self.files, self.disk]
    }

    /// The cell with these values.
    pub fn of([content, working_set, requests, files, disk]: [usize; 5]) -> Self {
        Self { content, working_set, requests, files, disk }
    }

    /// The names of its values, in the order of [`AXES`].
    pub fn names(&self) -> [String; 5] {
        [
            format!("{:.1}", CONTENTS[self.content]),
            WORKING_SETS[self.working_set].to_string(),
            REQUESTS[self.requests].0.into(),
            FILES[self.files].0.into(),
            DISKS[self.disk].into(),
        ]
    }

    /// All cells; with `quick` few values of each axis.
    pub fn all(quick: bool) -> Vec<Self> {
        let few: [&[usize]; 5] = [&[0, 2], &[1, 2], &[1, 4], &[0, 4], &[0, 3]];
        let mut cells = vec![[0; 5]];
        for (axis, (_, count)) in AXES.iter().enumerate() {
            let values: Vec<usize> = if quick { few[axis].to_vec() } else { (0..*count).collect() };
            cells = cells
                .iter()
                .flat_map(|cell| {
                    values.iter().map(move |value| {
                        let mut cell = *cell;
                        cell[axis] = *value;
                        cell
                    })
                })
                .collect();
        }
        cells.into_iter().map(Self::of).collect()
    }

    /// The sizes of its files.
    pub fn sizes(&self) -> Sizes {
        match FILES[self.files].1 {
            0 => Sizes::mixed(),
            bytes => Sizes::Equal(bytes),
        }
    }

    /// Its files and requests for a machine with `memory`.
    pub fn load(&self, memory: Bytes, seed: u64) -> Load {
        Load::new(
            REQUESTS[self.requests].1,
            &self.sizes(),
            memory.scaled(WORKING_SETS[self.working_set]).0,
            seed,
        )
    }

    /// Its machine.
    pub fn machine(&self, memory: Bytes) -> Machine {
        Machine { memory, ratio: CONTENTS[self.content], disk: disk(self.disk) }
    }
}

/// The slow disk of this index; `None` for memory.
pub fn profile(index: usize) -> Option<Profile> {
    Profile::named(["scsi2008", "sd", "nfs1g"].get(index)?)
}

fn disk(index: usize) -> Disk {
    let name = DISKS[index].to_owned();
    let Some(profile) = profile(index) else {
        return Disk { name, rate: MEMORY_RATE, positioning_s: 0.0, latency_s: 0.0 };
    };
    let rate = profile.rate as f64;
    let alone = 1.0 / profile.nominal_iops(1) - PAGE / rate;
    let overlaps = profile.latency.seconds();
    Disk { name, rate, positioning_s: (alone - overlaps).max(0.0), latency_s: overlaps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_whole() {
        let all = Cell::all(false);
        assert_eq!((all.len(), Cell::all(true).len()), (1600, 32));
        assert!(all.windows(2).all(|two| two[0] < two[1]), "each once");
        assert_eq!(all[1599].names(), ["2.5", "10", "scan", "mixed", "memory"]);
    }

    #[test]
    fn the_disks_have_the_timing_of_their_profiles() {
        let random = |index: usize| {
            let disk = disk(index);
            1.0 / (disk.seconds(1, 4096) + disk.latency_s)
        };
        for (index, iops) in [(0, 150.0), (1, 2000.0), (2, 1876.9)] {
            assert!((random(index) / iops - 1.0).abs() < 0.001, "{index}: {}", random(index));
        }
    }
}
