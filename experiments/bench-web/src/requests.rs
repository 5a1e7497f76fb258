//! The sequence of requested files. Pure.

use std::fmt;
use std::str::FromStr;

use super::content::classes::PER_DIRECTORY;
use eke_statistics::random::share_at;

use super::random::stream;

const SEED: u64 = 2008;

/// The popularity of files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Requests {
    /// Zipf's law: the file of rank n is requested in proportion to n to the power of minus this.
    Zipf(f64),
    /// All files equally often.
    Uniform,
    /// A cell of the grid.
    Cell {
        /// Zipf's law with this exponent for the first files, in their order.
        exponent: f64,
        /// The number of these. The others come in turn, as every fifth request: a scan.
        repeated: usize,
    },
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Self::Uniform => f.write_str("uniform"),
            Self::Cell { exponent, repeated } => write!(f, "zipf:{exponent} of {repeated} files"),
        }
    }
}

impl FromStr for Requests {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let exponent = text.strip_prefix("zipf:").and_then(|n| n.parse::<f64>().ok());
        match exponent.filter(|e| (0.0..=3.0).contains(e)) {
            Some(exponent) => Ok(Self::Zipf(exponent)),
            None if text == "uniform" => Ok(Self::Uniform),
            None => {
                Err(format!("\"{text}\" is neither `uniform` nor `zipf:EXPONENT` with 0 to 3 as in zipf:0.8"))
            }
        }
    }
}

/// An endless sequence of requests, the same in each run: a fast variant gets further in it, but has the same requests.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// The share of all requests up to each rank.
    cumulative: Vec<f64>,
    /// The file of each rank.
    files: Vec<usize>,
    /// Files that are scanned.
    scanned: std::ops::Range<usize>,
}

/// One of so many requests is the scan's, if there is one.
const SCAN_ONE_IN: u64 = 5;

impl Sequence {
    /// A sequence over `files` files, in directories of [`PER_DIRECTORY`].
    pub fn new(requests: Requests, files: usize) -> Self {
        let (exponent, repeated) = match requests {
            Requests::Zipf(exponent) => (exponent, files),
            Requests::Uniform => (0.0, files),
            Requests::Cell { exponent, repeated } => (exponent, repeated.min(files)),
        };
        let weights = (1..=repeated).map(|rank| (rank as f64).powf(-exponent));
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = weights
            .map(|w| {
                sum += w;
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|c| *c /= sum);
        let is_cell = matches!(requests, Requests::Cell { .. });
        let by_rank = if is_cell { (0..repeated).collect() } else { ranked(files) };
        Self { cumulative, files: by_rank, scanned: repeated..files }
    }

    /// The index of the file of request `index`.
    pub fn file(&self, index: u64) -> usize {
        if !self.scanned.is_empty() && index % SCAN_ONE_IN == SCAN_ONE_IN - 1 {
            let next = (index / SCAN_ONE_IN) % self.scanned.len() as u64;
            return self.scanned.start + usize::try_from(next).unwrap_or(0);
        }
        let share = share_at(SEED, index);
        let rank = self.cumulative.partition_point(|c| *c <= share).min(self.files.len().saturating_sub(1));
        self.files[rank]
    }
}

/// The files by rank. Each group of 16 consecutive ranks has one file of every position in a directory. So popular files have the class
/// mix too, and no result depends on one large file.
fn ranked(files: usize) -> Vec<usize> {
    let directories = files.div_ceil(PER_DIRECTORY);
    let mut random = stream(SEED);
    let mut by_position: Vec<Vec<usize>> = Vec::new();
    for position in 0..PER_DIRECTORY {
        let mut column: Vec<usize> =
            (0..directories).map(|d| d * PER_DIRECTORY + position).filter(|f| *f < files).collect();
        random.shuffle(&mut column);
        by_position.push(column);
    }
    let mut ranked = Vec::with_capacity(files);
    while ranked.len() < files {
        let mut group: Vec<usize> = by_position.iter_mut().filter_map(Vec::pop).collect();
        random.shuffle(&mut group);
        ranked.append(&mut group);
    }
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(requests: Requests, files: usize, count: u64) -> Vec<u64> {
        let sequence = Sequence::new(requests, files);
        let mut counts = vec![0; files];
        (0..count).for_each(|i| counts[sequence.file(i)] += 1);
        counts
    }

    #[test]
    fn ranks_are_requested_by_zipfs_law() {
        let mut counts = counts(Requests::Zipf(1.0), 400, 200_000);
        counts.sort_unstable_by_key(|c| std::cmp::Reverse(*c));
        let sum: f64 = (1..=400).map(|n| 1.0 / f64::from(n)).sum();
        for rank in [1_u32, 2, 10] {
            let expected = 200_000.0 / f64::from(rank) / sum;
            let count = counts[rank as usize - 1] as f64;
            assert!((count / expected - 1.0).abs() < 0.1, "rank {rank}: {count} instead of {expected}");
        }
    }

    #[test]
    fn uniform_is_even() {
        let counts = counts(Requests::Uniform, 100, 100_000);
        assert!(counts.iter().all(|c| (800..1200).contains(c)), "{counts:?}");
    }

    #[test]
    fn a_cell_scans_its_further_files_in_turn() {
        let counts = counts(Requests::Cell { exponent: 1.0, repeated: 40 }, 100, 10_000);
        assert!(counts[40..].iter().all(|c| (33..=34).contains(c)), "{counts:?}");
        assert!(counts[0] > 10 * counts[39] && counts[39] > 0, "{counts:?}");
    }

    #[test]
    fn popular_files_have_the_class_mix() {
        let ranked = ranked(400);
        for group in ranked.chunks(PER_DIRECTORY) {
            let mut positions: Vec<usize> = group.iter().map(|f| f % PER_DIRECTORY).collect();
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..PER_DIRECTORY));
        }
    }

    #[test]
    fn distributions_are_read_as_they_are_shown() {
        for text in ["zipf:0.8", "zipf:1", "uniform"] {
            assert_eq!(text.parse::<Requests>().unwrap().to_string(), text);
        }
        for wrong in ["", "zipf", "zipf:", "zipf:-1", "zipf:4", "zipf:NaN", "Uniform"] {
            assert!(wrong.parse::<Requests>().unwrap_err().contains("zipf:0.8"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_file_has_one_rank(files in 1usize..200) {
            let mut ranked = ranked(files);
            ranked.sort_unstable();
            prop_assert!(ranked.into_iter().eq(0..files));
        }
    }
}
