//! The notices of the process: a line of JSON each, on its standard output.

use std::path::PathBuf;

use serde::Serialize;

use crate::choose::disks::DiskReport;

/// One notice. Names are shown as [`Program`](eke_prefetch_model::Program) shows them: they may be of any bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Notice {
    /// It is watching.
    Ready {
        /// How launches are seen, and why not better.
        source: String,
        /// Programs that are known.
        programs: usize,
        /// The store.
        store: PathBuf,
    },
    /// A launch was learned.
    Learned {
        /// Of which program.
        program: String,
        /// How long it took.
        took_s: f64,
        /// Files of the program's set now.
        files: usize,
        /// Bytes of them.
        bytes: u64,
        /// Bytes that this launch had to read.
        cold_bytes: u64,
    },
    /// A launch was seen whole and is not kept: it read next to nothing.
    NotKept {
        /// Of which program.
        program: String,
    },
    /// What is missing of a program that has started was read.
    AtExec {
        /// Which.
        program: String,
        /// Read from the disk.
        bytes: u64,
        /// Resident before.
        resident_bytes: u64,
        /// Seconds from the exec until it was known whether something is missing.
        probed_s: f64,
        /// Seconds until all was read, or its program ended.
        took_s: f64,
    },
    /// What may be wanted soon was read.
    Ahead {
        /// Programs whose files were chosen.
        programs: Vec<String>,
        /// Read from the disk.
        bytes: u64,
        /// Resident before.
        resident_bytes: u64,
        /// Why it ended, if not because it was done.
        ended: Option<String>,
    },
    /// A disk was measured, or not.
    Disk {
        /// What is below, by its kernel's name.
        disk: String,
        /// The kind, the costs and why.
        why: String,
    },
    /// Something is not as it should be.
    Trouble {
        /// A sentence.
        what: String,
    },
}

/// Where it goes.
pub type Notify<'a> = &'a mut dyn FnMut(Notice);

impl From<DiskReport> for Notice {
    fn from(DiskReport { disk, why }: DiskReport) -> Self {
        Self::Disk { disk, why }
    }
}
