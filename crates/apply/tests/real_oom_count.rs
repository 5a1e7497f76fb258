//! What systemd makes of a service whose end was counted: systemd in namespaces of its own, the real kernel.

use std::path::Path;
use std::process::Command;

use eke_apply::oom_count;
use eke_linux::Root;
use eke_testkit::program::output;
use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use eke_testkit::wait::wait_for;

const SYSTEMD: &str = "/usr/lib/systemd/systemd";
/// The directory of the test, where the helper reports.
const DIR: &str = "EKE_TEST_OOM_COUNT";

/// Runs the script below in a control group and namespaces of its own, which are gone with it.
const OUTER: &str = r#"
mount -t cgroup2 none /mnt
mkdir /mnt/eke-test-$$
G=/mnt/eke-test-$$ sh -c 'echo $$ >$G/cgroup.procs; exec unshare --mount --pid --fork --kill-child --mount-proc --net --ipc --uts --cgroup sh -ec "$INNER"'
find /mnt/eke-test-$$ -depth -type d -exec rmdir {} +
"#;

/// systemd with two services that are restarted on a failure, and the helper as a third.
const INNER: &str = r#"
for d in /run /etc/systemd/system; do mount -t tmpfs none $d; done
umount -l /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -o bind,ro /proc/sys /proc/sys
cd /etc/systemd/system
printf '[Unit]\nDefaultDependencies=no\nWants=counted.service plain.service helper.service\n' >test.target
service() { printf '[Unit]\nDefaultDependencies=no\n[Service]\n%b\n' "$2" >$1.service; }
service counted 'ExecStart=/bin/sleep 1000\nRestart=on-failure\nRestartSec=100ms'
service plain 'ExecStart=/bin/sleep 1000\nRestart=on-failure\nRestartSec=100ms'
service helper "Type=oneshot\nEnvironment=EKE_TEST_OOM_COUNT=$D\nExecStart=$T --exact helper_ends_both\nExecStopPost=/bin/systemctl exit --force --force"
container=eke exec $S --unit=test.target --show-status=no --log-target=null
"#;

fn systemctl(args: &[&str]) -> String {
    let out = output(Command::new("systemctl").args(args));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

fn shown(property: &str, service: &str) -> String {
    systemctl(&["show", "--value", "-p", property, service])
}

/// Not a test of its own: the one below runs it as a service of that systemd.
#[test]
fn helper_ends_both() {
    let Ok(dir) = std::env::var(DIR) else { return };
    wait_for("both services", || ["counted", "plain"].iter().all(|s| shown("SubState", s) == "running"));
    let root = Root::host();
    let group = shown("ControlGroup", "counted");
    let before = oom_count::count(&root, group.trim_start_matches('/'), 1).unwrap();
    oom_count::take_back(&root, &before).unwrap();
    oom_count::count(&root, group.trim_start_matches('/'), 1).unwrap();
    systemctl(&["kill", "--kill-who=main", "counted", "plain"]);
    wait_for("the end of the other", || shown("ActiveState", "plain") == "inactive");
    wait_for("the restart", || shown("NRestarts", "counted") == "1");
    let told = format!("{} {}", shown("Result", "plain"), shown("NRestarts", "plain"));
    eke_testkit::tree::put(Path::new(&dir), "told", &told);
}

#[test]
fn a_service_whose_end_is_counted_has_failed_and_is_restarted() {
    let name = "a_service_whose_end_is_counted_has_failed_and_is_restarted";
    if let Some(why) = lacking(&[SYSTEMD]).or_else(|| no_program(&["unshare", "systemctl"])) {
        return skip(name, &why);
    }
    let _lock = lock_machine();
    let dir = tempfile::tempdir().unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-ec", OUTER]);
    unshare
        .env("INNER", INNER)
        .env("D", dir.path())
        .env("S", SYSTEMD)
        .env("T", std::env::current_exe().unwrap());
    let out = output(&mut unshare);
    let told = std::fs::read_to_string(dir.path().join("told")).unwrap_or_default();
    assert_eq!(told, "success 0", "{}", String::from_utf8_lossy(&out.stderr));
}
