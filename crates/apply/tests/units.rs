//! The files in `units/`: systemd accepts them, and they keep their hardening.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use eke_apply::boot::cache_mount::{CacheAtBoot, unit};
use eke_testkit::real::skip;

/// The largest exposure of each service by `systemd-analyze security`, in tenths: 0 is none, 100 is all. It counts a tenth
/// for `ProtectKernelModules=no`, although the service can load no module.
const EXPOSURE: [(&str, &str); 2] = [("eke.service", "36"), ("eke-metrics.service", "10")];

/// The units with programs that exist, as an installation has them.
fn installed(dir: &Path) -> Vec<PathBuf> {
    for program in ["eke", "eke-agent"] {
        let path = dir.join(program);
        eke_testkit::tree::put(dir, program, "#!/bin/sh\n");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units");
    let names = ["eke.service", "eke-metrics.service", "eke-metrics.timer"];
    let install = |name: &str| {
        let text = std::fs::read_to_string(units.join(name)).unwrap();
        eke_testkit::tree::put(dir, name, &text.replace("@BIN@", dir.to_str().unwrap()));
        dir.join(name)
    };
    let cache = CacheAtBoot {
        dir: "/srv/my 100% \"files\" $HOME".into(),
        place: "/srv/www".into(),
        options: vec!["memory=50%".into()],
        needs: Vec::new(),
        is_remote: true,
    };
    let (name, text) = unit::of(dir.to_str().unwrap(), &cache).unwrap();
    eke_testkit::tree::put(dir, &name, &text);
    names.into_iter().map(install).chain([dir.join(&name)]).collect()
}

fn analyze(arguments: &[&str], files: &[PathBuf]) -> (bool, String) {
    let output = Command::new("systemd-analyze").args(arguments).args(files).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("systemd_accepts_the_units", "systemd-analyze is missing");
    }
    let dir = tempfile::tempdir().unwrap();
    let units = installed(dir.path());
    let (fine, said) = analyze(&["verify", "--man=no"], &units);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("eke")).collect();
    assert!(fine && ours.is_empty(), "{said}");
}

#[test]
fn the_services_keep_their_hardening() {
    if !analyze_has_offline() {
        return skip("the_services_keep_their_hardening", "systemd-analyze is missing or older than 250");
    }
    let dir = tempfile::tempdir().unwrap();
    installed(dir.path());
    for (name, most) in EXPOSURE {
        let threshold = format!("--threshold={most}");
        let arguments = ["security", "--offline=yes", "--no-pager", &threshold];
        let (fine, said) = analyze(&arguments, &[dir.path().join(name)]);
        assert!(fine, "{name}: {}", said.lines().last().unwrap_or_default());
    }
}

/// The words of each call of `eke` when `shell` is run, with `script` as its first argument and the environment `variable`.
fn calls_of_eke(script: &str, shell: &str, variable: (&str, &str)) -> String {
    let dir = tempfile::tempdir().unwrap();
    installed(dir.path());
    let at = |name: &str| dir.path().join(name).display().to_string();
    eke_testkit::tree::put(dir.path(), "eke", &format!("#!/bin/sh\necho \"$*\" >>{}\n", at("calls")));
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units").join(script);
    let text = std::fs::read_to_string(unit).unwrap().replace("@BIN@", &at(""));
    eke_testkit::tree::put(dir.path(), script, &text.replace("/run/eke-agent.pid", &at("pid")));
    let mut sh = Command::new("sh");
    let ran = sh.args(["-c", shell, "sh", &at(script)]).env(variable.0, variable.1).status().unwrap();
    assert!(ran.success(), "{script}");
    std::fs::read_to_string(at("calls")).unwrap_or_default()
}

#[test]
fn the_scripts_let_go_of_a_file_behind_zram_at_a_shutdown_alone() {
    let sysv = |runlevel| calls_of_eke("eke.sysv", "sh \"$1\" stop", ("RUNLEVEL", runlevel));
    assert_eq!([sysv("0"), sysv("6"), sysv("2")], ["lab let-go\n", "lab let-go\n", ""]);
    let openrc = |runlevel| calls_of_eke("eke.openrc", ". \"$1\"; stop_post", ("RC_RUNLEVEL", runlevel));
    assert_eq!([openrc("shutdown"), openrc("default")], ["lab let-go\n", ""]);
}

/// systemd makes the preserved directory of a dynamic user private (exec_directory_is_private, src/core/execute.c), so that
/// node_exporter cannot read the file in it.
#[test]
fn node_exporter_may_enter_the_directory_of_the_metrics() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units");
    let text = std::fs::read_to_string(units.join("eke-metrics.service")).unwrap();
    let has = |line: &str| text.lines().any(|l| l == line);
    assert!(has("RuntimeDirectoryPreserve=yes") && has("RuntimeDirectoryMode=0755"));
    assert!(!has("DynamicUser=yes") && has("User=65534"));
}

/// The calls of the agent and its children that are not in `@system-service`, and what they are for. `strace -f` shows most of them; without BPF,
/// cachestat or 64 bits a program makes others than on this machine.
const UNUSUAL_CALLS: [(&str, &str); 10] = [
    ("@swap", "swap"),
    ("process_vm_readv", "the measurement's sample"),
    ("bpf", "eke-prefetch and eke-io trace"),
    ("fanotify_init", "eke-prefetch without BPF"),
    ("fanotify_mark", "eke-prefetch without BPF"),
    ("cachestat", "eke-prefetch's residency probe"),
    ("mincore", "the same before Linux 6.5"),
    ("pidfd_open", "the guard; in no group of systemd 247"),
    ("pidfd_send_signal", "the guard; in no group of systemd 247"),
    ("process_mrelease", "the guard"),
];

#[test]
fn the_filter_allows_what_the_agent_and_its_children_call() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units/eke.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let filter = unit.lines().find_map(|line| line.strip_prefix("SystemCallFilter=")).unwrap();
    let allowed: Vec<&str> = filter.split_whitespace().collect();
    let refused: Vec<_> = UNUSUAL_CALLS.iter().filter(|(call, _)| !allowed.contains(call)).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

fn analyze_has_offline() -> bool {
    let help = Command::new("systemd-analyze").arg("--help").output();
    help.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("--offline"))
}

/// Cockpit's page loads nothing from elsewhere, runs no inline script, and makes no markup of what eke says.
#[test]
fn cockpits_page_keeps_to_itself() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units/cockpit/eke");
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text("manifest.json")).unwrap();
    assert_eq!(manifest["content-security-policy"], "default-src 'self'");
    assert!(manifest["tools"]["index"]["label"].is_string());
    let page = text("index.html");
    let sources = |name: &str| -> Vec<String> {
        let attribute = format!(" {name}=\"");
        let parts = page.split(&attribute).skip(1);
        parts.map(|part| part.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(sources("src"), ["../base1/cockpit.js", "eke.js"]);
    assert_eq!(sources("href"), ["eke.css"]);
    assert!(!page.contains("<style") && !page.contains(" on") && !page.contains("style="), "inline code");
    for part in page.split("<script").skip(1) {
        assert!(part.contains("></script>"), "an inline script: {part}");
    }
    let script = text("eke.js");
    for unsafe_word in
        ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "http:", "https:"]
    {
        assert!(!script.contains(unsafe_word), "{unsafe_word}");
    }
    for id in ["state", "memory", "swap", "remedies", "events"] {
        assert!(page.contains(&format!("id=\"{id}\"")) && script.contains(&format!("\"{id}\"")), "{id}");
    }
}
