//! `make uninstall` leaves nothing, on the real kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{Ran, build_agent, build_cache, build_others, ran};
use eke_testkit::real::{lacking, lock_machine, no_program, skip};

const UNINSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/uninstall");

/// Copies of the programs.
struct Installed(tempfile::TempDir);

impl Installed {
    fn new() -> Self {
        build_agent();
        build_cache();
        build_others();
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("usr/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let from = Path::new(env!("CARGO_BIN_EXE_eke")).parent().unwrap();
        for name in ["eke", "eke-agent", "eke-cache", "eke-dash", "eke-ltsp", "eke-prefetch", "eke-record"] {
            // Copied by another process: a child of another test could keep the file open for writing (ETXTBSY).
            assert!(Command::new("cp").arg(from.join(name)).arg(&bin).status().unwrap().success());
        }
        std::fs::create_dir(dir.path().join("files")).unwrap();
        Self(dir)
    }

    /// Runs a script in a mount namespace with its own `/var/lib/eke` and `/run/eke` and without other mounts of eke.
    fn sh(&self, script: &str) -> Ran {
        let own = "mkdir -p /var/lib/eke /run/eke; for d in /var/lib/eke /run/eke; do mount -t tmpfs -o mode=755 x $d; done";
        let others = "grep -F ' fuse.eke-cache ' /proc/self/mounts | cut -d' ' -f2 | while read -r m; do umount -l \"$m\"; done";
        let script =
            format!("set -e; {others}; P={}; U={UNINSTALL}; {own}; {script}", self.0.path().display());
        ran(Command::new("unshare").args(["-m", "--propagation", "private", "sh", "-c", &script]))
    }
}

fn skipped(test: &str) -> bool {
    let why =
        lacking(&["/dev/fuse", "/sys/class/zram-control"]).or_else(|| no_program(&["unshare", "awk", "sed"]));
    why.inspect(|why| skip(test, why)).is_some()
}

#[test]
fn uninstall_ends_mounts_and_leaves_no_file() {
    if skipped("uninstall_ends_mounts_and_leaves_no_file") {
        return;
    }
    let _machine = lock_machine();
    let installed = Installed::new();
    let script = r#"
        echo hello > $P/files/a; mkdir "$P/a place"
        $P/usr/bin/eke cache mount $P/files "$P/a place" --memory 64M >&2
        $P/usr/bin/eke cache mount $P/files --memory 64M >&2
        mkdir -p /var/lib/eke/kept/etc
        touch /var/lib/eke/prefetch.lock /var/lib/eke/prefetch.db /var/lib/eke/prefetch.db-wal /var/lib/eke/wear.json
        touch /run/eke/agent-root.sock /run/eke/dictionary.json
        $U $P/usr >&2
        grep fuse.eke-cache.*$P /proc/self/mountinfo || true
        find $P/usr -type f
        ls -A /var/lib/eke /run/eke
        cat $P/files/a"#;
    let ran = installed.sh(script);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert_eq!(ran.stdout, "/run/eke:\n\n/var/lib/eke:\nhello\n", "{}", ran.shown());
}

#[test]
fn uninstall_removes_nothing_while_a_mount_is_in_use_and_keeps_what_it_saved() {
    if skipped("uninstall_removes_nothing_while_a_mount_is_in_use_and_keeps_what_it_saved") {
        return;
    }
    let _machine = lock_machine();
    let installed = Installed::new();
    let script = r#"
        echo hello > $P/files/a
        $P/usr/bin/eke cache mount $P/files --memory 64M >&2
        exec 3< $P/files/a
        if $U $P/usr; then echo "it did not stop"; fi
        ls $P/usr/bin
        exec 3<&-
        mkdir -p /var/lib/eke/kept/etc; echo text > /var/lib/eke/kept/etc/fstab
        touch /run/eke/strange
        cp -a $P/usr $P/again
        $U $P/usr
        find /var/lib/eke $P/usr -type f
        PURGE=1 $U $P/again >&2
        find /var/lib/eke -type f"#;
    let ran = installed.sh(script);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(ran.stderr.contains("is in use; nothing is removed"), "{}", ran.shown());
    assert!(!ran.stdout.contains("it did not stop"), "{}", ran.shown());
    assert!(ran.stdout.contains("eke\neke-agent\neke-cache\neke-dash\n"), "{}", ran.shown());
    assert!(ran.stdout.contains("saved in /var/lib/eke/kept"), "{}", ran.shown());
    assert!(ran.stdout.contains("Remaining: /run/eke/strange /var/lib/eke/kept"), "{}", ran.shown());
    assert!(ran.stdout.ends_with("\n/var/lib/eke/kept/etc/fstab\n"), "{}", ran.shown());
}

/// A user can give a mount of another file system that type, and keep it in use: here `eke cache umount` always fails.
#[test]
fn a_mount_of_a_user_does_not_stop_the_removal() {
    if skipped("a_mount_of_a_user_does_not_stop_the_removal") {
        return;
    }
    let _machine = lock_machine();
    let installed = Installed::new();
    let script = r#"
        mkdir "$P/of a user"
        mv $P/usr/bin/eke $P/eke
        cp -P $P/usr/bin/eke-ltsp $P/eke-ltsp
        printf '#!/bin/sh\n[ "$1 $2" = "cache umount" ] || exec %s "$@"\nexit 1\n' $P/eke >$P/usr/bin/eke
        chmod +x $P/usr/bin/eke
        exec 8<>/dev/fuse
        mount -i -t fuse.eke-cache -o "fd=8,rootmode=40000,user_id=1000,group_id=0" x "$P/of a user"
        $U $P/usr >&2
        umount -l "$P/of a user"
        find $P/usr -type f"#;
    let ran = installed.sh(script);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), ""), "{}", ran.shown());
    let said = "uninstall: user 1000 still has a mount of the compressed page cache";
    assert!(ran.stderr.contains(said), "{}", ran.shown());
}

/// The state may be that of an eke elsewhere, which runs.
#[test]
fn uninstall_removes_nothing_where_nothing_is_installed() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("share/man/man1/eke.1");
    eke_testkit::tree::put(dir.path(), "share/man/man1/eke.1", "");
    let ran = ran(Command::new(UNINSTALL).arg(dir.path()));
    assert!(
        ran.status == Some(1) && ran.stderr.contains("PREFIX may be wrong; nothing is removed"),
        "{}",
        ran.shown()
    );
    assert!(page.exists());
}

#[test]
fn uninstall_of_a_package_removes_files_only() {
    let dir = tempfile::tempdir().unwrap();
    let bin = dir.path().join("usr/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy("/bin/true", bin.join("eke")).unwrap();
    let ran = ran(Command::new(UNINSTALL).args(["/usr", dir.path().to_str().unwrap()]));
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""), "{}", ran.shown());
    assert!(!bin.join("eke").exists());
}
