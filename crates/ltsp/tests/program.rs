//! The program on a server's directory tree: what it prints, what it changes, and that it changes it back.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use eke_apply::boot::ltsp::{SCRIPT, SCRIPT_TEXT};
use eke_ltsp_conf::options::OPTIONS;
use eke_testkit::program::{Ran, ran};
use eke_testkit::tree::{self, put};

const CONF: &str = "etc/ltsp/ltsp.conf";
const IMAGE: &str = "srv/tftp/ltsp/ltsp.img";

fn server(conf: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "usr/sbin/ltsp", "");
    put(dir.path(), CONF, conf);
    dir
}

fn eke_ltsp(root: &Path, words: &[&str]) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_eke-ltsp")).args(words).arg("--root").arg(root))
}

/// As `ltsp initrd` does: names and texts in one archive.
fn pack(root: &Path) {
    let files = [SCRIPT, CONF].map(|path| (path, std::fs::read_to_string(root.join(path))));
    let archive = files.into_iter().filter_map(|(path, text)| Some(format!("{path}\0{}", text.ok()?)));
    put(root, IMAGE, &archive.collect::<String>());
}

#[test]
fn the_plan_shows_every_line_and_changes_nothing() {
    let dir = server("[clients]\nEKE_POOL_PERCENT=95\n");
    let before = tree::read(dir.path(), &[]);
    let ran = eke_ltsp(dir.path(), &["plan"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{}", ran.shown());
    for line in SCRIPT_TEXT.lines() {
        assert!(ran.stdout.contains(format!("  + {line}").trim_end()), "{line}");
    }
    for part in [
        "/etc/ltsp/client/init/70-eke.sh is written: ",
        "ltsp initrd runs: ",
        "/etc/ltsp/ltsp.conf:2: EKE_POOL_PERCENT=95",
    ] {
        assert!(ran.stdout.contains(part), "{part} lacks in\n{}", ran.stdout);
    }
    assert_eq!(tree::read(dir.path(), &[]), before);
    let json = eke_ltsp(dir.path(), &["plan", "--json"]).json();
    assert_eq!(json["files"][0]["text"], SCRIPT_TEXT);
    assert_eq!(json["commands"][0]["command"], "ltsp initrd");
}

#[test]
fn what_install_writes_uninstall_takes_away() {
    let dir = server("[clients]\nEKE=auto\n");
    let root = dir.path();
    pack(root);
    let before = tree::read(root, &[]);
    let installed = eke_ltsp(root, &["install"]);
    assert_eq!(installed.status, Some(0), "{}", installed.shown());
    assert!(installed.stdout.contains("to run on that system: ltsp initrd"), "{}", installed.stdout);
    pack(root);
    assert!(!eke_ltsp(root, &["install"]).stdout.contains("to run"));
    assert_eq!(eke_ltsp(root, &["status", "--json"]).json()["is_in_boot_image"], true);
    let undone = eke_ltsp(root, &["uninstall"]);
    assert!(undone.stdout.contains("/etc/ltsp/client/init/70-eke.sh is as it was"), "{}", undone.stdout);
    assert!(undone.stdout.contains("to run on that system: ltsp initrd"), "{}", undone.stdout);
    // An image made meanwhile has the script, and EKE=auto still counts there.
    assert_eq!(undone.status, Some(5), "{}", undone.shown());
    for part in ["make them anew by `ltsp image`", "the lines with EKE in /etc/ltsp/ltsp.conf count"] {
        assert!(undone.stdout.contains(part), "{part} lacks in\n{}", undone.stdout);
    }
    pack(root);
    std::fs::remove_dir(root.join("var/lib/eke")).unwrap();
    let _ = (std::fs::remove_dir(root.join("var/lib")), std::fs::remove_dir(root.join("var")));
    assert_eq!(tree::read(root, &[]), before);
    assert!(eke_ltsp(root, &["uninstall"]).stdout.contains("eke was not installed"));
}

/// The last example of ltsp.conf(5), and a comment in Latin-1.
#[expect(clippy::disallowed_methods, reason = "a fake root must be created, and its text is not UTF-8")]
#[test]
fn a_line_of_shell_and_a_byte_that_is_no_utf_8_hide_nothing() {
    let text = b"[clients]\nEKE=auto\n# f\xfcr alle\n[set_root_hash]\nsed 's|^root:[^:]*:|root:$6$VRf:|' -i /etc/shadow\n\
        [server]\nTFTP_DIR=/var/lib/tftpboot\n";
    let dir = server("");
    let root = dir.path();
    std::fs::write(root.join(CONF), text).unwrap();
    put(root, "var/lib/misc/dnsmasq.leases", "0 52:54:00:aa:bb:01 127.0.0.1 pc01 *\n");
    let installed = eke_ltsp(root, &["install"]);
    assert_eq!(installed.status, Some(0), "{}", installed.shown());
    let image = [SCRIPT.as_bytes(), SCRIPT_TEXT.as_bytes(), text].concat();
    let path = root.join("var/lib/tftpboot/ltsp/ltsp.img");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, image).unwrap();
    let status = eke_ltsp(root, &["status", "--json"]).json();
    assert_eq!(
        (&status["notes"], &status["is_in_boot_image"]),
        (&serde_json::json!([]), &true.into()),
        "{status}"
    );
    assert_eq!(status["clients"][0]["is_on"], true, "{status}");
    let undone = eke_ltsp(root, &["uninstall"]);
    assert!(
        undone.status == Some(5) && undone.stdout.contains("to run on that system: ltsp initrd"),
        "{}",
        undone.shown()
    );
}

#[test]
fn a_script_that_somebody_changed_is_left_alone() {
    let dir = server("");
    eke_ltsp(dir.path(), &["install"]);
    put(dir.path(), SCRIPT, "# mine\n");
    let undone = eke_ltsp(dir.path(), &["uninstall"]);
    assert!(undone.stdout.contains("left alone: /etc/ltsp/client/init/70-eke.sh"), "{}", undone.stdout);
    assert!(!undone.stdout.contains("to no client"), "{}", undone.stdout);
    assert_eq!(std::fs::read_to_string(dir.path().join(SCRIPT)).unwrap(), "# mine\n");
}

#[test]
fn without_a_line_that_switches_it_on_it_is_wholly_uninstalled() {
    let dir = server("[clients]\n");
    let wants = dir.path().join("etc/systemd/system/multi-user.target.wants");
    std::fs::create_dir_all(&wants).unwrap();
    std::os::unix::fs::symlink("/usr/lib/systemd/system/eke.service", wants.join("eke.service")).unwrap();
    let says = |ran: &Ran| ran.stdout.contains("eke.service is enabled on this server");
    let (installed, undone) = (eke_ltsp(dir.path(), &["install"]), eke_ltsp(dir.path(), &["uninstall"]));
    assert!(says(&installed) && says(&undone), "{}", undone.shown());
    assert!(undone.status == Some(0) && !undone.stdout.contains("lines with EKE"), "{}", undone.shown());
    std::fs::remove_file(wants.join("eke.service")).unwrap();
    assert!(!says(&eke_ltsp(dir.path(), &["install"])));
}

/// As on a server whose ltsp.conf has mode 0660 and root's group.
#[test]
fn a_user_who_cannot_read_ltsp_conf_is_told_to_use_sudo() {
    if !rustix::process::geteuid().is_root() {
        return eke_testkit::real::skip("a_user_who_cannot_read_ltsp_conf_is_told_to_use_sudo", "not root");
    }
    let dir = server("[clients]\nEKE=auto\n");
    let of = |name: &str, mode| {
        std::fs::set_permissions(dir.path().join(name), Permissions::from_mode(mode)).unwrap();
    };
    for name in ["", "etc", "etc/ltsp", "usr", "usr/sbin"] {
        of(name, 0o755);
    }
    let program = dir.path().join("eke-ltsp");
    // another process copies it: a thread that starts a program now would inherit a descriptor that writes to it
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_eke-ltsp")).arg(&program).status().unwrap().success());
    let as_nobody = |verb: &str| {
        ran(Command::new(&program).arg(verb).arg("--root").arg(dir.path()).uid(65534).gid(65534))
    };
    for (mode, status) in [(0o600, 4), (0o644, 0)] {
        of(CONF, mode);
        for verb in ["status", "plan"] {
            let ran = as_nobody(verb);
            assert_eq!(ran.status, Some(status), "{verb}: {}", ran.shown());
            let is_hinted =
                ran.stderr.contains("ltsp.conf is readable by root alone here: sudo eke ltsp status");
            assert_eq!(is_hinted, status == 4, "{verb}: {}", ran.shown());
        }
    }
}

#[test]
fn without_ltsp_it_says_what_to_install() {
    let dir = tempfile::tempdir().unwrap();
    for verb in ["plan", "install"] {
        let ran = eke_ltsp(dir.path(), &[verb]);
        assert_eq!(ran.status, Some(1), "{}", ran.shown());
        assert!(ran.stderr.contains("apt install ltsp"), "{}", ran.stderr);
    }
    assert_eq!(tree::read(dir.path(), &[]).len(), 0);
}

/// A client that answers each connection with this page.
fn client(page: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{page}").as_bytes());
        }
    });
    port
}

#[test]
fn the_status_is_a_table_of_clients_that_answer_and_that_do_not() {
    let page = "eke_ram_bytes 260046848\neke_available_bytes 64000000\neke_plan_applied 1\n\
        eke_backend_info{backend=\"zram (zstd)\\u001b[2J\"} 1\neke_compressed_saved_bytes 98566144\n\
        eke_build_info{version=\"0.0.9\"} 1\n";
    let port = client(page);
    let dir = server(&format!(
        "[clients]\nEKE=auto\nEKE_METRICS={port}\n[52:54:00:aa:bb:02]\nHOSTNAME=pc02\n[pc03]\nEKE=off\n"
    ));
    put(
        dir.path(),
        "var/lib/misc/dnsmasq.leases",
        "0 52:54:00:aa:bb:01 127.0.0.1 pc01 *\n0 52:54:00:aa:bb:03 127.0.0.3 pc03 *\n",
    );
    let ran = eke_ltsp(dir.path(), &["status"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{}", ran.shown());
    let row =
        |name: &str| ran.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
    for part in ["52:54:00:aa:bb:01", "248", "94", "nothing", "now", "zram (zstd)"] {
        assert!(row("pc01").contains(part), "{part} lacks in\n{}", ran.stdout);
    }
    assert!(row("pc02").contains("not running"), "{}", ran.stdout);
    assert!(row("pc03").contains("eke is off"), "{}", ran.stdout);
    assert!(ran.stdout.contains("clients run eke 0.0.9"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'));
    let json = eke_ltsp(dir.path(), &["status", "--json"]).json();
    assert_eq!(json["clients"][0]["measured"]["saved_bytes"], 98_566_144);
    assert!(json["clients"][1]["silent"].is_string() && json["is_installed"] == false);
}

/// As with LTSP in one network, where another machine is the DHCP server.
#[test]
fn a_neighbour_is_a_client_if_it_serves_metrics_of_eke() {
    let port = client("eke_build_info{version=\"0.0.9\"} 1\n");
    let dir = server(&format!("[clients]\nEKE=auto\nEKE_METRICS={port}\n"));
    let arp = |n: u8| format!("127.0.0.{n} 0x1 0x2 52:54:00:aa:bb:0{n} * eth0\n");
    put(dir.path(), "proc/net/arp", &[arp(1), arp(2)].concat());
    let status = eke_ltsp(dir.path(), &["status", "--json"]).json();
    let names: Vec<_> = status["clients"].as_array().unwrap().iter().map(|c| c["name"].clone()).collect();
    assert_eq!(names, ["127.0.0.1"], "{status}");
    assert_eq!(eke_ltsp(dir.path(), &["addresses"]).stdout, "127.0.0.1\n");
    let targets = eke_ltsp(dir.path(), &["targets"]).stdout;
    assert!(targets.contains(&format!("127.0.0.1:{port}")) && !targets.contains("127.0.0.2"), "{targets}");
    let other = client("other 1\n");
    put(dir.path(), CONF, &format!("[clients]\nEKE=auto\nEKE_METRICS={other}\n"));
    assert_eq!(eke_ltsp(dir.path(), &["targets"]).stdout.trim(), "[]");
}

/// Prometheus would forget all clients, and no alert would tell of them.
#[test]
fn a_line_that_cannot_be_parsed_keeps_the_targets_that_there_are() {
    let dir = server("[clients]\nEKE=auto\nEKE_METRICS=on\n");
    put(dir.path(), "var/lib/misc/dnsmasq.leases", "0 52:54:00:aa:bb:01 192.168.67.21 pc01 *\n");
    let file = dir.path().join("targets.json");
    let targets = || eke_ltsp(dir.path(), &["targets", "--output", file.to_str().unwrap()]);
    assert_eq!(targets().status, Some(0));
    let before = std::fs::read_to_string(&file).unwrap();
    assert!(before.contains("192.168.67.21:7118"), "{before}");
    let wrong = "[clients]\nEKE=auto\nEKE_METRICS=\"on\n";
    for (conf, why) in
        [(Some(wrong), "/etc/ltsp/ltsp.conf:3: "), (None, "/etc/ltsp/ltsp.conf does not exist")]
    {
        std::fs::remove_file(dir.path().join(CONF)).unwrap();
        conf.inspect(|text| put(dir.path(), CONF, text));
        for ran in [targets(), eke_ltsp(dir.path(), &["addresses"])] {
            assert!(ran.status == Some(1) && ran.stderr.contains(why), "{}", ran.shown());
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
        put(dir.path(), CONF, "[clients]\n");
    }
    put(dir.path(), CONF, "[clients]\nEKE=auto\nEKE_METRICS=on\nEKE_SWAP=no\n");
    let noted = targets();
    assert!(noted.status == Some(0) && noted.stderr.contains("/etc/ltsp/ltsp.conf:4: "), "{}", noted.shown());
}

#[test]
fn a_client_can_be_named() {
    let dir = server("[clients]\nEKE=auto\nEKE_METRICS=on\n");
    let file = dir.path().join("targets.json");
    let ran = eke_ltsp(dir.path(), &["targets", "10.9.8.7", "--output", file.to_str().unwrap()]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), ""), "{}", ran.shown());
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(
        written.contains("\"10.9.8.7:7118\"") && written.contains("\"client\": \"10.9.8.7\""),
        "{written}"
    );
    let ran = eke_ltsp(dir.path(), &["status", "pc9"]);
    assert_eq!(ran.status, Some(2), "{}", ran.shown());
    assert!(
        ran.stderr.contains("\"pc9\" is neither an IP address nor the name of a client"),
        "{}",
        ran.stderr
    );
}

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ltsp.md")).unwrap()
}

/// Any machine of the clients' network can be a target.
#[test]
fn the_documented_scrape_has_limits_and_prometheus_takes_it() {
    let page = page();
    let from_head = page.lines().skip_while(|line| *line != "    scrape_configs:");
    let lines: Vec<&str> = from_head.map_while(|line| line.strip_prefix("    ")).collect();
    let text = lines.join("\n");
    for limit in ["body_size_limit:", "sample_limit:", "label_limit:", "label_value_length_limit:"] {
        assert!(text.contains(limit), "{limit} lacks in\n{text}");
    }
    if let Some(why) = eke_testkit::real::no_program(&["promtool"]) {
        return eke_testkit::real::skip("the_documented_scrape_has_limits_and_prometheus_takes_it", &why);
    }
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prometheus.yml", &text);
    let file = dir.path().join("prometheus.yml");
    let checked = ran(Command::new("promtool").args(["check", "config", "--syntax-only"]).arg(file));
    assert_eq!(checked.status, Some(0), "{}", checked.shown());
}

#[test]
fn the_document_names_every_option_and_its_values() {
    let page = page();
    for option in &OPTIONS {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", option.name)));
        let is_value = |word: &&str| ["auto", "off", "on", "zram", "zswap"].contains(word);
        for value in option.values.split([' ', ',']).filter(is_value) {
            assert!(row.is_some_and(|row| row.contains(&format!("`{value}`"))), "{}: {value}", option.name);
        }
        assert!(row.is_some(), "{}", option.name);
    }
}
