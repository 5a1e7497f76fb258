//! QEMU's command line for a machine. Pure.

use std::path::{Path, PathBuf};

use crate::machines::{Disk, Machine};

/// The files of a machine.
#[derive(Debug, Clone)]
pub struct Files {
    /// The kernel
    pub kernel: PathBuf,
    /// Its initramfs
    pub initrd: PathBuf,
    /// The root disk's image, which is not written: changes are lost at the end.
    pub image: PathBuf,
    /// The swap disk's image, as well
    pub swap: Option<PathBuf>,
    /// A disk with the packages, read-only
    pub packages: PathBuf,
    /// Output: the kernel's and the init's console
    pub console: PathBuf,
    /// The socket of the steps' shell
    pub socket: PathBuf,
}

/// The program that emulates the machine.
#[must_use]
pub fn program(machine: &Machine) -> &'static str {
    match machine.arch.as_str() {
        "arm64" => "qemu-system-aarch64",
        "i386" => "qemu-system-i386",
        _ => "qemu-system-x86_64",
    }
}

/// QEMU's arguments: one emulated CPU, and no network.
#[must_use]
pub fn arguments(machine: &Machine, files: &Files) -> Vec<String> {
    let (board, serial) = if machine.arch == "arm64" { ("virt", "ttyAMA0") } else { ("q35", "ttyS0") };
    let mut words: Vec<String> =
        "-nodefaults -no-user-config -display none -nic none -monitor none -smp 1 -accel tcg,thread=single"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    add("-machine", board.to_owned());
    add("-cpu", machine.cpu.clone());
    add("-m", machine.memory_mib.to_string());
    add("-kernel", path(&files.kernel));
    add("-initrd", path(&files.initrd));
    add("-append", kernel_arguments(machine, serial));
    add("-serial", format!("file:{}", path(&files.console)));
    add("-device", "virtio-serial-pci".to_owned());
    add("-chardev", format!("socket,id=field,server=on,wait=on,path={}", path(&files.socket)));
    add("-device", "virtserialport,chardev=field,name=field".to_owned());
    let disks = [Some(&files.image), files.swap.as_ref(), Some(&files.packages)];
    for (index, image) in disks.iter().enumerate().filter_map(|(index, image)| Some((index, (*image)?))) {
        let limits = if index == 2 { "" } else { limits(machine.disk) };
        let id = ["root", "swap", "packages"].get(index).copied().unwrap_or("disk");
        add(
            "-drive",
            format!("if=none,id={id},format=raw,cache=unsafe,snapshot=on{limits},file={}", path(image)),
        );
        add("-device", format!("virtio-blk-pci,drive={id},serial={id}"));
    }
    words
}

fn kernel_arguments(machine: &Machine, serial: &str) -> String {
    // A panic ends the machine after a second. Mitigations would only slow the emulation down.
    let mut words =
        vec![format!("root=/dev/vda rw console={serial} quiet loglevel=4 panic=1 mitigations=off")];
    if machine.slowness > 1 {
        // systemd's own limit is 90 s.
        words.push(format!("systemd.default_timeout_start_sec={}", 90 * machine.slowness));
    }
    words.extend_from_slice(&machine.kernel_args);
    words.join(" ")
}

const fn limits(disk: Disk) -> &'static str {
    match disk {
        Disk::Fast => "",
        Disk::Rotating => ",throttling.iops-total=120,throttling.bps-total=60000000",
        Disk::SdCard => ",throttling.iops-total=1500,throttling.bps-total=20000000",
    }
}

/// In QEMU's options, a comma in a path is doubled.
fn path(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::{Files, arguments, program};
    use std::path::PathBuf;

    fn line(name: &str) -> String {
        let machines = crate::machines::parse(include_str!("../machines.toml")).unwrap();
        let machine = machines.into_iter().find(|m| m.name == name).unwrap();
        let at = |name: &str| PathBuf::from("/f,1").join(name);
        let files = Files {
            kernel: at("vmlinuz"),
            initrd: at("initrd"),
            image: at("img"),
            swap: machine.swap_mib.map(|_| at("swap")),
            packages: at("packages"),
            console: at("console"),
            socket: at("socket"),
        };
        format!("{} {}", program(&machine), arguments(&machine, &files).join(" "))
    }

    #[test]
    fn a_machine_has_one_cpu_and_its_disks() {
        let line = line("debian12");
        assert!(line.starts_with("qemu-system-x86_64 -nodefaults"), "{line}");
        assert!(line.contains("-smp 1 -accel tcg,thread=single -machine q35"), "{line}");
        assert!(line.contains("-m 512 ") && line.contains("console=ttyS0"), "{line}");
        assert!(line.contains("id=swap,format=raw,cache=unsafe,snapshot=on"), "{line}");
        assert!(line.contains("file=/f,,1/packages"), "{line}");
    }

    #[test]
    fn an_arm_board_has_another_console() {
        let line = line("arm64-16k");
        assert!(
            line.starts_with("qemu-system-aarch64") && line.contains("-machine virt -cpu cortex-a76"),
            "{line}"
        );
        assert!(line.contains("console=ttyAMA0") && line.contains("bps-total=20000000,file="), "{line}");
        assert!(
            !line.contains("id=swap") && line.contains("systemd.default_timeout_start_sec=360"),
            "{line}"
        );
    }
}
