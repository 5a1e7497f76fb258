//! The files of `docs/examples/farm`: its lines can be typed; systemd, an engine and eke accept what they install.

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

/// The lines of the README from one on, as a person types them on a Debian with these directories alone.
fn typed(host: &Path, section: &str) {
    for dir in ["etc/systemd/system", "etc/nginx/conf.d", "etc/nginx/sites-enabled", "bin"] {
        std::fs::create_dir_all(host.join(dir)).unwrap();
    }
    for program in ["apt", "systemctl", "mount", "valkey-cli", "redis-cli", "sudo"] {
        let text = if program == "sudo" { "#!/bin/sh\nexec \"$@\"\n" } else { "#!/bin/sh\n" };
        tree::put(&host.join("bin"), program, text);
        let path = host.join("bin").join(program);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let here = host.join("farm");
    std::fs::create_dir_all(&here).unwrap();
    for entry in std::fs::read_dir(file("")).unwrap().flatten() {
        std::fs::copy(entry.path(), here.join(entry.file_name())).unwrap();
    }
    let readme = text("README.md");
    let (_, section) = readme.split_once(section).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    let mut script = String::from("set -eu\n");
    lines.for_each(|line| script += &format!("{line}\n"));
    let script = ["/etc", "/srv"]
        .iter()
        .fold(script, |text, dir| text.replace(&format!(" {dir}"), &format!(" $HOST{dir}")));
    let script = script.replace(">/etc/", ">$HOST/etc/");
    let path = format!("{}/bin:{}", host.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(here).env("PATH", path).env("HOST", host);
    let output = eke_testkit::program::output(&mut shell);
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_lines_for_a_web_server_can_be_typed() {
    let host = tempfile::tempdir().unwrap();
    typed(host.path(), "\nFirst make");
    typed(host.path(), "\n## A web server");
    for (at, of) in [
        ("etc/fstab", "fstab"),
        ("etc/nginx/conf.d/farm.conf", "nginx-site.conf"),
        ("etc/systemd/system/nginx.service.d/farm.conf", "nginx-after-cache.conf"),
    ] {
        assert_eq!(std::fs::read_to_string(host.path().join(at)).unwrap(), text(of), "{at}");
    }
    for secret in ["etc/farm.key", "etc/farm.password"] {
        let meta = std::fs::metadata(host.path().join(secret)).unwrap();
        assert!(meta.permissions().mode() & 0o777 == 0o600 && meta.len() >= 32, "{secret}: {meta:?}");
    }
    assert!(text("nginx-site.conf").contains("root /srv/www;"));
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
    assert!(unit.contains("ExecStart=/usr/bin/valkey-server /etc/eke-farm/engine.conf "));
    let unit = unit.replace("/usr/bin/valkey-server", engine.to_str().unwrap());
    let nginx = format!("{}[Service]\nExecStart={}\n", text("nginx-after-cache.conf"), engine.display());
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
    for option in [
        "--shared-name=www",
        "--shared-password=/etc/farm.password",
        "--encrypt=/etc/farm.key",
        "--allow-other",
    ] {
        assert!(arguments.iter().any(|argument| argument == option), "{option}: {arguments:?}");
    }
}

#[test]
fn an_engine_accepts_what_the_lines_install_and_asks_for_the_password() {
    let name = "an_engine_accepts_what_the_lines_install_and_asks_for_the_password";
    let Some(program) = program() else { return skip(name, "no redis-server or valkey-server") };
    let ([port], host) = (ports(), tempfile::tempdir().unwrap());
    typed(host.path(), "\nFirst make");
    let (installed, at) = (host.path().join("etc/eke-farm"), host.path().join("farm"));
    assert_eq!(std::fs::read_to_string(installed.join("address")).unwrap(), "ENGINE_ADDRESS=10.0.0.11\n");
    assert!(host.path().join("etc/systemd/system/eke-farm-engine@.service").exists());
    let mut command = Command::new(program);
    command.arg(installed.join("engine.conf")).arg("--include").arg(installed.join("password.conf"));
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"]).arg(&at);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut engine = command.spawn().unwrap();
    let password = std::fs::read_to_string(at.join("farm.password")).unwrap().trim().to_owned();
    let answers = std::panic::catch_unwind(|| {
        wait_for("the engine to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let refused = answer(port, "GET eke");
        let names = ["maxmemory-policy", "maxmemory", "save", "cluster-enabled", "requirepass", "masterauth"];
        (refused, names.map(|name| answer(port, &format!("AUTH {password}\r\nCONFIG GET {name}"))))
    });
    let _ = engine.kill();
    let _ = engine.wait();
    let (refused, answers) = answers.unwrap();
    assert!(refused.starts_with("-NOAUTH"), "{refused}");
    for (answer, expected) in
        answers.iter().zip(["allkeys-lru", "2147483648", "", "yes", &password, &password])
    {
        assert!(answer.ends_with(&format!("\r\n{expected}\r\n")), "{answer:?} instead of {expected}");
    }
}

/// The engine's answers to lines.
fn answer(port: u16, lines: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "{lines}\r\nQUIT\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.strip_suffix("+OK\r\n").unwrap().to_owned()
}
