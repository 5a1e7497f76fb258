//! A report of a bug has nothing private in it: a machine full of private names is planted, and none appears.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::eke;
use eke_apply::journal::record::{Intent, Phase, Record, Undo};
use eke_apply::state;
use eke_model::applied::Applied;
use eke_model::step::{Plan, Reason, Step};
use eke_testkit::fake_kernel::FakeKernel;

/// What no report may contain, in any case.
const SECRETS: [&str; 44] = [
    "payroll",
    "penelope",
    "ithaca",
    "example.org",
    "odysseus",
    "telemachus",
    "laertes",
    "diary",
    "suitors",
    "loom",
    "7f3c9a52",
    "1c2d3e4f5a6b",
    "52:54:00",
    "192.168",
    "2001:db8",
    "S3Z9NB0K",
    "5000c500",
    "shroud",
    "argos",
    "weaver",
    "bow-and-axes",
    "secretslice",
    "secret-project",
    "trojan",
    "horse.png",
    "keepsake",
    "user-1000",
    "nostos",
    "calypso",
    "ogygia",
    "hall-of",
    "0xdeadbeefcafe",
    "polyphemus",
    "scylla",
    "antinous",
    "eumaeus",
    "circe",
    "mentor",
    "nausicaa",
    "swineherds",
    "leucothea",
    "5254.00",
    "phemius",
    "medon",
];

fn machine() -> std::sync::Arc<FakeKernel> {
    let machine = FakeKernel::new();
    for (path, text) in [
        ("proc/sys/kernel/hostname", "penelope.ithaca.example.org\n"),
        ("etc/hostname", "penelope\n"),
        ("proc/sys/kernel/osrelease", "6.12.9-penelope\n"),
        ("proc/version", "Linux version 6.12.9 (odysseus@ithaca)\n"),
        (
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nodysseus:x:1000:1000:Odysseus Laertes,,:/home/odysseus:/bin/sh\n",
        ),
        ("home/telemachus/x", ""),
        ("etc/group", "root:x:0:\nsuitors:x:1001:antinous\nswineherds:x:1002:\n"),
        ("etc/hosts", "127.0.0.1 localhost\n192.168.7.20 eumaeus\n"),
        ("etc/os-release", "ID=debian\nVERSION_ID=\"13\"\nHOME_URL=https://ithaca.example.org\n"),
        (
            "proc/cmdline",
            "root=UUID=7f3c9a52-0d1e-4b6f-8a77-1c2d3e4f5a6b ip=192.168.7.7 eth=52:54:00:12:34:56 zswap.enabled=1 resume=LABEL=diary\n",
        ),
        (
            "proc/self/mountinfo",
            "22 1 0:21 / / rw - ext4 /dev/sda1 rw\n\
             23 22 0:22 / /srv/diary rw - fuse.eke-cache /srv/suitors rw\n\
             24 22 0:23 / /media/odysseus/loom\\040of\\040shroud rw - fuse.trojan-horse x rw\n\
             25 22 0:24 / /home rw - nfs4 192.168.7.8:/hall-of/home rw\n\
             26 22 0:25 / /srv rw - cifs //circe/hall rw\n\
             27 22 0:26 / /mnt rw - fuseblk.nausicaas-stick /dev/sdb1 rw\n",
        ),
        (
            "run/eke/agent.log",
            " INFO Adopted the applied plan; changes in force: 4.\n \
             WARN cannot open /home/odysseus/The Trojan/horse.png: No such file or directory (os error 2)\n \
             INFO Swap on /srv/diary/argos was added by odysseus@ithaca from 192.168.7.9:22 and 2001:db8::7.\n \
             INFO disk S3Z9NB0K1234 wwn-0x5000c500a1b2c3d4 (UUID=7f3c9a52-0d1e-4b6f-8a77-1c2d3e4f5a6b, 0xdeadbeefcafe01)\n \
             INFO read ~/shroud/weaver and \"bow-and-axes/x\" of /usr/bin/keepsake-viewer\n \
             WARN mentor:/hall and odysseus@mentor:/hall do not answer\n \
             INFO Eumaeus,Circe;10.7.7.1\tof [2001:db8::9]:22 (5254.0012.3456) and /srv/diary-of-leucothea.\n \
             INFO \"medon (phemius.service)\": Ended: process 7 of user 1000 (300 MiB), because memory is short.\n \
             INFO of swineherds in app-nausicaa-7.scope\n\u{1b}]0;Calypso\u{7}/Ogygia\n",
        ),
        (
            "etc/eke/eke.toml",
            "# of odysseus\n[swap]\npool_percent = 70\nwriteback_device = \"/dev/disk/by-id/nostos\"\n[guard]\nprotect = [\"payroll-x\"]\n",
        ),
        ("var/lib/eke/prefetch.db", "SQLite format 3\0/usr/bin/keepsake-viewer"),
        (
            "var/lib/eke/files.jsonl",
            "{\"owner\":\"link\",\"path\":\"etc/ssh/ssh_config.d/50-eke-calypso.conf\",\"reason\":\"for ogygia\",\"old\":{\"is\":\"absent\"},\"new\":{\"is\":\"file\",\"text\":\"Host calypso\",\"mode\":420,\"owner\":null}}\n",
        ),
        ("proc/4711/comm", "keepsake\n"),
        ("proc/4711/cmdline", "keepsake\0/home/odysseus/diary.txt\0"),
        ("sys/power/resume", "8:3\n"),
    ] {
        machine.put(path, text);
    }
    at_its_limit(&machine, "polyphemus.slice");
    machine.add_area("/srv/diary/swap of laertes", 65_536, 4, -2);
    journaled(&machine);
    let applied = Applied { unix_s: 1, plans: vec![plan()], ..Applied::default() };
    state::save(&machine.root(), state::APPLIED, &applied).unwrap();
    machine
}

fn plan() -> Plan {
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    plan.push(
        Step::set("vm.swappiness", 180),
        Reason::new("because /srv/diary is slow, says odysseus").with("ratio", 3.5),
    );
    let of_a_group = Step::Set {
        knob: "memory.swappiness".into(),
        target: "lxc.payload.scylla".into(),
        value: "180".into(),
    };
    plan.push(of_a_group, Reason::new("a group that has ended"));
    plan.push(Step::SwapOff { path: "/home/odysseus/secret-project.swap".into() }, Reason::new("it is slow"));
    plan
}

/// `eke status` names this group.
fn at_its_limit(machine: &FakeKernel, group: &str) {
    let dir = format!("sys/fs/cgroup/{group}");
    machine.put(&format!("{dir}/memory.max"), "1000000\n");
    machine.put(&format!("{dir}/memory.current"), "999000\n");
    machine.put(&format!("{dir}/memory.pressure"), "some avg10=50.00 avg60=50.00 avg300=50.00 total=1\n");
    machine.put("proc/pressure/memory", "some avg10=50.00 avg60=50.00 avg300=50.00 total=1\nfull avg10=20.00 avg60=20.00 avg300=20.00 total=1\n");
}

fn journaled(machine: &FakeKernel) {
    let write = |knob: &str, target: &str| Undo::Write {
        knob: knob.into(),
        target: target.into(),
        old: "60".into(),
        new: "180".into(),
        had_it: vec!["secretslice".into()],
        beside: vec![],
    };
    let undos = [
        write("vm.swappiness", ""),
        write("memory.swappiness", "secretslice"),
        write("memory.swappiness", "user.slice/user-1000.slice"),
        Undo::SwapOn { path: "/home/odysseus/secret-project.swap".into(), priority: None, discard: None },
    ];
    let boot_id = "11111111-2222-3333-4444-555555555555".to_owned();
    let mut text = Record { seq: 0, phase: Phase::Begun { boot_id, version: 1 } }.to_line() + "\n";
    for (n, undo) in (1..).zip(undos) {
        let step = match &undo {
            Undo::SwapOn { path, .. } => Step::SwapOff { path: path.clone() },
            _ => Step::set("vm.swappiness", 180),
        };
        let reason = "asked for by odysseus".into();
        let intent = Intent { owner: "swap".into(), step, undo, reason, made_by: None };
        text += &(Record { seq: n, phase: Phase::Intent(Box::new(intent)) }.to_line() + "\n");
        text += &(Record { seq: n, phase: Phase::Done { draining: false } }.to_line() + "\n");
    }
    machine.put("run/eke/journal.jsonl", &text);
}

#[test]
fn a_report_has_what_a_maintainer_needs_and_nothing_private() {
    let machine = machine();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("report.txt");
    let args = ["--root", machine.dir().to_str().unwrap(), "report-bug", "--output", file.to_str().unwrap()];
    let ran = eke(&args);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    let report = fs::read_to_string(&file).unwrap();
    let (intro, json) = report.split_once("\n{").unwrap();
    let document: serde_json::Value = serde_json::from_str(&format!("{{{json}")).unwrap();
    assert!(!report.contains('\u{1b}'));
    for text in [report.to_lowercase(), ran.stdout.to_lowercase()] {
        for secret in SECRETS.map(str::to_lowercase) {
            let around = text
                .find(&secret)
                .map(|at| text[at.saturating_sub(200)..].lines().next().unwrap_or_default());
            assert!(!text.contains(&secret), "{secret} is in the report: {around:?}");
        }
    }
    assert!(intro.contains("It does not contain:") && intro.contains("Replaced by words in <>"));
    assert_eq!(document["kernel"]["release"], "6.12.9-<host>");
    assert_eq!(document["kernel"]["boot_words"][0], "zswap.enabled=1");
    assert_eq!(document["distribution"]["version"], "13");
    assert_eq!(document["configuration"]["swap.pool_percent"], "70");
    assert_eq!(document["configuration"]["swap.writeback_device"], "(set)");
    assert_eq!(document["configuration"]["guard.protect"], "(set)");
    assert_eq!(document["journal"][0]["knob"], "vm.swappiness");
    assert_eq!(
        (&document["journal"][0]["old"], &document["journal"][0]["new"]),
        (&"60".into(), &"180".into())
    );
    assert_eq!(document["mounts"]["fuse.eke-cache"], 1);
    assert_eq!(document["plan"]["applied"]["plans"][0]["steps"][0]["step"]["knob"], "vm.swappiness");
    assert!(document["doctor"]["lines"].as_array().unwrap().len() > 10);
    assert!(document["log"][1].as_str().unwrap().ends_with("(os error 2)"), "{}", document["log"]);
    let ended = document["log"][7].as_str().unwrap();
    assert!(ended.contains("<program>: Ended: process 7 of user 1000"), "{}", document["log"]);
    assert_eq!(document["memory"]["kib"]["MemTotal"], 1_024_000);
    assert_eq!(document["status"]["applied"], true);
    assert_eq!(document["status"]["group_at_limit"], "<group>");
}

#[test]
fn no_file_is_replaced_and_without_a_name_the_next_is_found() {
    let machine = FakeKernel::new();
    let place = tempfile::tempdir().unwrap();
    let there = place.path().join("there");
    eke_testkit::tree::put(place.path(), "there", "mine");
    let root = machine.dir().to_str().unwrap();
    let ran = eke(&["--root", root, "report-bug", "--output", there.to_str().unwrap()]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("File exists") && ran.stderr.contains("--output"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
    for _ in 0..2 {
        let mut command = common::command(&["--root", root, "report-bug", "--json"]);
        let ran = command.current_dir(place.path()).output().unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert!(place.path().join(summary["file"].as_str().unwrap()).exists());
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3);
}
