//! What a page from the disk of a swap area costs.
//!
//! A read of blocks that were never written reaches no disk, and takes microseconds anywhere: a swap file made by fallocate(1), a virtual disk that is
//! allotted on demand, a trimmed SSD. Of files only written blocks are timed. So a fast answer of a block device alone is doubted, if the device claims to
//! seek. Many that do not seek claim it, too: disks of virtual machines, RAID controllers, storage networks.

use eke_model::units::Nanos;

use super::Given;
use crate::facts::{DiskArea, DiskKind};
use crate::measure::measurements::DiskLatency;

/// The fastest that a rotating disk is believed to be: it seeks for milliseconds.
const LEAST_SEEK: Nanos = Nanos::micros(1000);

/// The latency of a page from a swap area's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SwapDisk {
    /// The median.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// Was it files of the same disk that took so long?
    pub by_files: bool,
}

/// Why the latency is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownLatency {
    /// A sentence.
    pub why: String,
    /// Does the disk seek, as far as anything shows?
    pub seeks: bool,
}

/// Of the area and of files on the same disk, the slower reads count.
pub(super) fn of(given: Given<'_>, area: &str) -> Result<SwapDisk, UnknownLatency> {
    let on = given.facts.disk_areas.iter().find(|disk| disk.path == area);
    let own = own(given, area);
    let files = given.measured.file_read.as_ref().filter(|files| files.p50 > Nanos(0) && is_on(files, on));
    match (own, files) {
        (own, Some(files)) => Ok(slower(own, files)),
        (Some(own), None) if seeks(on) && own.p50 < LEAST_SEEK && !is_file(given, area) => {
            let why = format!(
                "{area} answered in {}, which no rotating disk does: nothing was written there yet, or the disk does not rotate",
                own.p50
            );
            Err(UnknownLatency { why, seeks: false })
        }
        (Some(own), None) => Ok(SwapDisk { p50: own.p50, p99: own.p99, by_files: false }),
        (None, None) => {
            Err(UnknownLatency { why: format!("{area} could not be measured"), seeks: seeks(on) })
        }
    }
}

/// The measurement of this area; `None` if the measurement is older than the area.
fn own<'a>(given: Given<'a>, area: &str) -> Option<&'a DiskLatency> {
    given.measured.swap_disk.as_ref().filter(|disk| disk.what == area && disk.p50 > Nanos(0))
}

fn is_on(files: &DiskLatency, area: Option<&DiskArea>) -> bool {
    files.device.is_some() && files.device == area.and_then(|area| area.device.clone())
}

/// Is it a swap file, as `/proc/swaps` says?
fn is_file(given: Given<'_>, area: &str) -> bool {
    given.facts.areas.iter().any(|of| of.path == area && of.kind == "file")
}

fn seeks(area: Option<&DiskArea>) -> bool {
    area.is_some_and(|area| area.kind == DiskKind::Rotating)
}

fn slower(own: Option<&DiskLatency>, files: &DiskLatency) -> SwapDisk {
    let (p50, p99) = own.map_or((Nanos(0), Nanos(0)), |own| (own.p50, own.p99));
    SwapDisk { p50: p50.max(files.p50), p99: p99.max(files.p99), by_files: files.p50 > p50 }
}
