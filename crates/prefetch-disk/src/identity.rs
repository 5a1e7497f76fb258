//! Which disks a measurement is of, also after a boot that names them in another order.

use std::path::Path;

use eke_linux::Root;
use eke_linux::device::Device;
use serde::{Deserialize, Serialize};

use crate::backing::{Backing, Block, Storage};
use crate::measure::measured_block;

/// What a disk says of itself in sysfs: NVMe, SCSI and SATA, virtio, NVMe before Linux 4.8, and cards.
const NAMES: [&str; 5] = ["wwid", "device/wwid", "serial", "device/serial", "device/cid"];

/// The identity of what was measured. A clone on another disk has another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskIdentity {
    /// The disks' own names, or else the kernel's, sorted.
    disks: Vec<String>,
    /// Whether one reports itself as rotating.
    rotational: bool,
    /// The size of the measured device, which may be a part of a disk.
    size_bytes: u64,
}

/// The identity of the disks below a file system; `None` if it is on none.
pub fn identity(root: &Root, backing: &Backing) -> Option<DiskIdentity> {
    let Storage::Disks(blocks) = &backing.storage else { return None };
    let mut disks: Vec<String> = blocks.iter().map(|block| name(root, block)).collect();
    disks.sort();
    let rotational = blocks.iter().any(|block| block.reports_rotational);
    Some(DiskIdentity { disks, rotational, size_bytes: measured_block(backing)?.size_bytes })
}

fn name(root: &Root, block: &Block) -> String {
    let dir = Path::new("sys/dev/block").join(Device::of(block.dev).to_string());
    let texts = NAMES.iter().filter_map(|name| root.read(dir.join(name)).ok());
    let mut names = texts.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    names.next().unwrap_or_else(|| block.name.clone())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "test code")]

    use eke_linux::parse::mountinfo;

    use super::*;
    use crate::backing::backing;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn put(&self, number: &str, file: &str, text: &str) {
            let path = self.0.path().join(format!("sys/dev/block/{number}/{file}"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn disk(&self, number: &str, name: &str, own: Option<(&str, &str)>, rotational: &str) {
            self.put(number, "uevent", &format!("DEVNAME={name}\n"));
            self.put(number, "size", "2048\n");
            self.put(number, "queue/rotational", rotational);
            own.into_iter().for_each(|(file, text)| self.put(number, file, text));
        }

        fn identity(&self, number: &str) -> Option<DiskIdentity> {
            let text =
                format!("22 1 8:0 / / rw - ext4 /dev/sda rw\n23 1 {number} / /x rw - ext4 /dev/x rw\n");
            let mounts = mountinfo::parse(text.as_bytes());
            let root = Root::at(self.0.path());
            identity(&root, &backing(&root, &mounts[1], &mounts))
        }
    }

    #[test]
    fn a_disk_is_known_by_its_own_name_and_a_clone_is_another_one() {
        for file in NAMES {
            let (before, after) = (Machine::new(), Machine::new());
            before.disk("8:0", "sda", Some((file, "naa.1\n")), "1\n");
            before.disk("8:16", "sdb", Some((file, "naa.2\n")), "1\n");
            after.disk("8:0", "sda", Some((file, "naa.2\n")), "1\n");
            after.disk("8:16", "sdb", Some((file, "naa.1\n")), "0\n");
            assert_eq!(before.identity("8:16"), after.identity("8:0"), "{file}");
            assert_ne!(before.identity("8:0"), after.identity("8:0"), "{file}");
            assert_ne!(before.identity("8:0"), after.identity("8:16"), "{file}: it does not rotate");
        }
    }

    #[test]
    fn a_disk_without_a_name_is_known_by_the_kernels() {
        let machine = Machine::new();
        machine.disk("254:0", "vda", None, "0\n");
        machine.disk("254:16", "vdb", Some(("serial", "\n")), "0\n");
        assert_ne!(machine.identity("254:0"), machine.identity("254:16"));
        assert_eq!(machine.identity("0:40"), None);
    }

    #[test]
    fn images_on_one_disk_are_measured_as_that_disk_once() {
        let machine = Machine::new();
        machine.disk("8:0", "sda", Some(("device/wwid", "naa.1")), "0\n");
        for (number, name, size) in [("7:1", "loop1", "100\n"), ("7:2", "loop2", "200\n")] {
            machine.disk(number, name, None, "0\n");
            machine.put(number, "size", size);
            machine.put(number, "loop/backing_file", &format!("/var/lib/snapd/snaps/{name}.snap\n"));
        }
        let (one, other) = (machine.identity("7:1"), machine.identity("7:2"));
        assert!(one.is_some());
        assert_eq!((&one, &one), (&other, &machine.identity("8:0")));
    }
}
