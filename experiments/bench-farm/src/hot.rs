//! Hot keys of a larger farm, computed. Pure.
//!
//! A node's own store takes what is requested often, so the engine is asked for a file at most as often as its popularity times the probability
//! that the node has lost it: `p exp(-p T)`, where all files stay in the store for the time T since their last request (Che, Tung and Wang, "Hierarchical Web
//! caching systems: modeling, design and experimental results", IEEE JSAC 20(7), 2002). This is greatest for files that are requested about once in T.

use eke_statistics::random;

/// Slots of a cluster (its specification). All blocks of a file of up to 2 MiB are in one.
const SLOTS: u64 = 16_384;

/// A farm whose nodes request files by Zipf's law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requests {
    /// Different files, of one size.
    pub files: u32,
    /// The exponent.
    pub zipf: f64,
    /// The share of requests that a node's own store answers, 0 (included) to 1 (excluded).
    pub hits: f64,
}

/// How the requests are spread.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The most popular file's share of all requests: of those to the engine while the nodes' stores are empty.
    pub popular: f64,
    /// Each file's share of the requests to the engine, the most popular first.
    engine: Vec<f64>,
}

impl Requests {
    /// How they are spread.
    #[must_use]
    pub fn spread(&self) -> Spread {
        let weights: Vec<f64> = (1..=self.files).map(|rank| f64::from(rank).powf(-self.zipf)).collect();
        let all: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / all).collect();
        let missed = |time: f64| shares.iter().map(move |share| share * (-share * time).exp());
        let (mut low, mut high) = (0.0, 1.0);
        while 1.0 - missed(high).sum::<f64>() < self.hits {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if 1.0 - missed(middle).sum::<f64>() < self.hits {
                low = middle;
            } else {
                high = middle;
            }
        }
        let all: f64 = missed(high).sum();
        let engine = missed(high).map(|part| part / all).collect();
        Spread { popular: shares.first().copied().unwrap_or_default(), engine }
    }
}

impl Spread {
    /// The share of the file that the engine is asked for most.
    #[must_use]
    pub fn hottest(&self) -> f64 {
        self.engine.iter().copied().fold(0.0, f64::max)
    }

    /// The share of the busiest of so many masters, each of which has as many neighbouring slots.
    #[must_use]
    pub fn busiest(&self, masters: usize) -> f64 {
        let mut loads = vec![0.0; masters.max(1)];
        for (file, share) in (0..).zip(&self.engine) {
            let slot = random::mix(file) % SLOTS;
            let master = slot * loads.len() as u64 / SLOTS;
            if let Some(load) = usize::try_from(master).ok().and_then(|at| loads.get_mut(at)) {
                *load += share;
            }
        }
        loads.into_iter().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(files: u32, zipf: f64, hits: f64) -> Spread {
        Requests { files, zipf, hits }.spread()
    }

    #[test]
    fn without_a_store_the_hottest_file_is_the_most_popular() {
        // 1 + 1/2 + 1/3
        let spread = spread(3, 1.0, 0.0);
        assert!(
            (spread.popular - 6.0 / 11.0).abs() < 1e-9 && (spread.hottest() - spread.popular).abs() < 1e-9
        );
    }

    #[test]
    fn a_store_takes_the_most_popular_files_from_the_engine() {
        let with = spread(2287, 0.8, 0.39);
        assert!(with.hottest() < with.popular / 20.0, "{with:?}");
        assert!(with.engine[0] < with.hottest() / 1000.0);
        assert!((with.engine.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((spread(1000, 0.0, 0.5).hottest() - 0.001).abs() < 1e-9, "where all are alike");
    }

    #[test]
    fn one_master_has_all_and_many_have_no_less_than_the_hottest_file() {
        let spread = spread(2287, 1.0, 0.39);
        assert!((spread.busiest(1) - 1.0).abs() < 1e-9);
        let (few, many) = (spread.busiest(10), spread.busiest(1000));
        assert!(few > 0.1 && few < 0.2 && many >= spread.hottest() && many < few, "{few} {many}");
    }
}
