//! The notices of the process: one line of JSON each, on standard output.

use std::path::PathBuf;

use serde::Serialize;

use crate::choose::disks::DiskReport;

/// A notice. Names are escaped as by [`Program`](eke_prefetch_model::Program), because they may be any bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Notice {
    /// The process is ready.
    Ready {
        /// How launches are traced, and why not by a better method.
        source: String,
        /// Number of learned programs.
        programs: usize,
        /// The store's path.
        store: PathBuf,
    },
    /// A launch was learned.
    Learned {
        /// The program.
        program: String,
        /// The launch's duration in seconds.
        took_s: f64,
        /// Files of the program's new set.
        files: usize,
        /// Their bytes.
        bytes: u64,
        /// Bytes that this launch read from the disk.
        cold_bytes: u64,
    },
    /// A launch was traced completely and not stored: it read almost nothing.
    NotKept {
        /// The program.
        program: String,
    },
    /// The missing pages of a started program were read.
    AtExec {
        /// The program.
        program: String,
        /// Bytes read from the disk.
        bytes: u64,
        /// Bytes that were resident before.
        resident_bytes: u64,
        /// Seconds from the exec until the probe's result.
        probed_s: f64,
        /// Seconds from the exec until all was read or the program ended.
        took_s: f64,
    },
    /// Files of predicted programs were read.
    Ahead {
        /// The programs whose files were chosen.
        programs: Vec<String>,
        /// Bytes read from the disk.
        bytes: u64,
        /// Bytes that were resident before.
        resident_bytes: u64,
        /// Why the fetch ended early, if it did.
        ended: Option<String>,
    },
    /// The result of measuring a disk.
    Disk {
        /// The disk's kernel name.
        disk: String,
        /// Its kind, costs and reasons; or why it was not measured.
        why: String,
    },
    /// A problem.
    Trouble {
        /// A sentence.
        what: String,
    },
}

/// The receiver of notices.
pub type Notify<'a> = &'a mut dyn FnMut(Notice);

impl From<DiskReport> for Notice {
    fn from(DiskReport { disk, why, .. }: DiskReport) -> Self {
        Self::Disk { disk, why }
    }
}
