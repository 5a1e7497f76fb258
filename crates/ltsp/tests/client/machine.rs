//! A client's root directory, its programs, and LTSP's way to run a script.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use eke_apply::boot::ltsp::SCRIPT_TEXT;
use eke_testkit::tree;

/// What `sh` is on clients: Debian's, Alpine's, and bash.
pub const SHELLS: [&[&str]; 3] = [&["dash"], &["busybox", "sh"], &["bash", "--posix"]];

/// Those of this machine.
pub fn shells() -> Vec<&'static [&'static str]> {
    let is_here =
        |shell: &&&[&str]| Command::new(shell[0]).args(&shell[1..]).args(["-c", ":"]).output().is_ok();
    SHELLS.iter().filter(is_here).copied().collect()
}

/// As in LTSP's main script: `set -e`, all scripts sourced, then one function after another, and the real init at the end.
const HARNESS: &str = r#"
set -e
modprobe() { "$R/programs/modprobe" "$@"; }
. "$1"
zz_after_main() { echo after; }
for script in eke zz_after; do
    "${script}_main" "$@"
done
set -e
echo BOOTED
"#;

/// The end of a boot.
pub struct Ran {
    /// Standard error: the console.
    pub said: String,
    /// The shell went on to the real init.
    pub booted: bool,
    /// It prefers its own programs to those in PATH.
    pub is_busybox: bool,
}

/// A client.
pub struct Client(tempfile::TempDir);

impl Client {
    /// With eke in its image and zram in its kernel.
    pub fn new() -> Self {
        let client = Self(tempfile::tempdir().unwrap());
        client.eke("");
        client.put("usr/bin/eke-agent", "");
        client.executable("usr/bin/eke-agent");
        client.put("usr/lib/systemd/system/eke.service", "[Service]\nExecStart=/usr/bin/eke-agent --up\n");
        client.put("dev/kmsg", "");
        client.program("modprobe", "exit 0");
        client.program("logger", "echo \"$*\" >>\"$R/logged\"");
        client.put("script", SCRIPT_TEXT);
        client.put("harness", HARNESS);
        client
    }

    /// Boots with these assignments, which stand after LTSP's own.
    pub fn boot(&self, shell: &[&str], assignments: &[&str]) -> Ran {
        let own =
            "SERVER=192.168.67.1\nIP_ADDRESS=192.168.67.20\nMAC_ADDRESS=52:54:00:aa:bb:01\nHOSTNAME=pc01\n";
        let conf = format!("{own}_EKE_ROOT={}\n{}\n", self.0.path().display(), assignments.join("\n"));
        self.put("run", &format!("{conf}. {}\n", self.path("harness").display()));
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .arg("-c")
            .arg(". \"$0\"")
            .args([self.path("run"), self.path("script")])
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.path("programs").display()))
            .env("R", self.0.path())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ran {
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
            is_busybox: shell[0] == "busybox",
            booted: output.status.success() && printed == "after\nBOOTED\n",
        }
    }

    /// Its eke, which runs these lines.
    pub fn eke(&self, lines: &str) {
        self.put("usr/bin/eke", &format!("#!/bin/sh\n{lines}\n"));
        self.executable("usr/bin/eke");
    }

    /// A program of the system.
    pub fn program(&self, name: &str, lines: &str) {
        let path = format!("programs/{name}");
        self.put(&path, &format!("#!/bin/sh\n{lines}\n"));
        self.executable(&path);
    }

    /// As if the image was made of a machine where eke is enabled.
    pub fn enable_in_image(&self) {
        let wants = self.path("etc/systemd/system/multi-user.target.wants");
        fs::create_dir_all(&wants).unwrap();
        std::os::unix::fs::symlink("/usr/lib/systemd/system/eke.service", wants.join("eke.service")).unwrap();
    }

    pub fn put(&self, path: &str, text: &str) {
        tree::put(self.0.path(), path, text);
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// The target of a link.
    pub fn link(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.path(path)).ok()
    }

    /// All files but those of the harness.
    pub fn tree(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        tree::read(self.0.path(), &["run"])
    }

    /// What `systemd-analyze verify` says about these units, with programs that exist.
    pub fn verify(&self, units: &[&str]) -> String {
        let bin = format!("ExecStart={}/usr/bin/", self.0.path().display());
        let files: Vec<PathBuf> = units
            .iter()
            .map(|name| {
                let text = self.read(&format!("etc/systemd/system/{name}")).unwrap();
                self.put(name, &text.replace("ExecStart=/usr/bin/", &bin));
                self.path(name)
            })
            .collect();
        let output =
            Command::new("systemd-analyze").args(["verify", "--man=no"]).args(files).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn executable(&self, path: &str) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
}
