//! What maintenance can do to a device, as data.

use std::fmt;

/// How pages are marked idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// All; who is used loses the mark (Linux 4.14).
    All,
    /// Those not used for so many seconds (Linux 5.17 with CONFIG_ZRAM_MEMORY_TRACKING, since 6.8 ..._TRACK_ENTRY_ACTIME).
    Seconds(u64),
}

/// Which pages a round is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Idle and incompressible.
    HugeIdle,
    /// Idle.
    Idle,
    /// Incompressible.
    Huge,
}

impl Kind {
    /// The kernel's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::HugeIdle => "huge_idle",
            Self::Idle => "idle",
            Self::Huge => "huge",
        }
    }
}

/// One write to the kernel, or one round of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Mark pages idle.
    MarkIdle {
        /// `zram1`.
        device: String,
        /// Which.
        age: Age,
    },
    /// Recompress.
    Recompress {
        /// `zram1`.
        device: String,
        /// Which pages.
        kind: Kind,
        /// The one secondary algorithm to use.
        priority: u32,
        /// The most pages (`max_pages`: Linux 6.8; older kernels do not heed it).
        max_pages: u64,
    },
    /// Write back.
    WriteBack {
        /// `zram1`.
        device: String,
        /// Which pages.
        kind: Kind,
        /// The most, in units of [`super::ledger::UNIT`].
        limit_units: u64,
    },
}

impl Action {
    /// The device that it is about.
    pub fn device(&self) -> &str {
        match self {
            Self::MarkIdle { device, .. }
            | Self::Recompress { device, .. }
            | Self::WriteBack { device, .. } => device,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MarkIdle { age: Age::All, .. } => write!(f, "mark all pages idle"),
            Self::MarkIdle { age: Age::Seconds(s), .. } => {
                write!(f, "mark pages idle that were not used for {s} s")
            }
            Self::Recompress { kind, priority, .. } => {
                write!(f, "recompress {} pages with algorithm {priority}", kind.word())
            }
            Self::WriteBack { kind, .. } => write!(f, "write {} pages back", kind.word()),
        }
    }
}
