//! Builds the file trees: busybox, modules and binaries of a system, the initramfs of one run, a root disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::binaries::check_static;
use super::disk::{make_ext4, make_image};
use super::error::{Error, Result, on};
use super::kit::Kit;
use super::modules::{Catalogue, trim_aliases, trim_dependencies};
use super::recipe::{Recipe, System, Userland};
use super::scratch::{read_text, run_to_end};
use super::tree::Tree;

const INIT: &str = include_str!("guest/init.sh");
const MAIN: &str = include_str!("guest/main.sh");
const RC_S: &str = include_str!("guest/rcS.sh");
const INITTAB: &str = "::sysinit:/etc/init.d/rcS\n::wait:/bin/sh /run/eke/main\n";
/// Drivers of the output port.
const PORT_DRIVERS: &str = "virtio_pci virtio_console";
/// Additional drivers of a disk.
const DISK_DRIVERS: &str = "virtio_blk";
/// The path in x86-64 binaries (System V ABI, AMD64 supplement).
const DYNAMIC_LINKER: &str = "/lib64/ld-linux-x86-64.so.2";
/// Additional drivers of a root disk.
const ROOT_DRIVERS: &str = "crc32c_generic crc32c_intel ext4";

/// Creates an ext4 image of `size` bytes with a bootable system, for [`Recipe::on_root`]. Boot hooks are
/// `/etc/rc2.d/S??NAME`, `/etc/rcS.d/S??NAME` or `/etc/rc.local`, shutdown hooks `/etc/rc0.d/K??NAME`. It mounts
/// nothing on the host and does not need root.
///
/// # Errors
/// The image exists already, a file of the user space cannot be read, or mke2fs fails.
pub fn make_root(kit: &Kit, image: &Path, size: u64, userland: &Userland) -> Result<()> {
    write_root(kit, image, size, system_tree(kit, userland)?)
}

/// As [`make_root`], with the programs of `trees`: directories of the host that look like `/`, with programs, their
/// shared libraries, and any files. `/bin`, `/sbin` and `/lib` become `/usr/bin`, `/usr/sbin` and `/usr/lib`, wherever
/// the trees have them. Later files replace earlier ones: busybox only provides programs that no tree has, a later tree
/// replaces files of an earlier one, and `userland` replaces files of the trees. If a tree has a dynamic linker,
/// `userland`'s binaries may be dynamic.
///
/// # Errors
/// As [`make_root`], and if a tree cannot be read.
pub fn make_root_from(
    kit: &Kit,
    image: &Path,
    size: u64,
    userland: &Userland,
    trees: &[PathBuf],
) -> Result<()> {
    let mut whole = Tree::default();
    for place in ["bin", "sbin", "lib", "lib32", "lib64"] {
        whole.directory(&format!("/usr/{place}"));
        whole.link(place, &format!("/usr/{place}"));
    }
    add_skeleton(&mut whole);
    // Called by these paths; the kernel calls the second to load a module.
    for name in ["init", "modprobe"] {
        whole.link(&format!("/sbin/{name}"), "/bin/busybox");
    }
    for tree in trees {
        whole.host_directory(tree)?;
    }
    fill(&mut whole, kit, userland)?;
    write_root(kit, image, size, whole)
}

fn write_root(kit: &Kit, image: &Path, size: u64, mut tree: Tree) -> Result<()> {
    tree.file("/etc/inittab", 0o644, INITTAB);
    tree.file("/etc/init.d/rcS", 0o755, RC_S);
    // In the image's directory: it has room, and files of the tree on the same file system need no copies.
    let beside = image.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = tempfile::Builder::new().prefix(".eke-root-").tempdir_in(beside);
    let place = place.map_err(on("make a directory in", beside))?;
    tree.write_to(place.path())?;
    make_image(image, size, &[])?;
    make_ext4(kit, image, Some(place.path())).inspect_err(|_| drop(std::fs::remove_file(image)))
}

/// The initramfs of one run. `mark` is the word before the status in the output.
pub(super) fn initramfs(kit: &Kit, recipe: &Recipe, mark: &str) -> Result<Vec<u8>> {
    let early = early_modules(recipe);
    let mut userland = match &recipe.system {
        System::Fresh => Userland::default(),
        System::Root(_) => Userland { modules: Vec::new(), ..Userland::default() },
    };
    userland.modules.extend(early.split_whitespace().map(str::to_owned));
    let mut tree = system_tree(kit, &userland)?;
    tree.directory("/newroot");
    tree.file("/init", 0o755, INIT);
    tree.file("/eke/main", 0o755, MAIN);
    tree.file("/eke/script", 0o755, recipe.script.as_str());
    tree.file("/eke/conf", 0o644, configuration(recipe, mark));
    tree.archive()
}

/// The modules that init loads first.
fn early_modules(recipe: &Recipe) -> String {
    match &recipe.system {
        System::Root(_) => format!("{PORT_DRIVERS} {DISK_DRIVERS} {ROOT_DRIVERS}"),
        System::Fresh if recipe.disks.is_empty() => PORT_DRIVERS.to_owned(),
        System::Fresh => format!("{PORT_DRIVERS} {DISK_DRIVERS}"),
    }
}

/// The configuration for init, as shell variables.
fn configuration(recipe: &Recipe, mark: &str) -> String {
    let early = early_modules(recipe);
    let root = if matches!(recipe.system, System::Root(_)) { "/dev/vda" } else { "" };
    let cgroup = format!("{:?}", recipe.cgroup).to_lowercase();
    let ending = format!("{:?}", recipe.ending).replace("rC", "r-c").to_lowercase();
    let load = recipe.load.join(" ");
    format!(
        "ROOT='{root}'\nEARLY='{early}'\nCGROUP={cgroup}\nENDING={ending}\nLOAD='{load}'\nMARK='{mark}'\n"
    )
}

fn system_tree(kit: &Kit, userland: &Userland) -> Result<Tree> {
    let mut tree = Tree::default();
    add_skeleton(&mut tree);
    fill(&mut tree, kit, userland)?;
    Ok(tree)
}

fn fill(tree: &mut Tree, kit: &Kit, userland: &Userland) -> Result<()> {
    add_busybox(tree, kit)?;
    for binary in &userland.binaries {
        add_binary(tree, binary)?;
    }
    add_modules(tree, kit, &userland.modules)?;
    for file in &userland.files {
        tree.file(&file.path, file.mode, file.bytes.as_slice());
    }
    Ok(())
}

fn add_skeleton(tree: &mut Tree) {
    for place in [
        "bin",
        "dev",
        "etc",
        "proc",
        "root",
        "run",
        "sys",
        "tmp",
        "usr/share",
        "usr/lib",
        "var/lib",
        "var/log",
    ] {
        tree.directory(place);
    }
    // No effect if /bin itself is a link.
    for (link, target) in [("sbin", "/bin"), ("usr/bin", "/bin"), ("usr/sbin", "/bin"), ("var/run", "/run")] {
        tree.link(link, target);
    }
    tree.link("/etc/mtab", "/proc/self/mounts");
    tree.file(
        "/etc/passwd",
        0o644,
        "root::0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    );
    tree.file("/etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\n");
    tree.file("/etc/hostname", 0o644, "eke-machine\n");
}

fn add_busybox(tree: &mut Tree, kit: &Kit) -> Result<()> {
    tree.file("/bin/busybox", 0o755, read(&kit.busybox)?);
    for applet in run_to_end(Command::new(&kit.busybox).arg("--list"))?.lines() {
        tree.link(&format!("/bin/{applet}"), "busybox");
    }
    Ok(())
}

fn add_binary(tree: &mut Tree, binary: &Path) -> Result<()> {
    if !tree.has(DYNAMIC_LINKER) {
        check_static(binary)?;
    }
    let name =
        binary.file_name().ok_or_else(|| Error::Recipe(format!("{} names no file", binary.display())))?;
    tree.file(&format!("/bin/{}", name.to_string_lossy()), 0o755, read(binary)?);
    Ok(())
}

fn add_modules(tree: &mut Tree, kit: &Kit, wanted: &[String]) -> Result<()> {
    let dep = read_text(&kit.modules.join("modules.dep"))?;
    let builtin = read_text(&kit.modules.join("modules.builtin"))?;
    let alias = read_text(&kit.modules.join("modules.alias"))?;
    let files = Catalogue::parse(&dep, &builtin).load_order(wanted)?;
    let place = format!("/lib/modules/{}", kit.version);
    tree.file(&format!("{place}/modules.dep"), 0o644, trim_dependencies(&dep, &files));
    tree.file(&format!("{place}/modules.alias"), 0o644, trim_aliases(&alias, &files));
    tree.file(&format!("{place}/modules.builtin"), 0o644, builtin);
    for file in &files {
        tree.file(&format!("{place}/{file}"), 0o644, read(&kit.modules.join(file))?);
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(on("read", path))
}

#[cfg(test)]
mod tests {
    use super::configuration;
    use crate::recipe::{Cgroup, Disk, Ending, Format, Recipe};

    #[test]
    fn a_fresh_machine_without_disks_loads_what_its_output_needs() {
        let text = configuration(&Recipe::new("true"), "@mark");
        assert_eq!(
            text,
            "ROOT=''\nEARLY='virtio_pci virtio_console'\nCGROUP=v2\nENDING=poweroff\nLOAD=''\nMARK='@mark'\n"
        );
    }

    #[test]
    fn disks_root_and_ending_reach_init() {
        let mut recipe = Recipe::new("true");
        recipe.disks.push(Disk::new("/d", 1 << 20, Format::None));
        assert!(configuration(&recipe, "m").contains("EARLY='virtio_pci virtio_console virtio_blk'\n"));
        recipe = recipe.on_root("/r");
        (recipe.cgroup, recipe.ending, recipe.load) = (Cgroup::Hybrid, Ending::PowerCut, vec!["zram".into()]);
        let text = configuration(&recipe, "m");
        assert!(text.starts_with("ROOT='/dev/vda'\n"));
        assert!(text.ends_with(" ext4'\nCGROUP=hybrid\nENDING=power-cut\nLOAD='zram'\nMARK='m'\n"), "{text}");
    }
}
