//! Others' reads of disks, as the BPF program counts them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use eke_linux::device::Device;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::super::method::{OthersReads, TraceError};

/// The maps of the count.
#[derive(Debug)]
pub struct DiskReads {
    not_others: MapHandle,
    others_reads: MapHandle,
    /// The processes that are read for.
    left_out: Mutex<BTreeSet<u32>>,
}

impl DiskReads {
    /// Leaves out this process.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn new(not_others: MapHandle, others_reads: MapHandle) -> Result<Self, TraceError> {
        let reads = Self { not_others, others_reads, left_out: Mutex::default() };
        let own = reads.mark(std::process::id(), false);
        own.map_err(|e| TraceError::new("leave out own reads", e))?;
        Ok(reads)
    }

    fn mark(&self, pid: u32, with_children: bool) -> libbpf_rs::Result<()> {
        self.not_others.update(&pid.to_ne_bytes(), &[with_children.into()], MapFlags::ANY)
    }

    /// Whether to count.
    pub fn is_wanted(&self) -> bool {
        !self.left_out.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn of(&self, device: u64) -> Option<u64> {
        let key = Device::of(device).kernel().to_ne_bytes();
        let value = self.others_reads.lookup(&key, MapFlags::ANY).ok().flatten()?;
        Some(u64::from_ne_bytes(value.try_into().ok()?))
    }
}

impl OthersReads for DiskReads {
    fn leave_out(&self, pid: u32) {
        // A process that cannot be marked counts as another one: then its launch is read for more slowly.
        _ = self.mark(pid, true);
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
    }

    fn take_back(&self, pid: u32) {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
        _ = self.not_others.delete(&pid.to_ne_bytes());
    }

    fn so_far(&self, devices: &[u64]) -> u64 {
        devices.iter().filter_map(|device| self.of(*device)).sum()
    }
}
