//! Disks of a hypervisor. By default they have the flag of a rotating disk, on any medium.

use crate::Root;

/// How hypervisors name their SCSI, SATA and IDE disks: the vendor or, behind `ATA`, the model (`QEMU HARDDISK`, `VMware Virtual S`, `VBOX HARDDISK`,
/// `Virtual HD` of Hyper-V and Azure, `PersistentDisk` of Google).
const HYPERVISORS: [&str; 6] = ["QEMU", "VMware", "VBOX", "Msft", "Virtual HD", "Google"];

/// Is a whole disk a hypervisor's, by its driver (virtio, Xen) or by what it says of itself?
pub fn is_virtual(root: &Root, disk: &str) -> bool {
    let text = |file: &str| root.read(format!("sys/block/{disk}/device/{file}")).unwrap_or_default();
    let [vendor, model] = [text("vendor"), text("model")];
    has_virtual_driver(disk)
        || HYPERVISORS.iter().any(|name| vendor.starts_with(name) || model.starts_with(name))
}

/// Is it a disk of virtio or Xen, by its name?
pub fn has_virtual_driver(disk: &str) -> bool {
    ["vd", "xvd"].iter().any(|prefix| disk.starts_with(prefix))
}
