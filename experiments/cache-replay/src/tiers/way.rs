//! The ways to use a page cache and a compressed store.

/// A way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The page cache has all memory: ext4.
    PageCache,
    /// The store may have this share of the memory, and takes what every miss brings in.
    Inclusive(u8),
    /// The same, but it takes a piece at its second miss.
    Late(u8),
    /// As [`Self::Inclusive`], but it evicts first what the page cache has, too.
    ResidentFirst(u8),
    /// The store takes only what the page cache evicts, and gives away what it serves: ideal, as no kernel reports evictions.
    Exclusive(u8),
    /// The store may have 95 % and holds everything; only files that were requested often, or do not compress, go through the page cache, the others by
    /// direct I/O.
    Direct,
    /// What the product does by itself, over the directory itself: admission, size, passthrough, and whether it stands aside, are its own code; its
    /// reads go through the page cache.
    Eke,
}

impl Way {
    /// All ways, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::PageCache,
        Self::Inclusive(25),
        Self::Inclusive(80),
        Self::Late(80),
        Self::ResidentFirst(80),
        Self::Exclusive(80),
        Self::Direct,
        Self::Eke,
    ];

    /// The name in the table.
    pub fn name(self) -> String {
        match self {
            Self::PageCache => "ext4".into(),
            Self::Inclusive(percent) => format!("inclusive {percent} %"),
            Self::Late(percent) => format!("late {percent} %"),
            Self::ResidentFirst(percent) => format!("resident first {percent} %"),
            Self::Exclusive(percent) => format!("exclusive {percent} %"),
            Self::Direct => "direct I/O".into(),
            Self::Eke => "eke".into(),
        }
    }

    /// Its description.
    pub fn about(self) -> &'static str {
        match self {
            Self::PageCache => "all memory to the page cache",
            Self::Inclusive(25) => {
                "a quarter of the memory to the store, as eke had by default until 2026-11; the store takes what each miss brings in"
            }
            Self::Inclusive(_) => "the same with four fifths",
            Self::Late(_) => "the same, but a block enters the store at its second miss",
            Self::ResidentFirst(_) => "the same, but the store evicts first what the page cache has, too",
            Self::Exclusive(_) => {
                "the store takes what the page cache evicts, and gives back what it serves: ideal, because the kernel reports no evictions"
            }
            Self::Direct => {
                "95 % to the store, which takes every miss; files that were requested three times go through the page cache, the others by direct I/O"
            }
            Self::Eke => {
                "a mount at its defaults, over the directory itself: eke's own code decides on admission, passthrough, size, and when it stands aside, by the model's clock; reads go through the page cache"
            }
        }
    }

    /// The most of the memory that the store may have, in percent.
    pub(super) fn percent(self) -> u8 {
        match self {
            Self::PageCache | Self::Eke => 0,
            Self::Inclusive(percent)
            | Self::Late(percent)
            | Self::ResidentFirst(percent)
            | Self::Exclusive(percent) => percent,
            Self::Direct => 95,
        }
    }
}
