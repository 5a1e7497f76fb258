//! Actions of maintenance on a device, as data.

use std::fmt;

/// Which pages to mark idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// All; a page that is used loses the mark (Linux 4.14).
    All,
    /// Those unused for so many seconds (Linux 5.17 with CONFIG_ZRAM_MEMORY_TRACKING, since 6.8 ..._TRACK_ENTRY_ACTIME).
    Seconds(u64),
}

/// The kind of pages of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Idle and incompressible.
    HugeIdle,
    /// Idle.
    Idle,
    /// Incompressible.
    Huge,
}

impl PageKind {
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
        /// Which pages.
        age: Age,
    },
    /// Recompress.
    Recompress {
        /// `zram1`.
        device: String,
        /// Which pages.
        kind: PageKind,
        /// The one secondary algorithm to use.
        priority: u32,
        /// The most pages (`max_pages`: Linux 6.8; older kernels ignore it).
        max_pages: u64,
    },
    /// Write back.
    WriteBack {
        /// `zram1`.
        device: String,
        /// Which pages.
        kind: PageKind,
        /// The most, in units of [`super::ledger::UNIT`].
        limit_units: u64,
    },
}

impl Action {
    /// Its device.
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
                write!(f, "mark pages idle that are unused for {s} s")
            }
            Self::Recompress { kind, priority, .. } => {
                write!(f, "recompress {} pages with algorithm {priority}", kind.word())
            }
            Self::WriteBack { kind, .. } => write!(f, "write {} pages back", kind.word()),
        }
    }
}
