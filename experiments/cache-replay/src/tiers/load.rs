//! Files and requests. The same seed gives the same load.
//!
//! A load has at most [`MOST_FILES`] files. A larger working set is sampled: one file stands for `scale` neighbours in the order of popularity and has
//! their mean popularity, and the replay has 1/`scale` of the memory. Files keep their sizes. This is the spatial sampling of SHARDS (Waldspurger, Park,
//! Garthwaite, Ahmad: *Efficient MRC construction with SHARDS*, FAST '15), with strata instead of a hash.

use eke_statistics::Random;

/// The most files of a load without a scan.
pub const MOST_FILES: u64 = 3000;
/// A file has at most so many pieces, and a piece at least so many bytes.
const PIECES: u64 = 8;
const PIECE: u64 = 64 << 10;
/// Requests: so many for each file, within these limits.
const REQUESTS_A_FILE: u64 = 10;
const REQUESTS: (u64, u64) = (6000, 30_000);
/// One of so many requests is the scan's, if there is one.
const SCAN_ONE_IN: usize = 5;

/// How popular files are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Popularity {
    /// Zipf's law with this exponent; 0 is uniform.
    Zipf(f64),
    /// The same, and every fifth request is for a file that comes once.
    ZipfAndScan(f64),
}

impl Popularity {
    /// The exponent of Zipf's law.
    pub fn exponent(self) -> f64 {
        match self {
            Self::Zipf(exponent) | Self::ZipfAndScan(exponent) => exponent,
        }
    }
}

/// The sizes of files.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// All the same, in bytes.
    Equal(u64),
    /// Sizes in bytes, and how many of each are among so many neighbours in the order of popularity.
    Mixed(Vec<(u64, usize)>),
}

impl Sizes {
    /// 4 KiB to 100 MB: of 50 files 15 have 4 KiB, 15 64 KiB, 15 1 MiB, 4 16 MiB, and one 100 MB.
    pub fn mixed() -> Self {
        Self::Mixed(vec![(4 << 10, 15), (64 << 10, 15), (1 << 20, 15), (16 << 20, 4), (100_000_000, 1)])
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> u64 {
        match self {
            Self::Equal(bytes) => *bytes,
            Self::Mixed(classes) => {
                let count: usize = classes.iter().map(|(_, count)| count).sum();
                classes.iter().map(|(bytes, count)| bytes * *count as u64).sum::<u64>() / count.max(1) as u64
            }
        }
    }

    /// The sizes of `count` files in the order of popularity: each group of neighbours has the whole mix.
    pub fn of(&self, count: usize, random: &mut Random) -> Vec<u64> {
        let Self::Mixed(classes) = self else { return vec![self.mean(); count] };
        let group: Vec<u64> =
            classes.iter().flat_map(|(bytes, count)| std::iter::repeat_n(*bytes, *count)).collect();
        let mut sizes = Vec::with_capacity(count + group.len());
        while sizes.len() < count && !group.is_empty() {
            let mut next = group.clone();
            random.shuffle(&mut next);
            sizes.append(&mut next);
        }
        sizes.truncate(count);
        sizes
    }
}

/// A file: its pieces are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Bytes.
    pub bytes: u64,
    /// The first piece.
    pub first: u32,
    /// The number of pieces, at least 1.
    pub pieces: u32,
}

/// Files and requests for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The files; those of a scan are the last ones.
    pub files: Vec<File>,
    /// The bytes of each piece.
    pub pieces: Vec<u32>,
    /// The files in the order of requests.
    pub requests: Vec<u32>,
    /// Requests that fill the caches, before it is measured.
    pub warm: usize,
    /// Each file stands for so many, and the memory is divided by it.
    pub scale: u64,
}

impl Load {
    /// A load of `working_set` bytes of files. Before its requests every file that can come again is read twice, in random order: what is measured is a steady
    /// state, without first visits.
    pub fn new(popularity: Popularity, sizes: &Sizes, working_set: u64, seed: u64) -> Self {
        let wanted = (working_set / sizes.mean().max(1)).max(1);
        let scale = wanted.div_ceil(MOST_FILES);
        let count = wanted / scale;
        let requests = (count * REQUESTS_A_FILE).clamp(REQUESTS.0, REQUESTS.1) as usize;
        let mut random = Random::new(seed);
        let scanned = matches!(popularity, Popularity::ZipfAndScan(_)).then_some(requests / SCAN_ONE_IN);
        let all = sizes.of(count as usize + scanned.unwrap_or(0), &mut random);
        let upto = cumulative(count, scale, popularity.exponent());
        let mut next_scanned = count as u32;
        let mut visits: Vec<u32> = (0..count as u32).chain(0..count as u32).collect();
        random.shuffle(&mut visits);
        let drawn = (0..requests).map(|number| {
            if scanned.is_some() && number % SCAN_ONE_IN == SCAN_ONE_IN - 1 {
                next_scanned += 1;
                return next_scanned - 1;
            }
            let share = random.share();
            (upto.partition_point(|upto| *upto < share) as u32).min(count as u32 - 1)
        });
        let warm = visits.len() + requests / 2;
        visits.extend(drawn);
        Self::of(&all, visits, warm, scale)
    }

    /// The same files and requests from empty caches, without the visits before: as many as are measured otherwise.
    pub fn cold(&self) -> Self {
        let measured = self.requests.len() - self.warm;
        let requests = self.requests[self.warm - measured..self.warm].to_vec();
        Self { requests, warm: 0, ..self.clone() }
    }

    /// A load of these sizes and requests, of which the first `warm` fill the caches.
    pub fn of(sizes: &[u64], requests: Vec<u32>, warm: usize, scale: u64) -> Self {
        let (mut files, mut pieces) = (Vec::with_capacity(sizes.len()), Vec::new());
        for &bytes in sizes {
            let first = pieces.len() as u32;
            let piece = PIECE.max(bytes.div_ceil(PIECES));
            let count = bytes.div_ceil(piece).max(1);
            pieces.extend((0..count).map(|n| (bytes - n * piece).min(piece) as u32));
            files.push(File { bytes, first, pieces: count as u32 });
        }
        Self { files, pieces, requests, warm, scale }
    }
}

/// The share of requests up to each file, of which each has the mean popularity of `scale` ranks.
fn cumulative(count: u64, scale: u64, exponent: f64) -> Vec<f64> {
    let stratum = |n: u64| {
        let ranks = n * scale + 1..=(n + 1) * scale;
        ranks.map(|rank| (rank as f64).powf(-exponent)).sum::<f64>()
    };
    let mut sum = 0.0;
    let mut upto: Vec<f64> = (0..count)
        .map(|n| {
            sum += stratum(n);
            sum
        })
        .collect();
    upto.iter_mut().for_each(|upto| *upto /= sum);
    upto
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_reproducible_and_large_ones_are_sampled() {
        let load = |seed| Load::new(Popularity::Zipf(0.8), &Sizes::Equal(4096), 1 << 30, seed);
        assert_eq!(load(1), load(1));
        assert_ne!(load(1).requests, load(2).requests);
        let sampled = load(1);
        assert_eq!((sampled.scale, sampled.files.len()), (88, 2978));
        let drawn = &sampled.requests[2 * 2978..];
        assert_eq!((drawn.len(), sampled.warm), (29_780, 2 * 2978 + 14_890));
        assert_eq!(sampled.cold().requests, drawn[..14_890]);
        let first = drawn.iter().filter(|file| **file == 0).count() as f64;
        let of = |ranks: u64| (1..=ranks).map(|rank| (rank as f64).powf(-0.8)).sum::<f64>();
        let expected = drawn.len() as f64 * of(88) / of(262_144);
        assert!((first / expected - 1.0).abs() < 0.1, "{first} {expected}");
    }

    #[test]
    fn files_are_cut_into_pieces_that_have_all_their_bytes() {
        let load = Load::new(Popularity::ZipfAndScan(0.8), &Sizes::mixed(), 4 << 30, 1);
        for file in &load.files {
            let pieces = &load.pieces[file.first as usize..][..file.pieces as usize];
            assert_eq!(pieces.iter().map(|bytes| u64::from(*bytes)).sum::<u64>(), file.bytes);
            assert!((1..=8).contains(&file.pieces));
        }
        let scanned = 2 * (load.requests.len() - load.warm) / SCAN_ONE_IN;
        let regular = (load.files.len() - scanned) as u32;
        assert_eq!(load.requests.iter().filter(|file| **file >= regular).count(), scanned);
    }
}
