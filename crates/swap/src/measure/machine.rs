//! Which machine was measured: an image may be written to another one, and a disk may be moved. Nothing here tells one machine of a model from another.

use eke_linux::Root;
use serde::{Deserialize, Serialize};

use crate::probe::disks;

/// What the times of a measurement depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// The model of the CPU, and of the board where the firmware names it (devicetree).
    pub cpu: String,
    /// The model and size of the disk with `/usr`; empty if that is not on a disk.
    pub disk: String,
}

impl Machine {
    /// This machine.
    pub fn of(root: &Root) -> Self {
        let text = |file: &str| root.read(file).unwrap_or_default();
        let board = text("sys/firmware/devicetree/base/model");
        let cpu = [&processor(&text("proc/cpuinfo")), board.trim_matches(['\0', '\n'])].join(" ");
        Self {
            cpu: cpu.trim().to_owned(),
            disk: disks::of_path(root, "/usr").map(|name| disk(root, &name)).unwrap_or_default(),
        }
    }
}

/// The first CPU's model in `/proc/cpuinfo`; on 64-bit ARM the numbers of its maker and model.
fn processor(cpuinfo: &str) -> String {
    let values = |key: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    let named = ["model name", "cpu model", "cpu"].into_iter().find_map(values);
    named.unwrap_or_else(|| ["CPU implementer", "CPU part"].into_iter().filter_map(values).collect())
}

fn disk(root: &Root, name: &str) -> String {
    let text = |file: &str| root.read(format!("sys/block/{name}/{file}")).ok();
    // SD cards and eMMC have a name, other disks a model, some virtual ones neither.
    let model = text("device/model").or_else(|| text("device/name")).unwrap_or_default();
    format!("{} {}", model.trim(), text("size").unwrap_or_default().trim()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use eke_testkit::tree::put;

    use super::*;

    /// A machine with `/usr` on `vda1`.
    fn machine(files: &[(&str, &str)]) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/cpuinfo", "processor : 0\nmodel name : A CPU\n"),
            ("proc/self/mountinfo", "25 1 254:1 / / rw - ext4 /dev/vda1 rw\n"),
            ("dev/vda1", ""),
            ("sys/class/block/vda1/partition", "1\n"),
            ("sys/block/vda/vda1/partition", "1\n"),
            ("sys/block/vda/device/model", "A DISK  \n"),
            ("sys/block/vda/size", "1000\n"),
        ]
        .iter()
        .chain(files)
        {
            put(dir.path(), path, text);
        }
        Machine::of(&Root::at(dir.path()))
    }

    #[test]
    fn another_cpu_board_or_disk_is_another_machine() {
        let one = machine(&[]);
        assert_eq!((one.cpu.as_str(), one.disk.as_str()), ("A CPU", "A DISK 1000"));
        assert_eq!(one, machine(&[("proc/meminfo", "MemTotal: 990000 kB\n")]), "more RAM changes no time");
        for (file, text) in [
            ("proc/cpuinfo", "model name : another\n"),
            ("sys/firmware/devicetree/base/model", "Raspberry Pi 5 Model B Rev 1.0\0"),
            ("sys/block/vda/device/model", "another\n"),
            ("sys/block/vda/size", "2000\n"),
        ] {
            assert_ne!(one, machine(&[(file, text)]), "{file}");
        }
    }

    #[test]
    fn the_cpu_is_named_on_each_architecture() {
        for (cpuinfo, expected) in [
            ("processor\t: 0\nmodel\t\t: 42\nmodel name\t: Intel(R) N270\n", "Intel(R) N270"),
            ("CPU implementer\t: 0x41\nCPU part\t: 0xd08\n", "0x410xd08"),
            ("processor : 0\ncpu : POWER9, altivec\n", "POWER9, altivec"),
            ("", ""),
        ] {
            assert_eq!(processor(cpuinfo), expected);
        }
    }
}
