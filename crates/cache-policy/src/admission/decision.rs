//! The decisions about a file, and their reasons.

/// A file does not compress if all its blocks did not, or so many in a row.
pub(super) const FAILURES: u64 = 8;

/// What happens to the blocks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAdmission {
    /// They are admitted to the store.
    Admit,
    /// They are not admitted, except for a sample.
    Decline,
    /// From its next open the kernel reads the backing file itself.
    Passthrough,
}

/// What is known of whether a file compresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Unknown,
    /// It does.
    Compresses,
    /// So many blocks in a row did not.
    Fails {
        /// At least 1.
        blocks: u64,
    },
}

impl Content {
    /// True if the last blocks that were tried did not compress.
    pub fn fails(self) -> bool {
        matches!(self, Self::Fails { blocks } if blocks >= FAILURES)
    }

    /// By how many blocks in a row did not compress; `None`: not known.
    pub fn of(failures: Option<u64>) -> Self {
        match failures {
            None => Self::Unknown,
            Some(0) => Self::Compresses,
            Some(blocks) => Self::Fails { blocks },
        }
    }
}

/// Why a file's treatment changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// Admitted: hits save more than compression costs.
    Pays {
        /// h·(B − H) for a block.
        gain_us: f32,
        /// (1 − h)·P for a block.
        price_us: f32,
    },
    /// Admitted: a block costs the disk so much that the order of reads pays.
    OrderPays {
        /// A block's cost from the backing file.
        backing_us: f32,
    },
    /// Declined: compression costs more than hits save.
    NoReturn {
        /// h·(B − H) for a block.
        gain_us: f32,
        /// (1 − h)·P for a block.
        price_us: f32,
    },
    /// Declined: it is read as a stream, and the store cannot hold it.
    Stream {
        /// The file's size in blocks of 64 KiB.
        size_blocks: u64,
        /// The blocks that the store has room for.
        room_blocks: u64,
    },
    /// Passthrough: the file does not compress, so the store keeps nothing of it.
    Incompressible,
    /// Passthrough: nothing is known of the file, and of others hardly a block compresses.
    LikeOthers {
        /// The share of others' blocks that do not compress, in percent.
        percent: u8,
    },
    /// Passthrough: the path through the cache costs more.
    BackingFaster {
        /// A block's cost through this process.
        through_us: f32,
        /// A block's cost from the backing file.
        backing_us: f32,
    },
    /// No more passthrough: the path through the cache costs about the same or less.
    BackingNotFaster {
        /// A block's cost through this process.
        through_us: f32,
        /// A block's cost from the backing file.
        backing_us: f32,
    },
}

impl Reason {
    /// The treatment that it leads to.
    pub fn admission(self) -> FileAdmission {
        match self {
            Self::Pays { .. } | Self::OrderPays { .. } | Self::BackingNotFaster { .. } => {
                FileAdmission::Admit
            }
            Self::NoReturn { .. } | Self::Stream { .. } => FileAdmission::Decline,
            Self::Incompressible | Self::LikeOthers { .. } | Self::BackingFaster { .. } => {
                FileAdmission::Passthrough
            }
        }
    }

    /// A sentence for people.
    pub fn sentence(self) -> String {
        let mib = |blocks: u64| blocks / 16;
        match self {
            Self::Pays { gain_us, price_us } => {
                format!("cached: hits save {gain_us:.0} µs a block, compression costs {price_us:.0} µs")
            }
            Self::OrderPays { backing_us } => {
                format!("cached: {backing_us:.0} µs a block from the disk, so the order of reads pays")
            }
            Self::NoReturn { gain_us, price_us } => {
                format!("not cached: hits save {gain_us:.0} µs a block, compression costs {price_us:.0} µs")
            }
            Self::Stream { size_blocks, room_blocks } => format!(
                "not cached: a stream of {} MiB, and the cache has room for {} MiB",
                mib(size_blocks),
                mib(room_blocks)
            ),
            Self::Incompressible => {
                "passthrough: the file does not compress, so the cache keeps nothing of it".into()
            }
            Self::LikeOthers { percent } => {
                format!("passthrough: {percent} % of what was read lately does not compress")
            }
            Self::BackingFaster { through_us, backing_us } => {
                format!(
                    "passthrough: {backing_us:.0} µs a block from the disk, {through_us:.0} µs through the cache"
                )
            }
            Self::BackingNotFaster { through_us, backing_us } => {
                format!(
                    "no more passthrough: {backing_us:.0} µs a block from the disk, {through_us:.0} µs through the cache"
                )
            }
        }
    }
}
