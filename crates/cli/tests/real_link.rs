//! `eke link`: the built program and a real ssh server on this machine, with files in a temporary directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use common::{Public, Ran, command, eke, is_root};
use eke_testkit::real::{lock_machine, skip};
use eke_testkit::sshd::{HOST, Server, lacks};
use eke_testkit::tree;
use tempfile::TempDir;

const DROP_IN: &str = "etc/ssh/ssh_config.d/50-eke-link.conf";
const LTSP: &str = "etc/ltsp/ltsp.conf";

/// A root directory whose ssh_config includes drop-ins.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    tree::put(
        root.path(),
        "etc/ssh/ssh_config",
        "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n    SendEnv LANG\n",
    );
    tree::put(root.path(), "proc/self/mountinfo", "");
    root
}

fn link(root: &TempDir, args: &[&str]) -> Ran {
    let root = root.path().to_str().unwrap();
    eke(&[&["--root", root, "link"], args].concat())
}

#[test]
fn it_is_measured_shown_written_and_taken_back() {
    if let Some(why) = lacks() {
        return skip("it_is_measured_shown_written", &why);
    }
    let _machine = lock_machine();
    let server = Server::start("");
    let config = server.config();
    let config = config.to_str().unwrap();
    let root = root();
    tree::put(root.path(), DROP_IN, "# mine\nHost far\n    Port 22");
    let before = tree::read(root.path(), &[]);
    let shown = link(&root, &[HOST, "-F", config, "--sessions", "2"]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    for words in ["Chosen: ", "2 sessions at once", "+# eke link: begin far", "Nothing was written"] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
    assert_eq!(tree::read(root.path(), &[]), before, "only shown");
    let written = link(&root, &[HOST, "-F", config, "--sessions", "1", "--write", "--json"]);
    let document = written.json();
    assert_eq!(document["files"][0]["written"], true, "{written:?}");
    let text = std::fs::read_to_string(root.path().join(DROP_IN)).unwrap();
    let chosen = document["hosts"][0]["link"]["decision"]["chosen"]["cipher"].as_str().unwrap();
    assert!(text.starts_with("# mine\nHost far\n    Port 22\n\n# eke link: begin far\nHost far\n"), "{text}");
    assert!(text.contains(&format!("    Ciphers {chosen},")), "{text}");
    assert!(!text.contains("cbc") && !text.contains("sha1"), "{text}");
    let undone = link(&root, &["--undo"]);
    assert!(undone.stdout.contains("/etc/ssh/ssh_config.d/50-eke-link.conf is as it was"), "{undone:?}");
    let after = tree::read(root.path(), &["var", "var/lib", "var/lib/eke"]);
    assert_eq!(after, before);
    assert!(link(&root, &["--undo"]).stdout.contains("Nothing to undo"));
}

#[test]
fn what_is_written_into_a_file_during_the_measurement_stays() {
    if let Some(why) = lacks() {
        return skip("what_is_written_into_a_file_during_the_measurement_stays", &why);
    }
    let _machine = lock_machine();
    let server = Server::start("");
    let root = root();
    tree::put(root.path(), DROP_IN, "# before\n");
    let file = root.path().join(DROP_IN);
    // ssh runs this before it connects.
    server.set(&format!("Match exec \"echo '# meanwhile' >{}\"", file.display()));
    let config = server.config();
    let written = link(&root, &[HOST, "-F", config.to_str().unwrap(), "--sessions", "1", "--write"]);
    assert_eq!(written.status, Some(0), "{written:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# meanwhile\n\n# eke link: begin far\n"), "{text}");
}

/// Lines for an ssh server whose sessions have this eke first in PATH.
fn with_eke() -> String {
    let program = common::command(&[]).get_program().to_owned();
    let dir = std::path::Path::new(&program).parent().unwrap().display().to_string();
    format!("SetEnv PATH={dir}:/usr/bin:/bin\nX11Forwarding yes")
}

#[test]
fn where_eke_is_on_the_far_end_the_link_itself_is_measured_too() {
    if let Some(why) = lacks() {
        return skip("where_eke_is_on_the_far_end", &why);
    }
    let _machine = lock_machine();
    let server = Server::start(&with_eke());
    let config = server.config();
    let shown = link(&root(), &[HOST, "-F", config.to_str().unwrap(), "--sessions", "2", "--json"]);
    let link = &shown.json()["hosts"][0]["link"];
    let bare = &link["bare"];
    assert_eq!(link["no_bare"], serde_json::Value::Null, "{shown:?}");
    for rate in ["to_here", "to_there", "together_to_here", "together_to_there"] {
        assert!(bare[rate].as_f64().unwrap() > 0.0, "{rate}: {bare}");
    }
    assert!(link["bytes"].as_u64().unwrap() <= 200_000_000, "{}", link["bytes"]);
    // requests after it are still answered: the sessions
    assert_eq!(link["sessions"]["count"], 2, "{shown:?}");
    let left = std::process::Command::new("pgrep").args(["-f", "lab link-end"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{left:?}");
}

#[test]
fn compression_is_decided_by_a_session_and_written() {
    let lacks = lacks().or_else(|| eke_testkit::real::no_program(&["Xvfb", "xauth", "timeout"]));
    if let Some(why) = lacks {
        return skip("compression_is_decided_by_a_session", &why);
    }
    let _machine = lock_machine();
    let server = Server::start(&with_eke());
    let config = server.config();
    let screen = eke_bench_desktop::desktop::bare::Screen::start().unwrap();
    let root = root();
    let run = |program: &str| {
        let mut command = common::command(&["--root", root.path().to_str().unwrap(), "link", HOST, "--json"]);
        command.args(["-F", config.to_str().unwrap(), "--sessions", "1", "--write", "--x11-seconds", "2"]);
        command.args(["--x11", program]);
        command.env("DISPLAY", screen.display()).env("XAUTHORITY", screen.key());
        eke_testkit::program::ran(&mut command)
    };
    let ran = run("eke lab picture 60000");
    let x11 = &ran.json()["hosts"][0]["link"]["x11"];
    let (plain, compressed) = (&x11["plain"], &x11["compressed"]);
    assert!(plain["raw_bytes"].as_u64().unwrap() > 1_000_000, "{x11}");
    assert_eq!(plain["raw_bytes"], plain["wire_bytes"], "{x11}");
    assert!(
        compressed["wire_bytes"].as_u64().unwrap() < compressed["raw_bytes"].as_u64().unwrap() * 9 / 10,
        "{x11}"
    );
    assert!(compressed["there_cpu_s"].as_f64().unwrap() > 0.0, "{x11}");
    let is_advised = x11["compression"]["is_advised"].as_bool().unwrap();
    let text = std::fs::read_to_string(root.path().join(DROP_IN)).unwrap();
    assert!(text.contains(if is_advised { "    Compression yes" } else { "    Compression no" }), "{text}");
    let none = run("no-such-program");
    let x11 = &none.json()["hosts"][0]["link"]["x11"];
    assert!(x11["why_not"].as_str().unwrap().starts_with("the program ended with 127"), "{x11}");
    let text = std::fs::read_to_string(root.path().join(DROP_IN)).unwrap();
    assert!(!text.contains("Compression"), "{text}");
}

#[test]
fn several_hosts_are_one_table_and_one_that_is_down_does_not_hide_the_others() {
    if let Some(why) = lacks() {
        return skip("several_hosts", &why);
    }
    let _machine = lock_machine();
    let server = Server::start("");
    server.set("Host down\n  HostName 127.0.0.1\n  Port 1");
    let root = root();
    tree::put(root.path(), LTSP, "[clients]\nSSH_OPTIONS=\"-p 22\"\n");
    let ran =
        link(&root, &[HOST, "down", "-F", server.config().to_str().unwrap(), "--sessions", "1", "--ltsp"]);
    assert_eq!(ran.status, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("  host ") && ran.stderr.contains("down cannot be reached"), "{ran:?}");
    // the loopback interface has no hardware address, so no section is written
    assert!(ran.stdout.contains("far is left out of ltsp.conf"), "{ran:?}");
}

#[test]
fn what_cannot_be_is_said_before_anything_is_measured() {
    if !is_root() {
        return skip("what_cannot_be", "not root");
    }
    let root = root();
    let none = link(&root, &["nowhere", "--ltsp"]);
    assert!(
        none.status == Some(1) && none.stderr.contains("there is no /etc/ltsp/ltsp.conf here"),
        "{none:?}"
    );
    tree::put(root.path(), LTSP, "[clients]\nNAT=1\nSSH_OPTIONS=\"-p 22\n");
    let broken = link(&root, &["nowhere", "--ltsp"]);
    assert!(broken.status == Some(1) && broken.stderr.contains("line 3: a quote is opened"), "{broken:?}");
    tree::put(root.path(), "etc/ssh/ssh_config", "Host *\n");
    let unread = link(&root, &["nowhere", "--write"]);
    assert!(
        unread.status == Some(1) && unread.stderr.contains("does not include /etc/ssh/ssh_config.d"),
        "{unread:?}"
    );
    let option = link(&root, &["--", "-oProxyCommand=true"]);
    assert!(option.status == Some(2) && option.stderr.contains("is no host"), "{option:?}");
    assert_eq!(eke(&["link"]).status, Some(2));
    assert_eq!(eke(&["link", "h", "--policy", "none"]).status, Some(2));
    let nobody = Public::new().as_nobody(&["link", "h", "--write"]);
    assert!(nobody.status == Some(4) && nobody.stderr.contains("~/.ssh/config"), "{nobody:?}");
}

/// As where systemd starts it by a socket, until the first connection. It is asked once for all hosts, before any is connected to.
#[test]
fn an_ssh_server_whose_settings_cannot_be_read_is_one_error_with_advice() {
    let name = "an_ssh_server_whose_settings_cannot_be_read_is_one_error_with_advice";
    if let Some(why) = lacks().or_else(|| eke_testkit::real::no_program(&["unshare"])) {
        return skip(name, &why);
    }
    let root = root();
    tree::put(root.path(), LTSP, "[clients]\n");
    tree::put(
        root.path(),
        "sshd",
        "#!/bin/sh\necho Missing privilege separation directory: /run/sshd >&2\nexit 255\n",
    );
    let script = "chmod +x $1/sshd; mount --bind $1/sshd /usr/sbin/sshd; exec $0 --root $1 link --ltsp h1.invalid h2.invalid";
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", script, env!("CARGO_BIN_EXE_eke")]);
    let ran = common::ran(command.arg(root.path()));
    assert!(ran.status == Some(1) && ran.stderr.contains("systemctl start ssh"), "{}", ran.shown());
    assert_eq!(ran.stderr.matches("/run/sshd").count(), 1, "{}", ran.shown());
}

#[test]
fn a_host_that_cannot_be_found_is_an_error_with_advice() {
    let ran = eke_testkit::program::ran(&mut command(&["link", "nowhere.invalid"]));
    assert!(
        ran.status == Some(1) && ran.stderr.contains("cannot be reached") && ran.stderr.contains("Try: ssh"),
        "{ran:?}"
    );
}
