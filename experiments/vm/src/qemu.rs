//! QEMU's command line for a recipe. Pure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::kit::Kit;
use super::recipe::{Card, Disk, Format, Recipe, System};

/// A quiet kernel keeps the console readable. A panic ends the machine at once. Mitigations would only slow the
/// emulation down.
const KERNEL_ARGS: &str = "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off";

/// The files of one run.
#[derive(Debug)]
pub(super) struct Files {
    /// The initramfs.
    pub initramfs: PathBuf,
    /// The console's output.
    pub console: PathBuf,
    /// The script's output.
    pub output: PathBuf,
    /// QEMU's own messages.
    pub messages: PathBuf,
}

impl Files {
    /// The files of a run in the directory `place`.
    pub fn in_directory(place: &Path) -> Self {
        let file = |name| place.join(name);
        Self {
            initramfs: file("initramfs"),
            console: file("console"),
            output: file("output"),
            messages: file("messages"),
        }
    }
}

/// QEMU's arguments.
pub(super) fn arguments(kit: &Kit, recipe: &Recipe, files: &Files) -> Vec<OsString> {
    let fixed = "-nodefaults -no-user-config -display none -nic none -monitor none -no-reboot \
                 -machine q35 -accel tcg,thread=multi -cpu max";
    let mut arguments: Vec<OsString> = fixed.split_whitespace().map(OsString::from).collect();
    let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
    add("-smp", recipe.cpus.to_string().into());
    add("-m", recipe.memory_mib.to_string().into());
    add("-kernel", kit.kernel.clone().into());
    add("-initrd", files.initramfs.clone().into());
    add("-append", [&[KERNEL_ARGS.to_owned()], recipe.kernel_args.as_slice()].concat().join(" ").into());
    add("-serial", with_path("file:", &files.console));
    add("-device", "virtio-serial-pci".into());
    add("-chardev", with_path("file,id=output,path=", &files.output));
    add("-device", "virtserialport,chardev=output".into());
    for (index, disk) in all_disks(recipe).iter().enumerate() {
        let forget = recipe.forget_root && index == 0 && matches!(recipe.system, System::Root(_));
        add("-drive", drive(index, disk, forget));
        add("-device", format!("virtio-blk-pci,drive=disk{index},serial=eke-disk{index}").into());
    }
    for (index, card) in recipe.cards.iter().enumerate() {
        add("-netdev", network(index, card));
        add(
            "-device",
            format!("virtio-net-pci,netdev=net{index},mac=52:54:00:00:00:{index:02x},romfile=").into(),
        );
    }
    arguments
}

fn network(index: usize, card: &Card) -> OsString {
    match card {
        Card::Host => format!("user,id=net{index}").into(),
        Card::Cable { own, other } => {
            let mut text =
                with_path(&format!("dgram,id=net{index},local.type=unix,remote.type=unix,local.path="), own);
            text.push(with_path(",remote.path=", other));
            text
        }
    }
}

/// The root disk, if any, and the others.
fn all_disks(recipe: &Recipe) -> Vec<Disk> {
    let root = match &recipe.system {
        System::Root(image) => vec![Disk::new(image, 0, Format::None)],
        System::Fresh => Vec::new(),
    };
    [root.as_slice(), recipe.disks.as_slice()].concat()
}

/// `cache=unsafe`: QEMU does not forward the machine's flushes to the host's disk, which a scratch image does not need.
/// The image still contains all writes when QEMU has ended.
///
/// `snapshot=on`: writes go to an unlinked file in `$TMPDIR`.
fn drive(index: usize, disk: &Disk, forget: bool) -> OsString {
    let mut text = format!("if=none,id=disk{index},format=raw,cache=unsafe,discard=unmap");
    if forget {
        text += ",snapshot=on";
    }
    if let Some(iops) = disk.iops {
        text += &format!(",throttling.iops-total={iops}");
    }
    if let Some(rate) = disk.bytes_per_second {
        text += &format!(",throttling.bps-total={rate}");
    }
    with_path(&format!("{text},file="), &disk.image)
}

/// In QEMU's options, a comma in a path is doubled.
fn with_path(prefix: &str, path: &Path) -> OsString {
    format!("{prefix}{}", path.to_string_lossy().replace(',', ",,")).into()
}

#[cfg(test)]
mod tests {
    use super::{Files, arguments};
    use crate::kit::Kit;
    use crate::recipe::{Card, Disk, Format, Recipe};
    use std::path::Path;

    fn line(recipe: &Recipe) -> String {
        let at = |name: &str| Path::new("/kit").join(name);
        let (qemu, mke2fs, busybox) = (at("qemu"), at("mke2fs"), at("busybox"));
        let kit = Kit {
            qemu,
            mke2fs,
            busybox,
            kernel: at("vmlinuz"),
            modules: at("modules"),
            version: "6.1".into(),
        };
        let words = arguments(&kit, recipe, &Files::in_directory(Path::new("/w,1")));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_recipe_becomes_a_command_line() {
        let mut recipe = Recipe::new("true");
        recipe.kernel_args.push("zswap.enabled=1".into());
        let line = line(&recipe);
        assert!(line.contains("-smp 2 -m 124 -kernel /kit/vmlinuz -initrd /w,1/initramfs"), "{line}");
        assert!(line.contains("mitigations=off zswap.enabled=1 -serial file:/w,,1/console"), "{line}");
        assert!(!line.contains("-drive"), "{line}");
    }

    #[test]
    fn cards_follow_in_order() {
        let mut recipe = Recipe::new("true");
        recipe.cards = vec![Card::Host, Card::Cable { own: "/w,1/a".into(), other: "/b".into() }];
        let line = line(&recipe);
        assert!(line.contains("-netdev user,id=net0 -device virtio-net-pci,netdev=net0,"), "{line}");
        assert!(
            line.contains("local.path=/w,,1/a,remote.path=/b -device virtio-net-pci,netdev=net1,"),
            "{line}"
        );
    }

    #[test]
    fn the_root_disk_comes_first_and_limits_are_passed_on() {
        let mut recipe = Recipe::new("true").on_root("/root.img");
        let disk = Disk::new("/slow.img", 1 << 20, Format::Swap);
        recipe.disks.push(Disk { iops: Some(60), bytes_per_second: Some(20_000_000), ..disk });
        let line = line(&recipe);
        assert!(
            line.contains("-drive if=none,id=disk0,format=raw,cache=unsafe,discard=unmap,file=/root.img"),
            "{line}"
        );
        assert!(
            line.contains("throttling.iops-total=60,throttling.bps-total=20000000,file=/slow.img"),
            "{line}"
        );
        assert_eq!(recipe.device(0), "/dev/vdb");
        assert!(!line.contains("snapshot"), "{line}");
        recipe.forget_root = true;
        let line = self::line(&recipe);
        assert!(line.contains("discard=unmap,snapshot=on,file=/root.img"), "{line}");
        assert_eq!(line.matches("snapshot").count(), 1, "{line}");
    }
}
