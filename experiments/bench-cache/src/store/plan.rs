//! Whose figures, and of what.

use eke_results::report::{Role, Variant};

use super::Options;

/// Whose figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Memcpy,
    Lz4,
    Quick,
    Eke,
    Queue,
    Dense,
}

impl Who {
    pub const ALL: [Self; 6] = [Self::Memcpy, Self::Lz4, Self::Quick, Self::Eke, Self::Queue, Self::Dense];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Lz4 => "LZ4 alone",
            Self::Quick => "quick_cache",
            Self::Eke => "eke",
            Self::Queue => "eke, queued",
            Self::Dense => "eke, packed again",
        }
    }

    pub fn variant(self) -> Variant {
        let (role, set_up) = match self {
            Self::Memcpy => (Role::Baseline, "blocks copied, nothing else"),
            Self::Lz4 => (
                Role::Baseline,
                "lz4_flex (safe), the tables and buffers of each thread used again; nothing is kept",
            ),
            Self::Quick => (
                Role::Peer,
                "quick_cache 0.7 with its defaults, blocks as Arc<[u8]> packed by the same LZ4, weighed by packed bytes; no checksum",
            ),
            Self::Eke => (
                Role::Ours,
                "the store as it is mounted: LZ4, a checksum for each block, S3-FIFO by packed bytes; blocks are packed before the call returns",
            ),
            Self::Queue => (
                Role::Lever,
                "blocks go into a queue and the call returns; a worker for each thread packs them. A reader that finds the queue full yields the CPU. Times are those of the call",
            ),
            Self::Dense => (Role::Lever, "after a round of packing again what stays, by zstd 9"),
        };
        Variant { name: self.name().into(), role, set_up: set_up.into() }
    }
}

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Hits {
        threads: usize,
    },
    Misses {
        threads: usize,
    },
    Inserts {
        threads: usize,
    },
    Mixed {
        threads: usize,
    },
    /// Hits and insertions with blocks of the size at this place.
    BlockSize {
        stand: usize,
    },
    Zeros,
    Noise,
}

impl Case {
    /// All, with 1 to `threads` threads.
    pub fn all(options: &Options, stands: usize) -> Vec<Self> {
        let threads = || counts(options.threads);
        let mut all: Vec<Self> = threads().map(|threads| Self::Hits { threads }).collect();
        all.extend(threads().map(|threads| Self::Misses { threads }));
        all.extend(threads().map(|threads| Self::Inserts { threads }));
        all.extend(threads().map(|threads| Self::Mixed { threads }));
        all.extend((0..stands).map(|stand| Self::BlockSize { stand }));
        all.extend([Self::Zeros, Self::Noise]);
        all
    }

    pub const fn who(self) -> &'static [Who] {
        match self {
            Self::Hits { .. } => &[Who::Memcpy, Who::Lz4, Who::Quick, Who::Eke, Who::Dense],
            Self::Inserts { .. } => &[Who::Lz4, Who::Quick, Who::Eke, Who::Queue],
            Self::BlockSize { .. } => &[Who::Memcpy, Who::Lz4, Who::Quick, Who::Eke],
            Self::Misses { .. } | Self::Mixed { .. } | Self::Zeros => &[Who::Quick, Who::Eke],
            Self::Noise => &[Who::Lz4, Who::Quick, Who::Eke],
        }
    }
}

/// 1, 2, 4 and so on, and the most.
fn counts(most: usize) -> impl Iterator<Item = usize> {
    (0..).map(|power| 1usize << power).take_while(move |count| *count < most).chain([most])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_and_end_with_the_most() {
        let all = |most| counts(most).collect::<Vec<_>>();
        assert_eq!((all(1), all(2), all(6)), (vec![1], vec![1, 2], vec![1, 2, 4, 6]));
    }

    #[test]
    fn every_case_has_eke_and_whom_it_is_beside() {
        let options = Options { threads: 4, ..Options::default() };
        let all = Case::all(&options, 4);
        assert_eq!(all.len(), 4 * 3 + 4 + 2);
        assert!(all.iter().all(|case| case.who().contains(&Who::Eke) && case.who().contains(&Who::Quick)));
    }
}
