//! Machines that offer less, and images of others.

use eke_apply::session::Session;
use eke_apply::{journal, state};
use eke_linux::Root;
use eke_model::applied::Applied;
use eke_model::step::{Plan, Reason, Step, UnnamedFile, ZramSpec};
use eke_model::units::Bytes;
use eke_swap::measure::{Machine, Measured};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::real::skip;

use crate::common::{Public, eke, is_root};

/// A machine whose swap needs nothing of eke's, a container if `container`.
pub fn machine_without_steps(container: bool) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n"),
        ("proc/stat", "cpu 1 2 3 4\n"),
        ("proc/vmstat", "pswpin 0\n"),
        ("proc/swaps", "Filename\n"),
        ("proc/sys/kernel/random/boot_id", "b\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    if container {
        eke_testkit::tree::put(root.path(), "run/.containerenv", "");
    }
    root
}

#[test]
fn the_governor_prefetch_and_the_guard_run_although_swap_needs_nothing() {
    for (extra, boot, settings) in [
        (&["--govern-io"][..], false, ""),
        (&["--govern-io"], true, ""),
        (&[], true, "[prefetch]\nenabled = \"on\"\n"),
        (&[], true, "[guard]\nenabled = \"on\"\n"),
    ] {
        let root = machine_without_steps(false);
        eke_testkit::tree::put(root.path(), "etc/eke/eke.toml", settings);
        let at = root.path().to_str().unwrap();
        let up = |more: &[&str]| {
            let boot = if boot { &["--boot"][..] } else { &[] };
            eke(&[&["--root", at, "up", "--json", "--agent", "none"], boot, more].concat())
        };
        let ran = up(extra);
        assert_eq!(ran.status, Some(0), "{}", ran.shown());
        assert_eq!(ran.json()["outcome"], "agent_only", "{}", ran.shown());
        let applied: Applied = state::load(&eke_linux::Root::at(root.path()), state::APPLIED).unwrap();
        assert_eq!(applied.bounds.govern_io, !extra.is_empty());
        assert_eq!(applied.bounds.prefetch, settings.starts_with("[prefetch]"));
        assert!(applied.plans.is_empty());
        assert_eq!(up(extra).json()["outcome"], "was_up");
        let down = eke(&["--root", at, "down"]);
        assert!(down.status == Some(0) && !root.path().join(state::APPLIED).exists(), "{}", down.shown());
    }
}

/// As `swapoff -a; rmmod zram` leaves it.
#[test]
fn up_says_what_to_do_when_its_swap_was_removed() {
    let machine = FakeKernel::new();
    let root = machine.root();
    let mut plan = Plan::default();
    let spec = ZramSpec { swap_priority: Some(100), ..ZramSpec::new("lz4", Bytes::mib(64)) };
    plan.push(Step::AddZram(spec), Reason::new("a test"));
    Session::open(&root, "swap").unwrap().apply_plan(&plan).unwrap();
    state::save(&root, state::APPLIED, &Applied { plans: vec![plan], ..Applied::default() }).unwrap();
    machine.remove_area("/dev/zram1");
    std::fs::remove_dir_all(machine.dir().join("sys/block/zram1")).unwrap();
    let at = machine.dir().to_str().unwrap();
    let status = eke(&["--root", at, "status"]);
    assert!(status.stdout.contains("then `eke down` and `eke up` set it up again"), "{}", status.shown());
    let up = eke(&["--root", at, "up", "--agent", "none"]);
    assert_eq!(up.status, Some(5), "{}", up.shown());
    let says = "zram1 was removed by somebody else: `eke down` and then `eke up` set swap up again";
    assert!(up.stderr.contains(says), "{}", up.shown());
    assert_eq!(eke(&["--root", at, "down"]).status, Some(0));
    assert!(journal::entries(&root).unwrap().is_empty());
}

/// What a machine that `eke up` measured on Linux 6.12.3, or a boot if `at_boot`, uses at a boot of this kernel with this CPU, and what it stores then.
fn used_at_boot(at_boot: bool, kernel: &str, cpu: &str) -> [(String, bool); 2] {
    let dir = machine_without_steps(false);
    let at = Root::at(dir.path());
    let put = |path: &str, text: &str| eke_testkit::tree::put(dir.path(), path, text);
    put("etc/eke/eke.toml", "[guard]\nenabled = \"on\"\n");
    put("proc/cpuinfo", "model name : A CPU\n");
    let machine = Some(Machine::of(&at));
    let kept = Measured { kernel: "6.12.3".into(), at_boot, machine, ..Measured::default() };
    state::save(&at, state::MEASURED, &kept).unwrap();
    put("proc/sys/kernel/osrelease", &format!("{kernel}\n"));
    put("proc/cpuinfo", &format!("model name : {cpu}\n"));
    let up = eke(&["--root", dir.path().to_str().unwrap(), "up", "--boot", "--json", "--agent", "none"]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
    let used = serde_json::from_value(up.json()["plan"]["measured"].clone()).unwrap();
    let stored = state::load(&at, state::MEASURED).unwrap();
    [used, stored].map(|m: Measured| (m.kernel, m.at_boot))
}

#[test]
fn at_boot_the_measurement_of_up_is_used_on_its_machine_and_series_and_never_replaced() {
    let of = |kernel: &str, at_boot| (kernel.to_owned(), at_boot);
    let old = of("6.12.3", false);
    assert_eq!(used_at_boot(false, "6.12.9", "A CPU"), [old.clone(), old.clone()]);
    assert_eq!(used_at_boot(false, "6.13.1", "A CPU"), [of("6.13.1", true), old]);
    assert_eq!(used_at_boot(false, "6.12.9", "another"), [of("6.12.9", true), of("6.12.9", true)]);
    assert_eq!(used_at_boot(true, "6.12.9", "A CPU"), [of("6.12.3", true), of("6.12.3", true)]);
    assert_eq!(used_at_boot(true, "6.13.1", "A CPU"), [of("6.13.1", true), of("6.13.1", true)]);
}

/// systemd runs the same command at a restart of the unit.
#[test]
fn a_file_behind_zram_is_let_go_at_a_shutdown_alone() {
    let machine = FakeKernel::new();
    let root = machine.root();
    let file = UnnamedFile { directory: "/srv".into(), size: Bytes::mib(16), encrypted: false };
    let spec = ZramSpec { swap_priority: Some(100), ..ZramSpec::new("lz4", Bytes::mib(64)) };
    let mut plan = Plan::default();
    plan.push(Step::AddZram(ZramSpec { backing_file: Some(file), ..spec }), Reason::new("a test"));
    Session::open(&root, "swap").unwrap().apply_plan(&plan).unwrap();
    machine.remove_area("/dev/zram1");
    let is_reset = || {
        let let_go = eke(&["--root", machine.dir().to_str().unwrap(), "lab", "let-go"]);
        assert_eq!(let_go.status, Some(0), "{}", let_go.shown());
        root.read("sys/block/zram1/reset").unwrap() == "1"
    };
    machine.put("run/systemd/system/x", "");
    assert!(!is_reset(), "systemd runs");
    std::fs::remove_dir_all(machine.dir().join("run/systemd")).unwrap();
    assert!(is_reset(), "a script of System V init has looked at the runlevel");
}

#[test]
fn where_eke_changes_nothing_the_governor_is_not_promised() {
    let root = machine_without_steps(true);
    let at = root.path().to_str().unwrap();
    let ran = eke(&["--root", at, "up", "--agent", "none", "--govern-io"]);
    assert_eq!(ran.status, Some(5), "{}", ran.shown());
    let none = "neither prefetch, the governor of writers nor the guard runs here";
    assert!(ran.stderr.contains(none), "{}", ran.shown());
    assert!(!root.path().join(state::APPLIED).exists());
    assert_eq!(eke(&["--root", at, "up", "--agent", "none"]).status, Some(0));
}

#[test]
fn without_root_it_still_serves_and_says_what_it_would_need() {
    if !is_root() {
        return skip("without_root", "only root can become nobody");
    }
    let public = Public::new();
    assert_eq!(public.as_nobody(&[]).status, Some(0));
    assert_eq!(public.as_nobody(&["doctor"]).status, Some(0));
    let plan = public.as_nobody(&["plan", "--json"]);
    assert_eq!(plan.status, Some(0), "{}", plan.stderr);
    assert_eq!(plan.json()["measured"]["estimated"], true);
    for verb in [
        &["up"][..],
        &["down"],
        &["enable"],
        &["disable"],
        &["demo"],
        &["box", "--memory", "64M", "--", "true"],
    ] {
        let ran = public.as_nobody(verb);
        assert_eq!(ran.status, Some(4), "{verb:?}: {}", ran.shown());
        assert!(ran.stderr.contains("root"), "{verb:?}: {}", ran.stderr);
    }
    let run = public.as_nobody(&["run"]);
    assert_eq!(run.status, Some(4));
    assert!(run.stdout.contains("Estimated in user space") && run.stderr.contains("sudo"), "{}", run.shown());
}

/// /dev/fuse is root's alone in containers and in some small systems.
#[test]
fn without_root_a_closed_device_is_no_support_for_fuse() {
    use std::os::unix::fs::MetadataExt;
    let is_closed = std::fs::metadata("/dev/fuse").is_ok_and(|meta| meta.mode() & 0o006 != 0o006);
    if !is_root() || !is_closed {
        return skip("a_closed_device", "needs root and a /dev/fuse that is root's alone");
    }
    let public = Public::new();
    let doctor = public.as_nobody(&["doctor"]);
    assert!(doctor.stdout.contains("/dev/fuse is not open to you"), "{}", doctor.shown());
    let mount = public.as_nobody(&["cache", "mount", "/usr", "/tmp"]);
    assert_eq!(mount.status, Some(4), "{}", mount.shown());
}

#[test]
fn a_container_is_neither_enabled_nor_called_a_host() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n"),
        ("proc/vmstat", "pswpin 0\n"),
        ("proc/swaps", "Filename\n"),
        ("run/systemd/container", "systemd-nspawn\n"),
        ("etc/rc.local", "#!/bin/sh\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    let at = root.path().to_str().unwrap();
    let enable = eke(&["enable", "--root", at]);
    assert_eq!(enable.status, Some(1), "{}", enable.shown());
    assert!(enable.stderr.contains("this is a container (/run/systemd/container"), "{}", enable.shown());
    assert_eq!(std::fs::read_to_string(root.path().join("etc/rc.local")).unwrap(), "#!/bin/sh\n");
    let doctor = eke(&["doctor", "--root", at]);
    assert!(doctor.stdout.contains("no  host                   a container ("), "{}", doctor.shown());
}

/// Docker, LXC, WSL: no setting and no `eke up` starts anything there.
#[test]
fn where_eke_changes_nothing_nobody_is_told_how_to_switch_it_on() {
    let root = machine_without_steps(true);
    for (path, text) in [
        ("etc/eke/eke.toml", "[prefetch]\nenabled = \"on\"\n"),
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("lib/modules/6.12.1/modules.dep", "kernel/drivers/block/zram/zram.ko:\n"),
        ("sys/kernel/mm/lru_gen/enabled", "0x0000\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    let at = root.path().to_str().unwrap();
    let plan = eke(&["plan", "--root", at]);
    assert!(
        plan.stdout.contains("this is a container") && !plan.stdout.contains("To turn it"),
        "{}",
        plan.shown()
    );
    let json = eke(&["plan", "--root", at, "--json"]).json();
    assert_eq!(json["prefetch"]["reason"]["text"], "it runs on a host alone", "{json}");
    let doctor = eke(&["doctor", "--root", at]);
    let promised = ["eke up", "eke enable"].iter().any(|verb| doctor.stdout.contains(verb));
    assert!(!promised, "{}", doctor.shown());
}

/// Debian 12's kernel with a zram device; RHEL 8's, whose file of the pressure answers EOPNOTSUPP, as a directory does not answer either.
#[test]
fn doctor_names_each_lack_once_also_of_pressure_that_does_not_answer() {
    let root = machine_without_steps(false);
    for (path, text) in [
        ("sys/class/zram-control/hot_add", "1\n"),
        ("sys/block/zram0/comp_algorithm", "[lzo-rle] zstd\n"),
        ("proc/pressure/memory/x", ""),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    let doctor = eke(&["doctor", "--root", root.path().to_str().unwrap(), "--json"]).json();
    let lines: Vec<String> = doctor["lines"].as_array().unwrap().iter().map(ToString::to_string).collect();
    for lack in ["algorithm_params", "recomp_algorithm", "backing_dev", "lru_gen", "/proc/pressure"] {
        let named: Vec<_> = lines.iter().filter(|line| line.contains(lack)).collect();
        assert_eq!(named.len(), 1, "{lack}: {named:#?}");
    }
}

#[test]
fn a_kernel_without_zram_is_told_so() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n"),
        ("proc/vmstat", "pswpin 0\n"),
        ("proc/swaps", "Filename\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    let at = root.path().to_str().unwrap();
    let plan = eke(&["plan", "--root", at]);
    assert_eq!(plan.status, Some(0), "{}", plan.stderr);
    assert!(
        plan.stdout.contains("no /sys/class/zram-control") && plan.stdout.contains("Nothing to change."),
        "{}",
        plan.stdout
    );
    let doctor = eke(&["doctor", "--root", at]);
    assert!(doctor.stdout.contains("no  zram"), "{}", doctor.stdout);
}

/// An image's root: no /proc, no /sys.
#[test]
fn boot_config_writes_to_an_image_and_undoes_it() {
    let case = std::path::Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../apply/tests/cases/01-grub-drop-in-initramfs-tools/root"
    ));
    let root = tempfile::tempdir().unwrap();
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(case.join("."))
            .arg(root.path())
            .status()
            .unwrap()
            .success()
    );
    let before = eke_testkit::tree::read(root.path(), &["var"]);
    let at = root.path().to_str().unwrap();
    let with = |more: &[&str]| eke(&[&["--root", at, "swap", "boot-config"], more].concat());
    let values = ["--compressor", "zstd", "--max-pool-percent", "40"];
    let shown = with(&values);
    assert!(
        shown.stdout.contains("zswap.compressor=zstd zswap.max_pool_percent=40")
            && shown.stdout.contains("Nothing was changed"),
        "{}",
        shown.shown()
    );
    assert_eq!(eke_testkit::tree::read(root.path(), &["var"]), before);
    let written = with(&[&values[..], &["--write"]].concat());
    assert!(
        written.status == Some(0) && written.stdout.contains("to run on that system: update-grub"),
        "{}",
        written.shown()
    );
    let drop_in =
        std::fs::read_to_string(root.path().join("etc/default/grub.d/50-eke.cfg")).unwrap_or_default();
    assert!(drop_in.contains("zswap.compressor=zstd"), "{}", written.shown());
    assert_eq!(with(&["--undo"]).status, Some(0));
    assert_eq!(eke_testkit::tree::read(root.path(), &["var"]), before);
}

#[test]
fn advise_says_that_processes_of_others_are_hidden() {
    let machine = FakeKernel::new();
    machine.put("proc/self/comm", "eke\n");
    let root = machine.dir().to_str().unwrap().to_owned();
    let advise = || eke(&["--root", &root, "advise"]).stdout;
    assert!(advise().contains("hides the processes of other users (hidepid)"), "{}", advise());
    machine.put("proc/1/comm", "init\n");
    assert!(!advise().contains("hidepid"), "{}", advise());
}

/// systemd may restart a service that ended during `eke down`; one that it has stopped is only started by somebody.
#[test]
fn after_down_a_stopped_service_may_be_started_again() {
    let root = machine_without_steps(false);
    let up = || {
        let at = root.path().to_str().unwrap();
        eke(&["--root", at, "--json", "up", "--boot", "--agent", "none"]).json()["outcome"].clone()
    };
    let mark = |text: &str| eke_testkit::tree::put(root.path(), "run/eke/down", text);
    mark("null");
    assert_eq!(up(), "was_down", "of the eke before");
    assert_eq!(eke(&["--root", root.path().to_str().unwrap(), "down"]).status, Some(0));
    assert_eq!(up(), "was_down", "nobody has stopped the service");
    mark("{\"service_is_stopped\":true}");
    assert_eq!(up(), "nothing_to_change");
}
