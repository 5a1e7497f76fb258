//! `eke link --ltsp` without a name: all clients of a server, each a network namespace with a real ssh server on one bridge.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{Ran, build_others};
use eke_testkit::real::{lock_machine, no_program, skip};
use eke_testkit::sshd::lacks;
use eke_testkit::tree::put;
use eke_testkit::wait::wait_for;
use tempfile::TempDir;

const SERVER: &str = "eketlab0";
const LTSP: &str = "etc/ltsp/ltsp.conf";
/// As if this CPU had no AES instructions and no carry-less multiplication (OPENSSL_ia32cap(3)).
const WITHOUT_AES: &str = "~0x200000200000000";
const IDLE: &str = "0.02 0.03 0.00 1/50 300\n";
const BUSY: &str = "64.00 12.00 4.00 9/50 300\n";

struct Lab {
    dir: TempDir,
    clients: Vec<Child>,
}

fn ip(arguments: &str) {
    let ran = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(ran.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn mac(client: usize) -> String {
    format!("52:54:00:aa:bb:0{client}")
}

impl Lab {
    /// The server with a bridge, and its files: leases, ltsp.conf, the keys.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for key in ["host", "user"] {
            let mut made = Command::new("ssh-keygen");
            made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.path().join(key));
            assert!(made.status().unwrap().success(), "no key");
        }
        let at = dir.path().display();
        put(
            dir.path(),
            "config",
            &format!(
                "Host *\n  User root\n  IdentityFile {at}/user\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile {at}/known\n"
            ),
        );
        put(dir.path(), "root/etc/ltsp/ltsp.conf", "[clients]\nEKE=auto\n");
        put(dir.path(), "root/proc/self/mountinfo", "");
        fs::create_dir_all("/run/sshd").unwrap();
        ip(&format!("netns add {SERVER}"));
        let lab = Self { dir, clients: Vec::new() };
        for arguments in
            ["link set lo up", "link add br0 type bridge", "addr add 10.78.0.1/24 dev br0", "link set br0 up"]
        {
            ip(&format!("-n {SERVER} {arguments}"));
        }
        lab
    }

    /// A client with this load, whose ssh server has these variables.
    fn client(&mut self, number: usize, load: &str, variables: &[(&str, &str)]) {
        let name = format!("eketlab{number}");
        ip(&format!("netns add {name}"));
        ip(&format!(
            "link add eth0 netns {name} address {} type veth peer name port{number} netns {SERVER}",
            mac(number)
        ));
        for arguments in [
            "link set lo up".to_owned(),
            format!("addr add 10.78.0.2{number}/24 dev eth0"),
            "link set eth0 up".to_owned(),
        ] {
            ip(&format!("-n {name} {arguments}"));
        }
        ip(&format!("-n {SERVER} link set port{number} master br0 up"));
        let (dir, at) = (self.dir.path(), self.dir.path().display().to_string());
        put(dir, &format!("load{number}"), load);
        put(dir, "calm", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        put(
            dir,
            &format!("sshd{number}"),
            &format!(
                "HostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
            ),
        );
        // This machine's own load is not the client's.
        let script = format!(
            "mount --make-rprivate /; mount --bind {at}/load{number} /proc/loadavg; \
             for file in /proc/pressure/*; do [ ! -e $file ] || mount --bind {at}/calm $file; done; exec /usr/sbin/sshd -D -e -f {at}/sshd{number}"
        );
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &name, "unshare", "--mount", "sh", "-c", &script])
            .stderr(Stdio::null());
        self.clients.push(command.envs(variables.iter().copied()).spawn().unwrap());
        let lease = format!("0 {} 10.78.0.2{number} pc0{number} *\n", mac(number));
        let leases = fs::read_to_string(dir.join("root/var/lib/misc/dnsmasq.leases")).unwrap_or_default();
        put(dir, "root/var/lib/misc/dnsmasq.leases", &(leases + &lease));
        wait_for("sshd to listen", || {
            let probe = format!("exec 3<>/dev/tcp/10.78.0.2{number}/22");
            let status = Command::new("ip")
                .args(["netns", "exec", SERVER, "bash", "-c", &probe])
                .stderr(Stdio::null())
                .status();
            status.unwrap().success()
        });
    }

    fn eke(&self, arguments: &[&str]) -> Ran {
        build_others();
        let (root, config) = (self.dir.path().join("root"), self.dir.path().join("config"));
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", SERVER, env!("CARGO_BIN_EXE_eke"), "--root"])
            .arg(root)
            .arg("link")
            .args(arguments);
        eke_testkit::program::ran(command.arg("-F").arg(config))
    }

    fn ltsp_conf(&self) -> String {
        read(&self.dir.path().join("root").join(LTSP))
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in &mut self.clients {
            let _ = child.kill();
            let _ = child.wait();
        }
        for number in 0..4 {
            let _ = Command::new("ip")
                .args(["netns", "del", &format!("eketlab{number}")])
                .stderr(Stdio::null())
                .status();
        }
    }
}

#[test]
fn all_idle_clients_are_measured_at_once_and_a_busy_one_is_left_alone() {
    if let Some(why) = lacks().or_else(|| no_program(&["ip", "unshare", "bash"])) {
        return skip("all_idle_clients_are_measured_at_once", &why);
    }
    let _machine = lock_machine();
    let mut lab = Lab::new();
    lab.client(1, IDLE, &[]);
    lab.client(2, IDLE, &[("OPENSSL_ia32cap", WITHOUT_AES)]);
    lab.client(3, BUSY, &[]);
    let ran = lab.eke(&["--ltsp", "--json"]);
    assert_eq!(ran.status, Some(5), "{ran:?}");
    let document = ran.json();
    let hosts = document["hosts"].as_array().unwrap();
    let names: Vec<&str> = hosts.iter().map(|host| host["host"].as_str().unwrap()).collect();
    assert_eq!(names, ["10.78.0.21", "10.78.0.22", "10.78.0.23"], "{ran:?}");
    let busy = hosts[2]["error"].as_str().unwrap();
    assert!(busy.contains("10.78.0.23 is busy and was left alone: its load is 64.0"), "{busy}");
    for host in &hosts[..2] {
        let link = &host["link"];
        assert!(link["bytes"].as_u64().unwrap() <= 60_000_000, "{}", link["bytes"]);
        eprintln!("{}: {}", host["host"], link["decision"]);
    }
    let text = lab.ltsp_conf();
    for client in [1, 2] {
        assert!(text.contains(&format!("[{}]\n# eke link: ", mac(client))), "{text}");
    }
    assert!(!text.contains(&mac(3)), "{text}");
    let named = lab.eke(&["10.78.0.23", "--sessions", "1", "--json"]);
    assert_eq!(
        named.json()["hosts"][0]["error"],
        serde_json::Value::Null,
        "who is named is measured: {named:?}"
    );
}

#[test]
fn a_lab_without_clients_is_an_error_with_advice() {
    if let Some(why) = lacks().or_else(|| no_program(&["ip"])) {
        return skip("a_lab_without_clients", &why);
    }
    let _machine = lock_machine();
    let none = Lab::new().eke(&["--ltsp"]);
    assert!(
        none.status == Some(1) && none.stderr.contains("no client of this LTSP server is known"),
        "{none:?}"
    );
}
