//! Makes what the machines consist of, once: QEMU of a known version, and each machine's disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::machines::Machine;

/// Debian's suite with a QEMU that emulates newer kernels well. That of bookworm (7.2) corrupts flags.
const QEMU_SUITE: &str = "trixie";
const QEMU_PACKAGES: &str = "qemu-system-x86,qemu-system-arm,qemu-efi-aarch64";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// A sparse image
const ROOT_BYTES: u64 = 3 << 30;

/// The directory with the images, and where they come from.
#[derive(Debug, Clone)]
pub struct Images {
    /// Kept
    pub place: PathBuf,
    /// `experiments/field` of the source tree
    pub recipe: PathBuf,
    /// Debian's mirror
    pub mirror: String,
}

/// A machine's image.
#[derive(Debug, Clone)]
pub struct Image {
    /// The root disk
    pub disk: PathBuf,
    /// Its kernel
    pub kernel: PathBuf,
    /// Its initramfs
    pub initrd: PathBuf,
}

impl Images {
    /// A command that starts a program of QEMU, with the libraries of its own root. Makes that root if it is missing.
    ///
    /// # Errors
    /// mmdebstrap failed; its last lines are in the error.
    pub fn qemu(&self, program: &str) -> anyhow::Result<Command> {
        let root = self.place.join("qemu-root");
        if !root.exists() {
            self.make_qemu(&root)?;
        }
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let share = |name: &str| root.join("usr/share").join(name);
        let mut command = eke_vm::mortal(&root.join("lib64/ld-linux-x86-64.so.2"));
        command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        command.arg("--library-path").arg(&libraries).arg(root.join("usr/bin").join(program));
        for data in [share("qemu"), share("seabios"), root.join("usr/lib/ipxe/qemu")] {
            command.arg("-L").arg(data);
        }
        Ok(command)
    }

    fn make_qemu(&self, root: &Path) -> anyhow::Result<()> {
        eprintln!("field: makes QEMU of Debian {QEMU_SUITE}");
        self.whole(root, |part| {
            let mut command = Command::new("mmdebstrap");
            command.args(["--variant=minbase", "--aptopt=APT::Install-Recommends \"false\""]);
            command.arg(format!("--keyring={KEYRING}")).arg(format!("--include={QEMU_PACKAGES}"));
            command.arg(QEMU_SUITE).arg(part).arg(&self.mirror);
            eke_vm::run_to_end(&mut command).map(drop).map_err(Into::into)
        })
    }

    /// A machine's image; made if it is missing.
    ///
    /// # Errors
    /// A program failed; its last lines are in the error.
    pub fn of(&self, machine: &Machine) -> anyhow::Result<Image> {
        let place = self.place.join(machine.image_name());
        let file = |name: &str| place.join(name);
        if !place.exists() {
            eprintln!(
                "field: {}: makes the image of Debian {} {}",
                machine.name, machine.suite, machine.arch
            );
            self.whole(&place, |part| self.make(machine, part))?;
        }
        Ok(Image { disk: file("disk"), kernel: file("vmlinuz"), initrd: file("initrd") })
    }

    /// A directory that is made whole or not at all, and by one of several runs at the same time.
    fn whole(&self, place: &Path, make: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.place)
            .with_context(|| format!("cannot make {}", self.place.display()))?;
        let lock = self.place.join("lock");
        eke_vm::write_scratch(&lock, b"")?;
        let lock = std::fs::File::open(&lock).with_context(|| format!("cannot open {}", lock.display()))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .context("cannot wait for another run")?;
        if place.exists() {
            return Ok(());
        }
        let part = place.with_extension("part");
        remove(&part)?;
        make(&part)?;
        std::fs::rename(&part, place).with_context(|| format!("cannot rename {}", part.display()))
    }

    fn make(&self, machine: &Machine, part: &Path) -> anyhow::Result<()> {
        let root = part.join("root");
        std::fs::create_dir_all(part).with_context(|| format!("cannot make {}", part.display()))?;
        let mut command = Command::new(self.recipe.join("make-root"));
        command.arg(&root).env("MIRROR", &self.mirror);
        command.env("SUITE", &machine.suite).env("ARCH", &machine.arch).env("INIT", &machine.init);
        command.env("KERNEL", &machine.kernel).env("PACKAGES", machine.packages.join(","));
        command.env("OFFERED", machine.offered.join(" "));
        command.env("SWAP", if machine.swap_mib.is_some() { "/dev/vdb" } else { "" });
        eke_vm::run_to_end(&mut command)?;
        for (starts, to) in [("vmlinuz", "vmlinuz"), ("initrd.img-", "initrd")] {
            let from = newest(&root.join("boot"), starts)?;
            std::fs::copy(&from, part.join(to)).with_context(|| format!("cannot copy {}", from.display()))?;
        }
        file_system(&part.join("disk"), ROOT_BYTES, &root)?;
        remove(&root)
    }
}

/// Makes an ext4 image with a directory's files.
///
/// # Errors
/// mke2fs failed, or the image cannot be made.
pub fn file_system(image: &Path, bytes: u64, files: &Path) -> anyhow::Result<()> {
    empty(image, bytes)?;
    let mut command = Command::new("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-m", "0", "-d"]).arg(files).arg(image);
    eke_vm::run_to_end(&mut command).map(drop).map_err(Into::into)
}

/// Makes a swap area.
///
/// # Errors
/// As above
pub fn swap_area(image: &Path, mib: u32) -> anyhow::Result<()> {
    empty(image, u64::from(mib) << 20)?;
    eke_vm::run_to_end(Command::new("mkswap").arg(image)).map(drop).map_err(Into::into)
}

fn empty(image: &Path, bytes: u64) -> anyhow::Result<()> {
    eke_vm::write_scratch(image, b"")?;
    let file = std::fs::OpenOptions::new().write(true).open(image);
    file.and_then(|file| file.set_len(bytes)).with_context(|| format!("cannot make {}", image.display()))
}

fn newest(place: &Path, starts: &str) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(place).with_context(|| format!("cannot read {}", place.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(starts)));
    found.sort();
    let Some(last) = found.pop() else { bail!("no {starts}* in {}", place.display()) };
    Ok(last)
}

fn remove(place: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", place.display()))
        }
        _ => Ok(()),
    }
}
