//! Finds the boot loader and the initramfs generator of a root.

use super::{command, extlinux, grub, initramfs};
use eke_linux::root::Root;

/// The program that gives the kernel its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loader {
    /// GRUB with `/etc/default/grub`.
    Grub,
    /// systemd-boot with loader entries.
    SystemdBoot,
    /// U-Boot with `extlinux.conf`.
    Extlinux,
    /// The Raspberry Pi's firmware, with the path of its `cmdline.txt`.
    RaspberryPi(&'static str),
    /// A system that declares its command line elsewhere, with advice.
    Elsewhere(&'static str),
    /// No loader that eke knows.
    Unknown,
}

/// The program that generates the initramfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initramfs {
    /// Debian's initramfs-tools.
    Tools,
    /// dracut.
    Dracut,
    /// Arch's mkinitcpio.
    Mkinitcpio,
    /// No generator that eke knows.
    Unknown,
}

/// What was found, and from which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// The loader.
    pub loader: Loader,
    /// The generator.
    pub initramfs: Initramfs,
    /// One sentence for each finding.
    pub evidence: Vec<String>,
}

/// Mount points of the EFI system partition.
pub(super) const ESPS: [&str; 4] = ["boot", "efi", "boot/efi", "boot/firmware"];
/// The name of the loader that started this machine, in UTF-16 after four bytes of attributes.
const LOADER_INFO: &str = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// Detects loader and generator; changes nothing.
pub fn detect(root: &Root) -> Detected {
    let (loader, seen) = loader(root);
    let (initramfs, generator) = generator(root);
    let evidence = seen.into_iter().chain(generator).collect();
    Detected { loader, initramfs, evidence }
}

fn loader(root: &Root) -> (Loader, Option<String>) {
    let seen = |loader, file: &str| (loader, Some(format!("found /{file}")));
    for (file, advice) in [
        ("run/ostree-booted", "this is an ostree system: `rpm-ostree kargs --append=WORD` for each word"),
        ("etc/NIXOS", "this is NixOS: add the words to `boot.kernelParams`"),
    ] {
        if root.exists(file) {
            return seen(Loader::Elsewhere(advice), file);
        }
    }
    for file in ["boot/firmware/cmdline.txt", "boot/cmdline.txt"] {
        if root.exists(file) && root.exists(file.replace("cmdline.txt", "config.txt")) {
            return seen(Loader::RaspberryPi(file), file);
        }
    }
    if let Some(file) = [extlinux::FILE, extlinux::DEFAULTS].into_iter().find(|file| root.exists(file)) {
        return seen(Loader::Extlinux, file);
    }
    grub_or_systemd_boot(root)
}

/// If both are installed, the one that started this machine according to the firmware counts, otherwise GRUB.
fn grub_or_systemd_boot(root: &Root) -> (Loader, Option<String>) {
    let grub = [grub::FILE].into_iter().find(|file| root.exists(file)).map(str::to_owned);
    let files = ["loader/loader.conf", "EFI/systemd/systemd-bootx64.efi", "EFI/systemd/systemd-bootaa64.efi"];
    let systemd =
        ESPS.iter().flat_map(|esp| files.map(|f| format!("{esp}/{f}"))).find(|file| root.exists(file));
    let started = started_by(root);
    match (grub, systemd) {
        (_, Some(_)) if started.starts_with("systemd-boot") => {
            (Loader::SystemdBoot, Some(format!("the firmware reports that {started} started this machine")))
        }
        (Some(file), _) => (Loader::Grub, Some(format!("found /{file}"))),
        (None, Some(file)) => (Loader::SystemdBoot, Some(format!("found /{file}"))),
        (None, None) => (Loader::Unknown, None),
    }
}

fn started_by(root: &Root) -> String {
    let bytes = root.read_bytes(LOADER_INFO).unwrap_or_default();
    let units: Vec<u16> =
        bytes.chunks_exact(2).skip(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned()
}

/// The generator whose program exists, else the one whose configuration exists.
fn generator(root: &Root) -> (Initramfs, Option<String>) {
    let known = [
        (Initramfs::Tools, "update-initramfs", "etc/initramfs-tools"),
        (Initramfs::Mkinitcpio, "mkinitcpio", initramfs::MKINITCPIO),
        (Initramfs::Dracut, "dracut", "etc/dracut.conf.d"),
    ];
    let program = known
        .iter()
        .find(|(_, program, config)| root.exists(config) && command::find(root, program).is_some());
    match program.or_else(|| known.iter().find(|(_, _, config)| root.exists(config))) {
        Some((kind, _, config)) => (*kind, Some(format!("found /{config}"))),
        None => (Initramfs::Unknown, None),
    }
}
