//! The input of this stage, as data: requests on one device, and jobs in the order in which they are done.

use crate::disk::below::Bottom;
use crate::disk::{DiskKind, DiskProfile};
use crate::request::ReadRequest;

/// A part of a file that lies in one place on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the file's begin.
    pub logical: u64,
    /// Bytes from the begin of the file system's device.
    pub physical: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// One read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// Of which request.
    pub request: usize,
    /// From where on, in bytes; a whole number of pages.
    pub offset: u64,
    /// How many; a whole number of pages, never none.
    pub bytes: u64,
}

/// What a worker does at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Read this.
    Read(Piece),
    /// Go through this directory.
    List(usize),
    /// Find out where this file lies.
    Locate(usize),
}

impl Job {
    /// Of which request.
    pub fn request(&self) -> usize {
        match self {
            Self::Read(piece) => piece.request,
            Self::List(request) | Self::Locate(request) => *request,
        }
    }

    /// What it may bring.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Read(piece) => piece.bytes,
            _ => 0,
        }
    }
}

/// A request, and the mount that it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedRequest {
    /// What is wanted.
    pub request: ReadRequest,
    /// The mount's number in mountinfo.
    pub mount: u64,
}

/// What is read by one order, by the same threads: the requests on one disk, or on one server.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceQueue {
    /// What its disk is like.
    pub profile: DiskProfile,
    /// In the order in which they are wanted.
    pub requests: Vec<MountedRequest>,
}

impl DeviceQueue {
    /// The numbers of the disks whose counters show what others do; none where there are no counters.
    pub fn disks(&self) -> Vec<u64> {
        disks(&self.profile)
    }

    /// May it hang for good, as servers do?
    pub fn is_network(&self) -> bool {
        self.profile.kind == DiskKind::Network
    }
}

/// The numbers of the disks below.
pub fn disks(profile: &DiskProfile) -> Vec<u64> {
    match &profile.below.bottom {
        Bottom::Disks(disks) => disks.iter().map(|disk| disk.dev).collect(),
        _ => Vec::new(),
    }
}
