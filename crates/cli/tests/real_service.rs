//! The agent of `eke up` as a service of systemd: a fake systemd, the real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{Ran, build_agent, ran};
use eke_testkit::real::{MachineLock, lacking, lock_machine, no_program, skip};

const EKE: &str = env!("CARGO_BIN_EXE_eke");

/// Starts what it is told to, as the options in `$P/is` say: `alone` has no running unit, `old` none of the newer properties, `refusing` starts nothing, `idle`
/// does not start the unit but answers as if (a condition of it fails, a chroot), and `killing` ends `eke up` before.
const SYSTEMD: &str = r#"
is() { grep -qx "$1" $P/is; }
systemctl() {
    echo "systemctl $*"
    is refusing && return 1
    case "$*" in
    show*) printf 'LoadState=loaded\nExecStart={ path=%s ; argv[]=%s --up ; ignore_errors=no }\n' $A $A >&3 ;;
    start*) is killing && kill -9 $PPID; is idle || started $A --up ;;
    is-active*) ! is idle ;;
    stop*) is alone || kill $(cat /run/eke/agent.lock) ;;
    esac
}
systemd_run() {
    echo "systemd-run $*"
    is refusing && return 1
    case "$*" in *--property=ManagedOOM* | *--property=OOMPolicy*) is old && return 1 ;; esac
    while [ "$1" != -- ]; do shift; done
    shift
    started "$@"
}
started() { setsid "$@" </dev/null >/dev/null 2>&1 3>&- & }
"#;

/// Where the machine's programs cannot be mixed up with others: an own /run and /var/lib, and eke's unit.
fn sh(script: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    let agent = Path::new(EKE).with_file_name("eke-agent");
    let names = format!("P={at}; A={}; EKE={EKE}", agent.display());
    eke_testkit::tree::put(dir.path(), "systemd", &format!("{names}\n{SYSTEMD}"));
    for (name, function) in [("systemctl", "systemctl"), ("systemd-run", "systemd_run")] {
        let text = format!("#!/bin/sh\n. {at}/systemd\nexec 3>&1 >>$P/log\n{function} \"$@\"\n");
        eke_testkit::tree::put(dir.path(), &format!("bin/{name}"), &text);
    }
    let own = "for d in /run /var/lib /etc/systemd/system; do mount -t tmpfs x $d; done; mkdir -p /run/systemd/system";
    let unit = "echo '[Service]' >/etc/systemd/system/eke.service; chmod +x $P/bin/*; PATH=$P/bin:$PATH";
    let functions = r#"
        up() { echo "$1" >$P/is; : >$P/log; shift; $EKE up --backend zram --size 64M "$@" >$P/said 2>&1 || echo "up: $?"; }
        down() { $EKE down >$P/said 2>&1 || { echo "down: $?"; cat $P/said; }
            ! ls /run/eke/applied.json /run/eke/journal.jsonl 2>/dev/null; $EKE status >/dev/null 2>&1 && echo "an agent runs"; true; }
        answers() { n=0; until $EKE status >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 300 ] || return 1; sleep 0.1; done; }"#;
    let script = format!("set -e; {names}; {own}; {unit}; {functions}\n{script}");
    ran(Command::new("unshare").args(["-m", "--propagation", "private", "sh", "-c", &script]))
}

fn prepared(test: &str) -> Option<MachineLock> {
    let why = lacking(&["/sys/class/zram-control", "/etc/systemd/system"])
        .or_else(|| no_program(&["unshare", "setsid"]));
    if let Some(why) = why {
        skip(test, &why);
        return None;
    }
    build_agent();
    Some(lock_machine())
}

#[test]
fn the_agent_starts_as_the_unit_of_this_installation() {
    let Some(_lock) = prepared("the_agent_starts_as_the_unit_of_this_installation") else { return };
    let ran = sh(
        "up ours; cat $P/log; tr '\\0' ' ' </proc/$(cat /run/eke/agent.lock)/cmdline; echo; down; tail -n 1 $P/log",
    );
    let said: Vec<&str> = ran.stdout.lines().collect();
    let asked = [
        "systemctl show --property=LoadState,ExecStart eke.service",
        "systemctl reset-failed eke.service",
        "systemctl start eke.service",
        "systemctl is-active --quiet eke.service",
    ];
    assert_eq!(said[..4], asked, "{}", ran.shown());
    assert!(said[4].ends_with("/eke-agent --up "), "{}", ran.shown());
    assert_eq!(said[5..], ["systemctl stop eke.service"], "{}", ran.shown());
}

/// The unit would read other settings; and an older systemd refuses properties that it does not know.
#[test]
fn another_configuration_makes_a_transient_unit() {
    let Some(_lock) = prepared("another_configuration_makes_a_transient_unit") else { return };
    let ran = sh("touch $P/eke.toml; up alone --config $P/eke.toml; cat $P/log; down; \
         rm /etc/systemd/system/eke.service; up old; grep -c systemd-run $P/log; down");
    let said: Vec<&str> = ran.stdout.lines().collect();
    let [run, tries] = said[..] else { panic!("{}", ran.shown()) };
    assert!(run.starts_with("systemd-run --quiet --collect --no-ask-password --unit=eke-agent.service"));
    assert!(run.contains(" --property=ManagedOOMPreference=omit ") && run.ends_with("/eke.toml"), "{run}");
    assert_eq!(tries, "3", "{}", ran.shown());
}

#[test]
fn where_systemd_refuses_the_agent_is_a_process_of_its_own() {
    let Some(_lock) = prepared("where_systemd_refuses_the_agent_is_a_process_of_its_own") else { return };
    let ran = sh("up refusing; tail -n 1 $P/log | cut -c1-11; $EKE status >/dev/null; down");
    assert_eq!((ran.stdout.as_str(), ran.status), ("systemd-run\n", Some(0)), "{}", ran.shown());
}

/// systemctl answers that it did.
#[test]
fn a_unit_that_did_not_start_leaves_the_agent_to_a_transient_one() {
    let Some(_lock) = prepared("a_unit_that_did_not_start_leaves_the_agent_to_a_transient_one") else {
        return;
    };
    let ran = sh("up idle; tail -n 2 $P/log | cut -c1-21; answers; echo alone >$P/is; down");
    let expected = "systemctl is-active -\nsystemd-run --quiet -\n";
    assert_eq!((ran.stdout.as_str(), ran.status), (expected, Some(0)), "{}", ran.shown());
}

#[test]
fn an_up_that_is_killed_while_it_starts_the_unit_can_be_undone() {
    let Some(_lock) = prepared("an_up_that_is_killed_while_it_starts_the_unit_can_be_undone") else { return };
    let ran = sh("up killing; tail -n 1 $P/log; answers; down; tail -n 1 $P/log");
    let expected = "up: 137\nsystemctl start eke.service\nsystemctl stop eke.service\n";
    assert_eq!(ran.stdout, expected, "{}", ran.shown());
}
