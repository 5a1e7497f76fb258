//! Whole fake roots: applying to `cases/NN-name/root` gives `expected` and `plan.txt`, and undoing it restores the
//! root.
//!
//! `EKE_BLESS=1 cargo test -p eke-apply --test boot_cases` rewrites `expected` and `plan.txt`.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod files_tree;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use eke_apply::boot::enable;
use eke_apply::boot::enable::EnablePlan;
use eke_apply::boot::{self, BootPlan, Command, Undone, Written, ZswapBoot};
use eke_apply::files::{Effect, Outcome};
use eke_linux::Root;
use files_tree::{Node, plant, put, tree};

fn zswap() -> ZswapBoot {
    ZswapBoot {
        compressor: "zstd".into(),
        max_pool_percent: 40,
        zpool: None,
        accept_threshold_percent: None,
        shrinker: Some(true),
    }
}

/// The permission bits that git stores.
fn as_in_git(tree: BTreeMap<String, Node>) -> BTreeMap<String, Node> {
    let node = |node| match node {
        Node::File { text, mode } => Node::File { text, mode: if mode & 0o100 == 0 { 0o644 } else { 0o755 } },
        other => other,
    };
    tree.into_iter().map(|(path, n)| (path, node(n))).collect()
}

enum Plan {
    Boot(BootPlan),
    Enable(EnablePlan),
}

impl Plan {
    fn new(case: &str, root: &Root) -> Self {
        if case.contains("-enable-") {
            Self::Enable(enable::changes(root, "/usr/local/bin").unwrap())
        } else {
            Self::Boot(boot::changes(root, &zswap()).unwrap())
        }
    }

    fn text(&self) -> String {
        let (found, evidence, commands, notes) = match self {
            Self::Boot(p) => (
                format!("{:?}, {:?}", p.detected.loader, p.detected.initramfs),
                p.detected.evidence.join("; "),
                &p.commands,
                &p.notes,
            ),
            Self::Enable(p) => (format!("{:?}", p.init), p.evidence.clone(), &p.commands, &p.notes),
        };
        let mut text = format!("found: {found}\nby: {evidence}\n");
        commands.iter().for_each(|c| writeln!(text, "run: {c}   # {}", c.why).unwrap());
        notes.iter().for_each(|n| writeln!(text, "note: {n}").unwrap());
        text
    }

    fn commands(&self) -> &[Command] {
        match self {
            Self::Boot(plan) => &plan.commands,
            Self::Enable(plan) => &plan.commands,
        }
    }

    fn write(&self, root: &Root) -> Written {
        match self {
            Self::Boot(plan) => boot::write(root, plan).unwrap(),
            Self::Enable(plan) => enable::write(root, plan).unwrap(),
        }
    }

    fn undo(&self, root: &Root) -> Undone {
        match self {
            Self::Boot(_) => boot::undo(root).unwrap().0,
            Self::Enable(_) => enable::undo(root).unwrap(),
        }
    }
}

fn planted(case: &Path) -> (tempfile::TempDir, Root, BTreeMap<String, Node>) {
    let before = as_in_git(tree(&case.join("root")));
    let dir = tempfile::tempdir().unwrap();
    plant(dir.path(), &before);
    let root = Root::at(dir.path());
    (dir, root, before)
}

fn bless(case: &Path, plan: &str, now: &BTreeMap<String, Node>) {
    let _ = fs::remove_dir_all(case.join("expected"));
    plant(&case.join("expected"), now);
    put(&case.join("plan.txt"), plan, 0o644);
}

fn check(case: &Path) {
    let name = case.file_name().unwrap().to_str().unwrap();
    let (dir, root, before) = planted(case);
    let plan = Plan::new(name, &root);
    assert_eq!(tree(dir.path()), before, "{name}: planning changed something");
    let written = plan.write(&root);
    assert_eq!(written.to_run, plan.commands(), "{name}: commands are listed, not run");
    assert!(written.ran.is_empty());
    let now = tree(dir.path());
    if std::env::var_os("EKE_BLESS").is_some() {
        bless(case, &plan.text(), &now);
    }
    assert_eq!(now, as_in_git(tree(&case.join("expected"))), "{name}");
    assert_eq!(plan.text(), fs::read_to_string(case.join("plan.txt")).unwrap(), "{name}");
    let again = Plan::new(name, &root).write(&root);
    assert!(
        again.files.iter().all(|f| f.effect == Effect::Unchanged),
        "{name}: a second time changed {:?}",
        again.files
    );
    let undone = plan.undo(&root);
    assert!(
        undone.files.iter().all(|f| matches!(f.outcome, Outcome::Restored | Outcome::Removed)),
        "{name}: {undone:?}"
    );
    assert_eq!(undone.to_run.len(), plan.commands().len(), "{name}: {:?}", undone.to_run);
    assert_eq!(tree(dir.path()), before, "{name}: undone");
}

fn cases() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    cases.sort();
    cases
}

fn case(name: &str) -> PathBuf {
    cases().into_iter().find(|c| c.ends_with(name)).unwrap()
}

#[test]
fn every_root_becomes_as_expected_and_back() {
    let cases = cases();
    assert!(cases.len() > 20);
    cases.iter().for_each(|case| check(case));
}

#[test]
fn both_owners_go_separate_ways() {
    let (dir, root, before) = planted(&case("21-enable-systemd"));
    put(&root.path("boot/extlinux/extlinux.conf"), "append x\n", 0o644);
    enable::write(&root, &enable::changes(&root, "/usr/local/bin/").unwrap()).unwrap();
    boot::write(&root, &boot::changes(&root, &zswap()).unwrap()).unwrap();
    enable::undo(&root).unwrap();
    assert!(root.read("boot/extlinux/extlinux.conf").unwrap().contains("zswap.enabled=1"));
    boot::undo(&root).unwrap();
    fs::remove_dir_all(root.path("boot")).unwrap();
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn other_settings_replace_the_first_and_one_undo_reverts_all() {
    let (dir, root, before) = planted(&case("01-grub-drop-in-initramfs-tools"));
    boot::write(&root, &boot::changes(&root, &zswap()).unwrap()).unwrap();
    let other = ZswapBoot { compressor: "lz4".into(), zpool: Some("zsmalloc".into()), ..zswap() };
    boot::write(&root, &boot::changes(&root, &other).unwrap()).unwrap();
    let text = root.read("etc/default/grub.d/50-eke.cfg").unwrap();
    assert!(text.contains("compressor=lz4 zswap.zpool=zsmalloc") && !text.contains("zstd"), "{text}");
    boot::undo(&root).unwrap();
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn the_state_shows_whether_eke_starts_at_boot() {
    let (_dir, root, _) = planted(&case("24-enable-sysv-links"));
    assert!(!enable::state(&root).unwrap().enabled);
    enable::write(&root, &enable::changes(&root, "/usr/local/bin").unwrap()).unwrap();
    assert!(enable::state(&root).unwrap().enabled);
    fs::remove_file(root.path("etc/rc2.d/S20eke")).unwrap();
    let state = enable::state(&root).unwrap();
    assert!(!state.enabled && state.files.len() == 7, "{state:?}");
}

#[test]
fn invalid_settings_are_refused_with_a_reason() {
    let (_dir, root, _) = planted(&case("21-enable-systemd"));
    for (dir, why) in [
        ("usr/local/bin", "absolute"),
        ("/usr/my bin", "blanks"),
        ("/home/a/.cargo/bin", "make install"),
        ("/opt/eke", "eke is missing"),
    ] {
        let error = enable::changes(&root, dir).unwrap_err().to_string();
        assert!(error.contains(dir) && error.contains(why), "{error}");
    }
    for bad in
        [ZswapBoot { compressor: "x y".into(), ..zswap() }, ZswapBoot { max_pool_percent: 101, ..zswap() }]
    {
        boot::changes(&root, &bad).unwrap_err();
    }
}

/// Its units are links into a file system that is mounted read-only.
#[test]
fn on_nixos_the_configuration_declares_the_unit() {
    let (_dir, root, _) = planted(&case("21-enable-systemd"));
    put(&root.path("etc/NIXOS"), "", 0o644);
    let error = enable::changes(&root, "/usr/local/bin").unwrap_err().to_string();
    assert!(error.contains("configuration.nix"), "{error}");
}

#[test]
fn a_masked_unit_stays_masked() {
    let (dir, root, _) = planted(&case("21-enable-systemd"));
    std::os::unix::fs::symlink("/dev/null", root.path("etc/systemd/system/eke.service")).unwrap();
    put(&root.path("dev/null/x"), "", 0o644);
    let before = tree(dir.path());
    let error =
        enable::write(&root, &enable::changes(&root, "/usr/local/bin").unwrap()).unwrap_err().to_string();
    assert!(error.contains("masked"), "{error}");
    assert_eq!(tree(dir.path()), before);
}

const UNIT: &str = "etc/systemd/system/eke.service";
const LINK: &str = "etc/systemd/system/multi-user.target.wants/eke.service";

fn enable_here(root: &Root) -> EnablePlan {
    let plan = enable::changes(root, "/usr/local/bin").unwrap();
    enable::write(root, &plan).unwrap();
    plan
}

#[test]
fn a_masked_unit_of_a_package_stays_masked() {
    let (dir, root, _) = planted(&case("28-enable-shipped"));
    fs::create_dir_all(root.path("etc/systemd/system")).unwrap();
    std::os::unix::fs::symlink("/dev/null", root.path(UNIT)).unwrap();
    let before = tree(dir.path());
    let error = enable::changes(&root, "/usr/local/bin").unwrap_err().to_string();
    assert!(error.contains("masked") && error.contains("systemctl unmask"), "{error}");
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn a_unit_from_before_the_package_gives_way_to_the_packages() {
    let (dir, root, before) = planted(&case("28-enable-shipped"));
    let shipped = root.path("usr/lib/systemd/system/eke.service");
    let text = fs::read_to_string(&shipped).unwrap();
    fs::remove_file(&shipped).unwrap();
    enable_here(&root);
    assert!(root.exists(UNIT));
    put(&shipped, &text, 0o644);
    let plan = enable_here(&root);
    assert!(!root.exists(UNIT) && plan.notes.is_empty(), "{:?}", plan.notes);
    let target = fs::read_link(root.path(LINK)).unwrap();
    assert_eq!(target, Path::new("/usr/lib/systemd/system/eke.service"));
    enable::undo(&root).unwrap();
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn the_administrators_unit_replaces_the_packages() {
    let (dir, root, _) = planted(&case("28-enable-shipped"));
    put(&root.path(UNIT), "[Service]\nExecStart=/usr/local/bin/eke-agent --config /x\n", 0o644);
    let before = tree(dir.path());
    let plan = enable_here(&root);
    assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
    assert_eq!(fs::read_link(root.path(LINK)).unwrap(), Path::new("/").join(UNIT));
    enable::undo(&root).unwrap();
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn a_link_by_systemctl_counts_as_enabled_and_goes_with_disable() {
    let (dir, root, mut before) = planted(&case("28-enable-shipped"));
    fs::create_dir_all(root.path(LINK).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/lib/systemd/system/eke.service", root.path(LINK)).unwrap();
    assert!(enable::state(&root).unwrap().enabled);
    assert!(enable_here(&root).changes.is_empty(), "the link leads to the unit already");
    let undone = enable::undo(&root).unwrap();
    assert_eq!(undone.files.len(), 1, "{undone:?}");
    assert_eq!(undone.to_run.len(), 1, "{undone:?}");
    for dir in ["etc", "etc/systemd", "etc/systemd/system", "etc/systemd/system/multi-user.target.wants"] {
        before.insert(dir.into(), Node::Dir);
    }
    assert_eq!(tree(dir.path()), before);
    assert!(!enable::state(&root).unwrap().enabled);
}

#[test]
fn a_package_whose_programs_others_can_replace_is_not_enabled() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, root, _) = planted(&case("29-enable-shipped-of-another-installation"));
    fs::set_permissions(root.path("usr/bin/eke-agent"), fs::Permissions::from_mode(0o777)).unwrap();
    let error = enable::changes(&root, "/usr/local/bin").unwrap_err().to_string();
    assert!(error.contains("/usr/bin/eke-agent can be changed by everybody"), "{error}");
}

/// An EFI system partition or /boot that is mounted only when it is needed.
#[test]
fn entries_that_are_not_mounted_are_not_gone() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/03-grub-entries-dracut");
    let (dir, root, before) = planted(&case);
    boot::write(&root, &boot::changes(&root, &zswap()).unwrap()).unwrap();
    let (entries, away) = (dir.path().join("boot/loader/entries"), dir.path().join("away"));
    fs::rename(&entries, &away).unwrap();
    let written = tree(dir.path());
    let refused = boot::undo(&root).unwrap_err().to_string();
    assert!(refused.contains("1-6.8.5.conf is missing, which eke changed"), "{refused}");
    assert!(refused.contains(&format!("mount {} first", dir.path().join("boot").display())), "{refused}");
    assert_eq!(tree(dir.path()), written, "nothing is undone, and nothing forgotten");
    fs::rename(&away, &entries).unwrap();
    let (undone, _) = boot::undo(&root).unwrap();
    assert!(undone.files.iter().all(|f| f.outcome != Outcome::Unchanged), "{undone:?}");
    assert_eq!(tree(dir.path()), before);
}

/// The way out that the refusal names.
#[test]
fn entries_that_are_gone_for_good_can_be_forgotten() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/03-grub-entries-dracut");
    let (dir, root, _) = planted(&case);
    boot::write(&root, &boot::changes(&root, &zswap()).unwrap()).unwrap();
    let entries = dir.path().join("boot/loader/entries");
    fs::remove_dir_all(&entries).unwrap();
    boot::undo(&root).unwrap_err();
    put(&entries.join("none.conf"), "", 0o644);
    let (undone, _) = boot::undo(&root).unwrap();
    assert!(undone.files.iter().all(|f| !matches!(f.outcome, Outcome::Kept(_))), "{undone:?}");
    assert!(!root.exists("var/lib/eke/files.jsonl"));
}

/// As `kernel-install` does: the words of the entry before, or of the running kernel.
#[test]
fn entries_of_later_kernels_lose_the_words_too() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/03-grub-entries-dracut");
    let (dir, root, before) = planted(&case);
    boot::write(&root, &boot::changes(&root, &zswap()).unwrap()).unwrap();
    let entries = dir.path().join("boot/loader/entries");
    let [old, new, users] = ["1-6.8.5.conf", "1-6.9.0.conf", "1-6.7.0.conf"].map(|name| entries.join(name));
    let text = fs::read_to_string(&old).unwrap();
    assert!(text.contains("zswap.enabled=1"), "{text}");
    let of_user = "title b\nlinux /vmlinuz-6.7\noptions root=x zswap.enabled=1 zswap.compressor=lzo\n";
    put(&new, &text.replace("6.8.5", "6.9.0"), 0o644);
    put(&users, of_user, 0o644);
    fs::remove_file(&old).unwrap();
    let (undone, cleaned) = boot::undo(&root).unwrap();
    assert_eq!(cleaned, ["boot/loader/entries/1-6.9.0.conf"]);
    assert!(
        undone.files.iter().all(|f| matches!(f.outcome, Outcome::Restored | Outcome::Removed)),
        "an entry that is gone is no change of somebody's: {undone:?}"
    );
    assert_eq!(fs::read_to_string(&users).unwrap(), of_user);
    put(&old, &fs::read_to_string(&new).unwrap().replace("6.9.0", "6.8.5"), 0o644);
    [new, users].iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(tree(dir.path()), before);
    assert_eq!(boot::undo(&root).unwrap(), (Undone::default(), Vec::new()));
}
