//! The files of `docs/examples/farm`: systemd, an engine and eke accept them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use eke_cache_mounts::engine_url;
use eke_cache_serve::fstab;
use eke_testkit::real::skip;
use eke_testkit::tree;
use eke_testkit::wait::wait_for;

use crate::engine::{ports, program};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/farm").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

#[test]
fn systemd_accepts_the_examples_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("systemd_accepts_the_examples_units", "systemd-analyze is missing");
    }
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        tree::put(dir.path(), name, text);
        dir.path().join(name)
    };
    let engine = put("valkey-server", "#!/bin/sh\n");
    std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
    let unit = text("eke-farm-engine@.service");
    assert!(unit.contains("ExecStart=/usr/bin/valkey-server /etc/eke/farm-engine.conf "));
    let unit = unit.replace("/usr/bin/valkey-server", engine.to_str().unwrap());
    let nginx = format!("{}[Service]\nExecStart={}\n", text("nginx.conf"), engine.display());
    let units = [put("eke-farm-engine@6379.service", &unit), put("farm-nginx.service", &nginx)];
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(units).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("farm")).collect();
    assert!(output.status.success() && ours.is_empty(), "{said}");
}

/// The README's command makes a cluster of two members on each host that fstab names, one of them a replica; the units are those of its ports.
#[test]
fn the_examples_cluster_has_a_replica_of_each_master() {
    let readme = text("README.md");
    let create = readme.lines().find(|line| line.contains("--cluster create")).unwrap();
    let members: Vec<&str> = create.split_whitespace().filter(|word| word.contains(":63")).collect();
    assert!(create.ends_with("--cluster-replicas 1") && members.len() == 6, "{create}");
    let hosts = |port: &str| -> Vec<String> {
        members.iter().filter_map(|member| member.strip_suffix(port)).map(str::to_owned).collect()
    };
    let (first, second) = (hosts(":6379"), hosts(":6380"));
    assert!(first == second && text("fstab").contains(&first.join(";")), "{first:?} {second:?}");
    assert!(readme.contains("enable --now eke-farm-engine@6379 eke-farm-engine@6380"));
}

#[test]
fn eke_accepts_the_examples_line_of_fstab() {
    let text = text("fstab");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let [origin, cache] = &lines[..] else { panic!("{lines:?}") };
    assert!(lines.iter().all(|line| line.len() == 6), "{lines:?}");
    assert_eq!((origin[1], origin[2], cache[2]), (cache[0], "nfs", "fuse.eke-cache"));
    let arguments = fstab::arguments(&[cache[0], cache[1], "-o", cache[3]]).unwrap().unwrap();
    assert_eq!(arguments[..4], ["cache", "mount", "/srv/origin", "/srv/www"]);
    let url = arguments.iter().find_map(|argument| argument.strip_prefix("--shared-url=")).unwrap();
    engine_url::parse(url).unwrap();
    for option in ["--shared-name=www", "--encrypt=/etc/eke/farm.key", "--allow-other"] {
        assert!(arguments.iter().any(|argument| argument == option), "{option}: {arguments:?}");
    }
}

#[test]
fn an_engine_accepts_the_examples_configuration() {
    let Some(program) = program() else {
        return skip("an_engine_accepts_the_examples_configuration", "no redis-server or valkey-server");
    };
    let ([port], dir) = (ports(), tempfile::tempdir().unwrap());
    let mut command = Command::new(program);
    command.arg(file("engine.conf")).args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"]);
    command.arg(dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut engine = command.spawn().unwrap();
    let answers = std::panic::catch_unwind(|| {
        wait_for("the engine to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        ["maxmemory-policy", "maxmemory", "save", "cluster-enabled"].map(|name| setting(port, name))
    });
    let _ = engine.kill();
    let _ = engine.wait();
    let answers = answers.unwrap();
    for (answer, expected) in answers.iter().zip(["allkeys-lru", "2147483648", "", "yes"]) {
        assert!(answer.ends_with(&format!("\r\n{expected}\r\n")), "{answer:?} instead of {expected}");
    }
}

/// The engine's answer to CONFIG GET.
fn setting(port: u16, name: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "CONFIG GET {name}\r\n").unwrap();
    let mut answer = [0; 256];
    let len = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..len]).into_owned()
}
