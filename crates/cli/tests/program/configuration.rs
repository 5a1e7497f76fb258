//! Configurations: wrong, closed, or no files.

use std::path::PathBuf;
use std::process::Command;

use eke_testkit::real::skip;

use crate::common::{Public, eke, is_root};

fn config(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::io::Write::write_all(&mut file.as_file(), text.as_bytes()).unwrap();
    file
}

#[test]
fn a_wrong_configuration_names_file_line_and_valid_keys() {
    let file = config("[swap]\nalgorythm = \"lz4\"\n");
    let ran = eke(&["plan", "--config", file.path().to_str().unwrap()]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.stderr.contains(".toml:2: unknown field `algorythm`, expected one of `backend`, `algorithm`"),
        "{}",
        ran.stderr
    );
    let ran = eke(&["plan", "--config", "/nonexistent/eke.toml"]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("/nonexistent/eke.toml: No such file"), "{}", ran.stderr);
}

#[test]
fn a_file_that_is_too_long_for_a_configuration_is_not_read() {
    let file = config("");
    file.as_file().set_len(100 << 20).unwrap();
    let ran = eke(&["plan", "--config", file.path().to_str().unwrap()]);
    assert_eq!(ran.status, Some(2), "{}", ran.shown());
    assert!(
        ran.stderr.contains("has more than 1048576 bytes: it is no configuration of eke"),
        "{}",
        ran.shown()
    );
}

/// A pipe of the shell has a text once; nobody may ever write to one with a name; a device may have no end.
#[test]
fn a_configuration_may_be_a_pipe_of_the_shell_but_nothing_that_has_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let fed = |config: &str| {
        let sh = format!("printf '[swap]\\npool_percent = 20\\n' | \"$0\" --config {config} plan --json");
        eke_testkit::program::ran(Command::new("sh").args(["-c", &sh, env!("CARGO_BIN_EXE_eke")]))
    };
    assert_eq!(fed("/dev/stdin").status, Some(0));
    for (config, why) in
        [(pipe.to_str().unwrap(), "is a pipe, and no configuration"), ("/dev/zero", "has more than")]
    {
        let ran = fed(config);
        assert!(ran.status == Some(2) && ran.stderr.contains(why), "{}", ran.shown());
    }
}

#[test]
fn a_wrong_configuration_stops_no_undo() {
    let root = tempfile::tempdir().unwrap();
    eke_testkit::tree::put(root.path(), "etc/eke/eke.toml", "[swap]\npool_precent = 50\n");
    eke_testkit::tree::put(root.path(), "proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n");
    eke_testkit::tree::put(root.path(), "proc/swaps", "Filename\n");
    let at = root.path().to_str().unwrap();
    for verb in [
        &["down"][..],
        &["disable"],
        &["link", "--undo"],
        &["swap", "boot-config", "--undo"],
        &["completions", "bash"],
    ] {
        let ran = eke(&[&["--root", at], verb].concat());
        assert_eq!(ran.status, Some(0), "{verb:?}: {}", ran.shown());
        assert!(ran.stderr.contains("unknown field `pool_precent`"), "{verb:?}: {}", ran.shown());
    }
    let file = config("[swap]\npool_precent = 50\n");
    let named = eke(&["--root", at, "down", "--config", file.path().to_str().unwrap()]);
    assert_eq!(named.status, Some(2), "{}", named.shown());
    assert_eq!(eke(&["--root", at, "doctor"]).status, Some(2));
    eke_testkit::tree::put(root.path(), "proc/stat", "cpu 1 2 3 4\n");
    eke_testkit::tree::put(root.path(), "proc/vmstat", "pswpin 0\n");
    let status = eke(&["--root", at, "status"]);
    assert_eq!(status.status, Some(3), "no agent: {}", status.shown());
    assert!(status.stderr.contains("unknown field `pool_precent`"), "{}", status.shown());
}

/// A password of a shared tier may make it root's alone.
#[test]
fn a_configuration_that_only_root_may_read_stops_nobody_who_only_reads() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root() {
        return skip("a_configuration_that_only_root_may_read", "only root can become nobody");
    }
    let (public, root) = (Public::new(), tempfile::tempdir().unwrap());
    for (path, text) in [
        ("etc/eke/eke.toml", ""),
        ("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n"),
        ("proc/stat", "cpu 1 2 3 4\n"),
        ("proc/vmstat", "pswpin 0\n"),
        ("proc/swaps", "Filename\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    let mode = |path: PathBuf, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(root.path().to_owned(), 0o755);
    mode(root.path().join("etc/eke/eke.toml"), 0o600);
    let at = root.path().to_str().unwrap();
    for (verb, status) in [("status", 3), ("doctor", 0), ("plan", 0), ("up", 4)] {
        let ran = public.as_nobody(&["--root", at, verb]);
        assert_eq!(ran.status, Some(status), "{verb}: {}", ran.shown());
        assert!(ran.stderr.contains("eke.toml: Permission denied"), "{verb}: {}", ran.shown());
    }
}

#[test]
fn overrides_that_make_no_sense_are_refused_with_what_would() {
    if let Some(why) = eke_testkit::real::lacking(&["/sys/class/zram-control"]) {
        return skip("overrides", &why);
    }
    let _machine = eke_testkit::real::lock_machine();
    for (args, part) in [
        (&["plan", "--size", "0", "--backend", "zram"][..], "less than the largest page"),
        (&["plan", "--size", "900T", "--backend", "zram"], "at most"),
        (&["plan", "--algorithm", "brotli"], "is not offered by this kernel; it offers: "),
    ] {
        let ran = eke(args);
        assert_eq!(ran.status, Some(2), "{}", ran.shown());
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}
