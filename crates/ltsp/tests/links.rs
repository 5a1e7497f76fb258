//! A directory that stands for `/`: whatever its symbolic links say, nothing beside it is read or changed.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "test code")]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use eke_apply::boot::ltsp::SCRIPT;
use eke_testkit::program::{Ran, ran};
use eke_testkit::tree::{self, put};

const CONF: &str = "etc/ltsp/ltsp.conf";
const WRONG: &str = "[clients]\nEKE=outside\n";

/// A server's root, beside another tree that has the same files.
struct Trees(tempfile::TempDir);

impl Trees {
    fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        put(all.path(), "root/usr/sbin/ltsp", "");
        put(all.path(), "root/etc/ltsp/ltsp.conf", "[clients]\nEKE=auto\n");
        put(all.path(), "beside/etc/ltsp/ltsp.conf", WRONG);
        put(all.path(), "beside/etc/ltsp/client/init/70-eke.sh", "# of others\n");
        put(all.path(), "beside/lib/eke/files.jsonl", "of others\n");
        put(all.path(), "beside/srv/ltsp/ltsp.img", "070701 of others");
        Self(all)
    }

    fn root(&self) -> std::path::PathBuf {
        self.0.path().join("root")
    }

    /// Puts a link into the root, in the place of what is there.
    fn link(&self, path: &str, target: impl AsRef<Path>) {
        let link = self.root().join(path);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&link).or_else(|_| std::fs::remove_dir_all(&link));
        symlink(target, link).unwrap();
    }

    fn run(&self, verb: &str) -> Ran {
        ran(Command::new(env!("CARGO_BIN_EXE_eke-ltsp")).args([verb, "--root"]).arg(self.root()))
    }

    /// What no call may change.
    fn beside(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        tree::read(&self.0.path().join("beside"), &[])
    }
}

/// The same link in three ways: absolute, by `..`, and as a directory above.
fn each_way(path: &str, of_beside: &str, check: impl Fn(&Trees)) {
    let up = |path: &str| "../".repeat(path.split('/').count());
    for way in 0..3 {
        let trees = Trees::new();
        let beside = trees.0.path().join("beside");
        let (dir, _) = path.rsplit_once('/').unwrap();
        let (dir_beside, _) = of_beside.rsplit_once('/').unwrap();
        match way {
            0 => trees.link(path, beside.join(of_beside)),
            1 => trees.link(path, format!("{}beside/{of_beside}", up(path))),
            _ => trees.link(dir, beside.join(dir_beside)),
        }
        let before = trees.beside();
        check(&trees);
        assert_eq!(trees.beside(), before, "{path}, way {way}");
    }
}

#[test]
fn no_settings_of_another_tree_are_read() {
    each_way(CONF, CONF, |trees| {
        for verb in ["plan", "status"] {
            let ran = trees.run(verb);
            assert!(!ran.stdout.contains("outside"), "{}", ran.shown());
            assert!(ran.stdout.contains("ltsp.conf does not exist"), "{}", ran.shown());
        }
    });
}

#[test]
fn no_script_of_another_tree_is_changed() {
    each_way(SCRIPT, SCRIPT, |trees| {
        for verb in ["install", "uninstall"] {
            trees.run(verb);
        }
    });
    each_way(&format!("{SCRIPT}.eke-new"), SCRIPT, |trees| {
        assert_eq!(trees.run("install").status, Some(0));
    });
}

#[test]
fn no_journal_lock_or_image_of_another_tree_is_used() {
    for name in ["files.jsonl", "files.lock", "commands-due.json"] {
        each_way(&format!("var/lib/eke/{name}"), "lib/eke/files.jsonl", |trees| {
            for verb in ["install", "uninstall"] {
                trees.run(verb);
            }
        });
    }
    each_way("srv/tftp/ltsp/ltsp.img", "srv/ltsp/ltsp.img", |trees| {
        let status = trees.run("status");
        assert!(
            status.stdout.contains("ltsp.img does not exist")
                || status.stdout.contains("not in the clients'")
        );
        trees.run("install");
    });
}

/// As Debian has `/usr/sbin/x -> /etc/alternatives/x`, and an image `/etc/ltsp -> /srv/ltsp-conf`.
#[test]
fn links_within_the_directory_lead_as_on_that_system() {
    let trees = Trees::new();
    put(&trees.root(), "etc/alternatives/ltsp", "");
    put(&trees.root(), "srv/conf/ltsp.conf", "[clients]\nEKE=auto\n");
    trees.link("usr/sbin/ltsp", "/etc/alternatives/ltsp");
    trees.link("etc/ltsp", "/srv/conf");
    trees.link("var/lib", "../srv/state");
    std::fs::create_dir_all(trees.root().join("srv/state")).unwrap();
    let before = tree::read(&trees.root(), &[]);
    let installed = trees.run("install");
    assert_eq!(installed.status, Some(0), "{}", installed.shown());
    assert!(!installed.stdout.contains("no client uses eke"), "{}", installed.shown());
    assert!(trees.root().join("srv/conf/client/init/70-eke.sh").is_file(), "{}", installed.shown());
    assert!(trees.root().join("srv/state/eke/files.jsonl").is_file());
    assert!(trees.run("uninstall").stdout.contains("srv/conf/client/init/70-eke.sh is as it was"));
    let _ = std::fs::remove_dir(trees.root().join("srv/state/eke"));
    assert_eq!(tree::read(&trees.root(), &[]), before);
}
