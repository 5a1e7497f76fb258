//! Arguments, and starts that fail: the error, and what is passed on.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use eke_testkit::real::{no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::process::Signal;

use super::environment::{Environment, no_fuse, put, signal};
use crate::common::{Ran, eke};

#[test]
fn wrong_arguments_say_what_would_be_right() {
    let cache = |args: &[&str]| eke(&[&["cache"], args].concat()).shown();
    insta::assert_snapshot!("no_verb", cache(&["mount"]));
    insta::assert_snapshot!("memory_zero", cache(&["mount", "/", "--memory", "0"]));
    insta::assert_snapshot!("memory_90_percent", cache(&["mount", "/", "--memory", "90%"]));
    insta::assert_snapshot!("memory_lots", cache(&["mount", "/", "--memory", "lots"]));
    insta::assert_snapshot!("compress_unknown", cache(&["mount", "/", "--compress", "later"]));
    insta::assert_snapshot!("umount_without_place", cache(&["umount"]));
    let much = eke(&["cache", "mount", "/tmp", "--memory", "900T"]);
    assert_eq!(much.status, Some(2), "{}", much.shown());
    assert!(much.stderr.contains("is more than 85 % of this machine's"), "{}", much.stderr);
    let root = eke(&["cache", "status", "--root", "/nonexistent"]);
    assert_eq!(root.status, Some(2), "{}", root.shown());
}

#[test]
fn every_verb_has_an_example() {
    for verb in ["mount", "umount", "status"] {
        let help = eke(&["cache", verb, "--help"]);
        assert!(help.status == Some(0) && help.stdout.contains("Example:"), "{}", help.shown());
    }
}

#[test]
fn what_is_no_directory_is_named() {
    let environment = Environment::with_fake("echo started >&2; exit 1");
    let [data, file, none] = ["data", "data/file", "none"].map(|n| environment.text(n));
    insta::assert_snapshot!("not_there", environment.shown(&environment.cache(&["mount", &none])));
    insta::assert_snapshot!("a_file", environment.shown(&environment.cache(&["mount", &file])));
    insta::assert_snapshot!(
        "place_not_there",
        environment.shown(&environment.cache(&["mount", &data, &none]))
    );
    insta::assert_snapshot!("nothing_mounted", environment.shown(&environment.cache(&["umount", &data])));
    insta::assert_snapshot!("no_status", environment.shown(&environment.cache(&["status", &data])));
}

/// What holds a lock for a script would hold it as long as the cache is mounted.
#[test]
fn the_cache_gets_no_descriptor_of_the_shell() {
    if let Some(why) = no_fuse() {
        return skip("the_cache_gets_no_descriptor_of_the_shell", &why);
    }
    let environment = Environment::with_fake("cat >/dev/null; echo has $(ls -l /proc/$$/fd) >&2; exit 7");
    let [held, data] = ["held", "data"].map(|name| environment.text(name));
    let mount = environment.command(&["mount", &data]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "exec 9>\"$1\"; shift; exec \"$@\"", "sh", &held]).arg(mount.get_program());
    shell.args(mount.get_args());
    shell.envs(mount.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = shell.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains(" 0 -> ") && !said.contains(&held), "{said}");
}

/// Answers of a started `eke-cache`, or none.
#[test]
fn a_start_that_fails_says_what_became_of_it() {
    if let Some(why) = no_fuse() {
        return skip("a_start_that_fails", &why);
    }
    for (name, script, status) in [
        ("says_failed", r#"cat >/dev/null; echo '{"error":{"what":"the disk is gone","kind":"failed"}}'"#, 1),
        ("says_usage", r#"cat >/dev/null; echo '{"error":{"what":"it makes no sense","kind":"usage"}}'"#, 2),
        (
            "says_not_permitted",
            r#"cat >/dev/null; echo '{"error":{"what":"you may not","kind":"not_permitted"}}'"#,
            4,
        ),
        ("says_nonsense", "cat >/dev/null; echo 'GET / HTTP/1.1'; exec sleep 60", 1),
        ("dies", "cat >/dev/null; echo 'first words' >&2; echo 'out of luck' >&2; exit 3", 1),
        ("dies_deaf", "exit 7", 1),
    ] {
        let environment = Environment::with_fake(script);
        let ran = environment.cache(&["mount", &environment.text("data")]);
        assert_eq!(ran.status, Some(status), "{name}: {}", ran.shown());
        if name != "dies_deaf" {
            insta::assert_snapshot!(format!("start_{name}"), environment.shown(&ran));
        }
    }
}

#[test]
fn what_is_asked_for_is_what_is_passed_on() {
    if let Some(why) = no_fuse() {
        return skip("what_is_asked_for", &why);
    }
    let ready =
        r#"{"ready":{"place":"/p","dir":"/d","pid":1,"worker_pid":2,"memory":1048576,"notes":["a note"]}}"#;
    let environment = Environment::with_fake(&format!("cat >\"$0.settings\"; echo '{ready}'"));
    let [data, fast, ssd] = ["data", "fast", "ssd"].map(|n| environment.text(n));
    std::fs::create_dir(&ssd).unwrap();
    let asked = |args: &[&str]| -> serde_json::Value {
        let ran = environment.cache(&[&["mount"], args].concat());
        assert_eq!(ran.status, Some(0), "{}", ran.shown());
        serde_json::from_slice(&std::fs::read(environment.path("bin/eke-cache.settings")).unwrap()).unwrap()
    };
    let link = environment.path("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    let usual = asked(&[link.to_str().unwrap()]);
    assert_eq!(
        usual,
        serde_json::json!({
            "dir": data, "place": data, "memory": {"percent": 85}, "compress": "async", "others": true,
            "passthrough": "auto", "watch": true, "names_s": 1, "remember": false, "keep_mounted": false, "spill": null, "shared": null
        })
    );
    let options = [
        "--memory",
        "64M",
        "--compress",
        "sync",
        "--passthrough",
        "never",
        "--no-watch",
        "--names",
        "60",
        "--keep-mounted",
    ];
    let spill = ["--spill", &ssd, "--spill-size", "1G", "--spill-day", "100M"];
    let all = asked(&[&[data.as_str(), fast.as_str(), "--no-allow-other"][..], &options, &spill].concat());
    assert_eq!(
        all,
        serde_json::json!({
            "dir": data, "place": fast, "memory": {"bytes": 64 << 20}, "compress": "sync", "others": false,
            "passthrough": "never", "watch": false, "names_s": 60, "remember": false, "keep_mounted": true,
            "spill": {"dir": ssd, "size": 1u64 << 30, "day": 100 << 20}, "shared": null
        })
    );
    let ran = environment.cache(&["mount", &data, "--json"]);
    assert_eq!(ran.json()["pid"], 1);
    insta::assert_snapshot!("ready", environment.shown(&environment.cache(&["mount", &data])));
}

/// Ctrl-C during the start ends the process and waits for it.
#[test]
fn ctrl_c_during_the_start_leaves_nothing() {
    if let Some(why) = no_fuse() {
        return skip("ctrl_c_during_the_start", &why);
    }
    let environment = Environment::with_fake("cat >/dev/null; echo $$ >\"$0.pid\"; exec sleep 600");
    let mut eke = environment.command(&["mount", &environment.text("data")]);
    let eke = eke.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid =
        || std::fs::read_to_string(environment.path("bin/eke-cache.pid")).ok()?.trim().parse::<u32>().ok();
    wait_for("the start", || pid().is_some());
    signal(eke.id().into(), Signal::INT);
    let ran = Ran::from(eke_testkit::program::output_of(eke));
    insta::assert_snapshot!("interrupted", environment.shown(&ran));
    assert!(!Path::new(&format!("/proc/{}", pid().unwrap())).exists(), "it lives");
}

#[test]
fn without_fuse_it_says_so() {
    if let Some(why) = no_fuse().or_else(|| no_program(&["unshare", "mount", "setpriv"])) {
        return skip("without_fuse", &why);
    }
    let environment = Environment::with_fake("exit 1");
    let ran = environment.cache_without("/dev/fuse", &["mount", &environment.text("data")]);
    insta::assert_snapshot!("without_fuse", environment.shown(&ran));
}

/// A user cannot mount over a directory of another user or of root.
#[test]
fn without_permission_it_says_so() {
    if let Some(why) = no_fuse().or_else(|| no_program(&["unshare", "mount", "setpriv", "nsenter"])) {
        return skip("without_permission", &why);
    }
    let environment = Environment::new(true).with_open_device();
    put(&environment.path("bin/eke-cache"), b"#!/bin/sh\nexit 1\n");
    std::os::unix::fs::chown(environment.path("data"), Some(0), Some(0)).unwrap();
    insta::assert_snapshot!(
        "no_write",
        environment.shown(&environment.cache(&["mount", &environment.text("data")]))
    );
    std::fs::set_permissions(environment.path("data"), Permissions::from_mode(0o700)).unwrap();
    insta::assert_snapshot!(
        "no_read",
        environment.shown(&environment.cache(&["mount", &environment.text("data")]))
    );
}

#[test]
fn without_fusermount_it_says_so() {
    let needs = || no_program(&["unshare", "mount", "setpriv", "nsenter", "fusermount3"]);
    if let Some(why) = no_fuse().or_else(needs) {
        return skip("without_fusermount", &why);
    }
    let environment = Environment::real(true).with_open_device();
    let ran = environment.cache_without("/usr/bin/fusermount3", &["mount", &environment.text("data")]);
    assert_eq!(ran.status, Some(1), "{}", ran.shown());
    assert!(ran.stderr.contains("fusermount3 is missing"), "{}", ran.stderr);
}
