//! The subjects that are compared, and the cases that are measured.

use eke_results::report::{Role, Variant};

use super::Options;

/// A cache or baseline that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Memcpy,
    Lz4,
    Quick,
    Eke,
    Queue,
    Recompressed,
}

impl Subject {
    pub const ALL: [Self; 6] =
        [Self::Memcpy, Self::Lz4, Self::Quick, Self::Eke, Self::Queue, Self::Recompressed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Lz4 => "LZ4 alone",
            Self::Quick => "quick_cache",
            Self::Eke => "eke",
            Self::Queue => "eke, queued",
            Self::Recompressed => "eke, recompressed",
        }
    }

    pub fn variant(self) -> Variant {
        let (role, set_up) = match self {
            Self::Memcpy => (Role::Baseline, "copies blocks"),
            Self::Lz4 => {
                (Role::Baseline, "lz4_flex (safe); each thread reuses its tables and buffers; keeps nothing")
            }
            Self::Quick => (
                Role::Peer,
                "quick_cache 0.7 with its defaults, blocks as Arc<[u8]> compressed by the same LZ4, weighed by compressed bytes; no checksum",
            ),
            Self::Eke => (
                Role::Ours,
                "the store as it is mounted: LZ4, a checksum for each block, S3-FIFO by compressed bytes; blocks are compressed before the call returns",
            ),
            Self::Queue => (
                Role::Variation,
                "blocks go into a queue and the call returns; one worker per thread compresses them. A thread that finds the queue full yields the CPU. Times are those of the call",
            ),
            Self::Recompressed => {
                (Role::Variation, "after a round that recompresses the blocks that stay, by zstd 9")
            }
        };
        Variant { name: self.name().into(), role, set_up: set_up.into() }
    }
}

/// A case that is measured.
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
    /// Hits and insertions with blocks of the size with this index.
    BlockSize {
        size: usize,
    },
    Zeros,
    Noise,
}

impl Case {
    /// All cases, with 1 to `options.threads` threads and `sizes` block sizes.
    pub fn all(options: &Options, sizes: usize) -> Vec<Self> {
        let threads = || counts(options.threads);
        let mut all: Vec<Self> = threads().map(|threads| Self::Hits { threads }).collect();
        all.extend(threads().map(|threads| Self::Misses { threads }));
        all.extend(threads().map(|threads| Self::Inserts { threads }));
        all.extend(threads().map(|threads| Self::Mixed { threads }));
        all.extend((0..sizes).map(|size| Self::BlockSize { size }));
        all.extend([Self::Zeros, Self::Noise]);
        all
    }

    /// The subjects that are measured in this case.
    pub const fn subjects(self) -> &'static [Subject] {
        match self {
            Self::Hits { .. } => {
                &[Subject::Memcpy, Subject::Lz4, Subject::Quick, Subject::Eke, Subject::Recompressed]
            }
            Self::Inserts { .. } => &[Subject::Lz4, Subject::Quick, Subject::Eke, Subject::Queue],
            Self::BlockSize { .. } => &[Subject::Memcpy, Subject::Lz4, Subject::Quick, Subject::Eke],
            Self::Misses { .. } | Self::Mixed { .. } | Self::Zeros => &[Subject::Quick, Subject::Eke],
            Self::Noise => &[Subject::Lz4, Subject::Quick, Subject::Eke],
        }
    }
}

/// The powers of two below `most`, and `most`.
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
    fn every_case_has_eke_and_its_peer() {
        let options = Options { threads: 4, ..Options::default() };
        let all = Case::all(&options, 4);
        assert_eq!(all.len(), 4 * 3 + 4 + 2);
        let both = |case: &Case| [Subject::Eke, Subject::Quick].iter().all(|s| case.subjects().contains(s));
        assert!(all.iter().all(both));
    }
}
