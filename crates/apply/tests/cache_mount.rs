//! Caches at every boot: which bytes are written, and that none is left.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests, which fail by it"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use eke_apply::boot::cache_mount::{CacheAtBoot, MountedBy, changes, enabled, undo, write};
use eke_linux::root::Root;
use eke_testkit::tree::put;

const FSTAB: &str = "# the user's\nUUID=1 / ext4 defaults 0 1";

/// A root with the programs, and with systemd or fuse3.
fn root(with: &[&str]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    put(dir.path(), "etc/fstab", FSTAB);
    for program in [&["usr/bin/eke", "usr/bin/eke-agent", "usr/bin/eke-cache"], with].concat() {
        put(dir.path(), program, "#!/bin/sh\n");
        fs::set_permissions(dir.path().join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let root = Root::at(dir.path());
    (dir, root)
}

fn cache(place: &str) -> CacheAtBoot {
    let options = vec!["no-watch".into()];
    CacheAtBoot { dir: place.into(), place: place.into(), options, needs: Vec::new(), is_remote: false }
}

fn enable(root: &Root, place: &str) -> MountedBy {
    let plan = changes(root, "/usr/bin", &cache(place)).unwrap();
    write(root, &plan).unwrap();
    plan.by
}

fn exists(dir: &Path, path: &str) -> bool {
    fs::symlink_metadata(dir.join(path)).is_ok()
}

#[test]
fn with_systemd_each_cache_has_a_unit_of_its_own() {
    let (dir, root) = root(&[]);
    fs::create_dir_all(dir.path().join("run/systemd/system")).unwrap();
    let unit = "etc/systemd/system/eke-cache-srv-www.service";
    assert_eq!(enable(&root, "/srv/www"), MountedBy::Unit("eke-cache-srv-www.service".into()));
    enable(&root, "/srv/two");
    let text = root.read(unit).unwrap();
    assert!(
        text.contains("ExecStart=/usr/bin/eke cache mount --foreground \"--no-watch\" \"/srv/www\"\n"),
        "{text}"
    );
    assert!(text.contains("\nConditionFileIsExecutable=/usr/bin/eke\n"), "{text}");
    let wanted = "etc/systemd/system/multi-user.target.wants/eke-cache-srv-www.service";
    assert_eq!(fs::read_link(dir.path().join(wanted)).unwrap(), Path::new("/").join(unit));
    let again = changes(&root, "/usr/bin", &cache("/srv/www")).unwrap_err().to_string();
    assert!(again.contains("already") && again.contains("eke cache disable /srv/www"), "{again}");
    let all: Vec<_> = enabled(&root).unwrap().into_iter().map(|e| (e.place, e.stands)).collect();
    assert_eq!(all, [("/srv/two".to_owned(), true), ("/srv/www".to_owned(), true)]);
    undo(&root, "/srv/www").unwrap().unwrap();
    assert!(!exists(dir.path(), unit) && !exists(dir.path(), wanted));
    assert!(undo(&root, "/srv/www").unwrap().is_none());
    undo(&root, "/srv/two").unwrap().unwrap();
    assert!(!exists(dir.path(), "etc/systemd") && !exists(dir.path(), "var/lib/eke/files.jsonl"));
    assert_eq!(root.read("etc/fstab").unwrap(), FSTAB);
}

#[test]
fn a_unit_that_somebody_changed_is_left_alone() {
    let (dir, root) = root(&[]);
    fs::create_dir_all(dir.path().join("run/systemd/system")).unwrap();
    enable(&root, "/srv/www");
    let unit = "etc/systemd/system/eke-cache-srv-www.service";
    fs::write(dir.path().join(unit), "[Service]\n").unwrap();
    assert!(!enabled(&root).unwrap()[0].stands);
    undo(&root, "/srv/www").unwrap().unwrap();
    assert_eq!(root.read(unit).unwrap(), "[Service]\n");
}

#[test]
fn without_systemd_fstab_has_a_line_for_each() {
    let (dir, root) = root(&["usr/sbin/mount.fuse3"]);
    assert_eq!(enable(&root, "/srv/www"), MountedBy::Fstab);
    enable(&root, "/srv/two");
    let line = |place: &str| format!("{place}\t{place}\tfuse.eke-cache\tnofail,no_watch,x-eke.enable\t0 0\n");
    assert_eq!(root.read("etc/fstab").unwrap(), format!("{FSTAB}\n{}{}", line("/srv/www"), line("/srv/two")));
    assert_eq!(enabled(&root).unwrap().len(), 2);
    undo(&root, "/srv/www").unwrap().unwrap();
    assert_eq!(root.read("etc/fstab").unwrap(), format!("{FSTAB}\n{}", line("/srv/two")));
    undo(&root, "/srv/two").unwrap().unwrap();
    assert_eq!(root.read("etc/fstab").unwrap(), FSTAB, "byte for byte");
    assert!(enabled(&root).unwrap().is_empty() && !exists(dir.path(), "var/lib/eke/files.jsonl"));
}

#[test]
fn a_line_goes_although_somebody_changed_other_lines() {
    let (dir, root) = root(&["usr/sbin/mount.fuse3"]);
    enable(&root, "/srv/www");
    let text = root.read("etc/fstab").unwrap() + "/dev/sdb1 /mnt ext4 defaults 0 2\n";
    fs::write(dir.path().join("etc/fstab"), text).unwrap();
    undo(&root, "/srv/www").unwrap().unwrap();
    assert_eq!(root.read("etc/fstab").unwrap(), format!("{FSTAB}\n/dev/sdb1 /mnt ext4 defaults 0 2\n"));
    assert!(enabled(&root).unwrap().is_empty() && !exists(dir.path(), "var/lib/eke/files.jsonl"));
}

#[test]
fn what_cannot_mount_at_boot_is_refused() {
    let (dir, root) = root(&[]);
    let refused = |root: &Root, dir: &str| changes(root, dir, &cache("/srv/www")).unwrap_err().to_string();
    assert!(refused(&root, "/usr/bin").contains("package fuse3"));
    fs::create_dir_all(dir.path().join("run/systemd/system")).unwrap();
    assert!(refused(&root, "/home/me/bin").contains("user's"));
    fs::set_permissions(dir.path().join("usr/bin/eke-cache"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refused(&root, "/usr/bin").contains("eke-cache can be changed by everybody"));
    fs::write(dir.path().join("etc/NIXOS"), "").unwrap();
    assert!(refused(&root, "/usr/bin").contains("configuration.nix"));
    assert!(!exists(dir.path(), "etc/systemd") && root.read("etc/fstab").unwrap() == FSTAB);
}

/// Neither loses the other's line or its record.
#[test]
fn plans_that_were_made_before_another_one_was_written_keep_its_line() {
    let (dir, root) = root(&["usr/sbin/mount.fuse3"]);
    let plan = |place: &str| changes(&root, "/usr/bin", &cache(place)).unwrap();
    let (first, second, again) = (plan("/srv/www"), plan("/srv/two"), plan("/srv/www"));
    write(&root, &first).unwrap();
    write(&root, &second).unwrap();
    assert_eq!(enabled(&root).unwrap().len(), 2);
    let refused = write(&root, &again).unwrap_err().to_string();
    assert!(refused.contains("already"), "{refused}");
    std::thread::scope(|scope| {
        for place in ["/srv/www", "/srv/two"] {
            let root = &root;
            scope.spawn(move || undo(root, place).unwrap().unwrap());
        }
    });
    assert_eq!(root.read("etc/fstab").unwrap(), FSTAB);
    assert!(!exists(dir.path(), "var/lib/eke/files.jsonl"));
}
