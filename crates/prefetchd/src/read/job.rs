//! The input of this stage, as data: requests on one device, and jobs in order.

use crate::request::ReadRequest;
use eke_prefetch_disk::backing::Storage;
use eke_prefetch_disk::{DiskKind, DiskProfile};

/// A part of a file that is contiguous on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Byte offset in the file.
    pub logical: u64,
    /// Byte offset on the file system's device.
    pub physical: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// One read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// The index of its request.
    pub request: usize,
    /// Byte offset; a whole number of pages.
    pub offset: u64,
    /// Bytes; a whole number of pages, at least one.
    pub bytes: u64,
}

/// A job of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Read this piece.
    Read(Piece),
    /// List this directory.
    List(usize),
    /// Find the extents of this file.
    Locate(usize),
}

impl Job {
    /// The index of its request.
    pub fn request(&self) -> usize {
        match self {
            Self::Read(piece) => piece.request,
            Self::List(request) | Self::Locate(request) => *request,
        }
    }

    /// The most bytes that it reads.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Read(piece) => piece.bytes,
            _ => 0,
        }
    }
}

/// A request and its mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedRequest {
    /// The request.
    pub request: ReadRequest,
    /// The device number of the mount's file system, from mountinfo.
    pub mount: u64,
}

/// The requests on one disk or one server, which the same threads read in one order.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceQueue {
    /// The disk's profile.
    pub profile: DiskProfile,
    /// In order of priority.
    pub requests: Vec<MountedRequest>,
}

impl DeviceQueue {
    /// The numbers of the disks whose counters show others' I/O; empty if there are no counters.
    pub fn disks(&self) -> Vec<u64> {
        disks(&self.profile)
    }

    /// Whether it may hang forever, as servers do.
    pub fn is_network(&self) -> bool {
        self.profile.kind == DiskKind::Network
    }
}

/// The numbers of the profile's disks.
pub fn disks(profile: &DiskProfile) -> Vec<u64> {
    match &profile.backing.storage {
        Storage::Disks(disks) => disks.iter().map(|disk| disk.dev).collect(),
        _ => Vec::new(),
    }
}
