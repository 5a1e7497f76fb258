//! The built program: what it prints, its standard error, its exit status.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use common::{Public, Ran, command, eke, is_root, ran};
use eke_apply::session::Session;
use eke_apply::state;
use eke_model::snapshot::Applied;
use eke_model::step::{Plan, Reason, Step};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::program::build_beside;
use eke_testkit::real::skip;

#[test]
fn help_reads_like_the_readme() {
    insta::assert_snapshot!(eke(&["--help"]).shown());
}

#[test]
fn every_verb_has_an_example_or_is_one_itself() {
    for verb in [
        "plan",
        "up",
        "run",
        "down",
        "enable",
        "disable",
        "status",
        "top",
        "dash",
        "metrics",
        "notify",
        "doctor",
        "report-bug",
        "advise",
        "box",
        "demo",
        "completions",
        "man",
        "schema",
    ] {
        let help = eke(&[verb, "--help"]);
        assert_eq!(help.status, Some(0), "{verb}");
        assert!(help.stdout.contains("Example:"), "{verb} has no example");
    }
    assert!(eke(&["swap", "boot-config", "--help"]).stdout.contains("Example:"));
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    insta::assert_snapshot!("unknown_verb", eke(&["upp"]).shown());
    insta::assert_snapshot!("bad_size", eke(&["box", "--memory", "lots", "--", "true"]).shown());
    insta::assert_snapshot!("no_command", eke(&["box", "--memory", "124M"]).shown());
    insta::assert_snapshot!("percent_out_of_range", eke(&["plan", "--pool-percent", "95"]).shown());
}

fn config(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::io::Write::write_all(&mut file.as_file(), text.as_bytes()).unwrap();
    file
}

#[test]
fn a_wrong_configuration_names_file_line_and_valid_keys() {
    let file = config("[swap]\nalgorythm = \"lz4\"\n");
    let ran = eke(&["plan", "--config", file.path().to_str().unwrap()]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.stderr.contains(".toml:2: unknown field `algorythm`, expected one of `backend`, `algorithm`"),
        "{}",
        ran.stderr
    );
    let ran = eke(&["plan", "--config", "/nonexistent/eke.toml"]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("/nonexistent/eke.toml: No such file"), "{}", ran.stderr);
}

#[test]
fn a_file_that_is_too_long_for_a_configuration_is_not_read() {
    let file = config("");
    file.as_file().set_len(100 << 20).unwrap();
    let ran = eke(&["plan", "--config", file.path().to_str().unwrap()]);
    assert_eq!(ran.status, Some(2), "{}", ran.shown());
    assert!(
        ran.stderr.contains("has more than 1048576 bytes: it is no configuration of eke"),
        "{}",
        ran.shown()
    );
}

/// A pipe of the shell has a text once; nobody may ever write to one with a name; a device may have no end.
#[test]
fn a_configuration_may_be_a_pipe_of_the_shell_but_nothing_that_has_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let fed = |config: &str| {
        let sh = format!("printf '[swap]\\npool_percent = 20\\n' | \"$0\" --config {config} plan --json");
        eke_testkit::program::ran(Command::new("sh").args(["-c", &sh, env!("CARGO_BIN_EXE_eke")]))
    };
    assert_eq!(fed("/dev/stdin").status, Some(0));
    for (config, why) in
        [(pipe.to_str().unwrap(), "is a pipe, and no configuration"), ("/dev/zero", "has more than")]
    {
        let ran = fed(config);
        assert!(ran.status == Some(2) && ran.stderr.contains(why), "{}", ran.shown());
    }
}

#[test]
fn a_wrong_configuration_stops_no_undo() {
    let root = tempfile::tempdir().unwrap();
    eke_testkit::tree::put(root.path(), "etc/eke/eke.toml", "[swap]\npool_precent = 50\n");
    eke_testkit::tree::put(root.path(), "proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n");
    eke_testkit::tree::put(root.path(), "proc/swaps", "Filename\n");
    let at = root.path().to_str().unwrap();
    for verb in [
        &["down"][..],
        &["disable"],
        &["link", "--undo"],
        &["swap", "boot-config", "--undo"],
        &["completions", "bash"],
    ] {
        let ran = eke(&[&["--root", at], verb].concat());
        assert_eq!(ran.status, Some(0), "{verb:?}: {}", ran.shown());
        assert!(ran.stderr.contains("unknown field `pool_precent`"), "{verb:?}: {}", ran.shown());
    }
    let file = config("[swap]\npool_precent = 50\n");
    let named = eke(&["--root", at, "down", "--config", file.path().to_str().unwrap()]);
    assert_eq!(named.status, Some(2), "{}", named.shown());
    assert_eq!(eke(&["--root", at, "doctor"]).status, Some(2));
    eke_testkit::tree::put(root.path(), "proc/stat", "cpu 1 2 3 4\n");
    eke_testkit::tree::put(root.path(), "proc/vmstat", "pswpin 0\n");
    let status = eke(&["--root", at, "status"]);
    assert_eq!(status.status, Some(3), "no agent: {}", status.shown());
    assert!(status.stderr.contains("unknown field `pool_precent`"), "{}", status.shown());
}

/// A machine whose swap needs nothing of eke's, a container if `container`.
fn machine_without_steps(container: bool) -> tempfile::TempDir {
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
fn the_governor_and_prefetch_run_although_swap_needs_nothing() {
    for (extra, boot, settings) in [
        (&["--govern-io"][..], false, ""),
        (&["--govern-io"], true, ""),
        (&[], true, "[prefetch]\nenabled = \"on\"\n"),
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
        assert_eq!(applied.bounds.prefetch, extra.is_empty());
        assert!(applied.plans.is_empty());
        assert_eq!(up(extra).json()["outcome"], "was_up");
        let down = eke(&["--root", at, "down"]);
        assert!(down.status == Some(0) && !root.path().join(state::APPLIED).exists(), "{}", down.shown());
    }
}

#[test]
fn where_eke_changes_nothing_the_governor_is_not_promised() {
    let root = machine_without_steps(true);
    let at = root.path().to_str().unwrap();
    let ran = eke(&["--root", at, "up", "--agent", "none", "--govern-io"]);
    assert_eq!(ran.status, Some(5), "{}", ran.shown());
    assert!(ran.stderr.contains("neither prefetch nor the governor of writers runs here"), "{}", ran.shown());
    assert!(!root.path().join(state::APPLIED).exists());
    assert_eq!(eke(&["--root", at, "up", "--agent", "none"]).status, Some(0));
}

/// A password of a shared tier may make it root's alone.
#[test]
fn a_configuration_that_only_root_may_read_stops_nobody_who_only_reads() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root() {
        return skip("a_configuration_that_only_root_may_read", "only root can become nobody");
    }
    let (public, root) = (Public::new(), tempfile::tempdir().unwrap());
    for (path, text) in [
        ("etc/eke/eke.toml", ""),
        ("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n"),
        ("proc/stat", "cpu 1 2 3 4\n"),
        ("proc/vmstat", "pswpin 0\n"),
        ("proc/swaps", "Filename\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    let mode = |path: PathBuf, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(root.path().to_owned(), 0o755);
    mode(root.path().join("etc/eke/eke.toml"), 0o600);
    let at = root.path().to_str().unwrap();
    for (verb, status) in [("status", 3), ("doctor", 0), ("plan", 0), ("up", 4)] {
        let ran = public.as_nobody(&["--root", at, verb]);
        assert_eq!(ran.status, Some(status), "{verb}: {}", ran.shown());
        assert!(ran.stderr.contains("eke.toml: Permission denied"), "{verb}: {}", ran.shown());
    }
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
fn what_cannot_be_printed_is_a_failure_and_a_gone_reader_is_none() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 1024000 kB\n"),
        ("proc/vmstat", "pswpin 0\n"),
        ("proc/stat", "cpu 1 2 3 4\n"),
        ("proc/swaps", "Filename\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    // Without an agent `status` ends with 3, also if its output is lost.
    for (args, status) in [
        (&["schema"][..], 1),
        (&["--help"], 1),
        (&["up", "--help"], 1),
        (&["--root", root.path().to_str().unwrap(), "status"], 3),
    ] {
        let mut full = command(args);
        full.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        let full: Ran = full.output().unwrap().into();
        assert_eq!(full.status, Some(status), "{}", full.shown());
        assert!(full.stderr.contains("standard output cannot be written: No space"), "{}", full.stderr);
    }
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(reader);
    let mut closed = command(&["schema"]);
    closed.stdout(std::os::fd::OwnedFd::from(writer));
    let closed: Ran = closed.output().unwrap().into();
    assert_eq!((closed.status, closed.stderr.as_str()), (Some(0), ""));
}

/// A line of `/etc/fstab` may name any bytes, and its file system reaches `eke-cache` by mount(8).
#[test]
fn no_program_panics_for_an_argument_that_is_no_text_or_a_full_output() {
    let packages = [
        "-p",
        "eke-agent",
        "-p",
        "eke-prefetchd",
        "-p",
        "eke-iod",
        "-p",
        "eke-cache-serve",
        "-p",
        "eke-cache-engine",
    ];
    build_beside(env!("CARGO_BIN_EXE_eke").as_ref(), env!("CARGO").as_ref(), &packages);
    for program in ["eke-agent", "eke-prefetch", "eke-io", "eke-cache", "eke-cache-shared"] {
        let path = PathBuf::from(env!("CARGO_BIN_EXE_eke")).with_file_name(program);
        let no_text = OsStr::from_bytes(b"/srv/\xff");
        let ran: Ran = std::process::Command::new(&path).args([no_text, no_text]).output().unwrap().into();
        assert!(matches!(ran.status, Some(1 | 2)), "{program}: {}", ran.shown());
        assert!(ran.stderr.contains("\\xFF"), "{program}: {}", ran.shown());
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut help = std::process::Command::new(&path);
        let ran: Ran = help.arg("--help").stdout(full).output().unwrap().into();
        assert!(matches!(ran.status, Some(1 | 2)), "{program}: {}", ran.shown());
    }
}

#[test]
fn a_program_that_lacks_is_named_with_its_own_status() {
    let public = Public::new();
    let ran = std::process::Command::new(public.path()).args(["cache", "mount", "/usr", "/tmp"]).output();
    let ran: Ran = ran.unwrap().into();
    if ran.stderr.contains("cannot mount") {
        return skip("a_program_that_lacks", "no FUSE here");
    }
    assert_eq!(ran.status, Some(6), "{}", ran.shown());
    assert!(ran.stderr.contains("eke-cache is not installed"), "{}", ran.stderr);
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

#[test]
fn overrides_that_make_no_sense_are_refused_with_what_would() {
    if let Some(why) = eke_testkit::real::lacking(&["/sys/class/zram-control"]) {
        return skip("overrides", &why);
    }
    let _machine = eke_testkit::real::lock_machine();
    for (args, part) in [
        (&["plan", "--size", "0"][..], "less than the largest page"),
        (&["plan", "--size", "900T"], "at most"),
        (&["plan", "--algorithm", "brotli"], "is not offered by this kernel; it offers: "),
    ] {
        let ran = eke(args);
        assert_eq!(ran.status, Some(2), "{}", ran.shown());
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

#[test]
fn what_is_generated_is_up_to_date() {
    let docs = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    for (file, args) in [("knobs.md", &["doctor", "--knobs"][..]), ("metrics.md", &["metrics", "--table"])] {
        let now = eke(args).stdout;
        let kept = std::fs::read_to_string(docs.join(file)).unwrap_or_default();
        assert!(now == kept, "docs/{file} is not what `eke {}` prints: run `make docs`", args.join(" "));
    }
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
fn completions_come_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(eke(&["completions", shell]).stdout.contains("boot-config"), "{shell}");
    }
}

#[test]
fn json_has_the_documented_shape() {
    let status = eke(&["status", "--json"]).json();
    let schema = eke(&["schema", "status"]).json();
    for key in schema["required"].as_array().unwrap() {
        assert!(
            !status[key.as_str().unwrap()].is_null() || status.get(key.as_str().unwrap()).is_some(),
            "status lacks {key}"
        );
    }
    assert!(eke(&["doctor", "--json"]).json()["lines"].as_array().unwrap().len() > 5);
    assert!(eke(&["advise", "--json"]).json()["programs"].is_array());
    assert_eq!(eke(&["schema", "nonsense"]).status, Some(2));
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

#[test]
fn the_help_of_schema_names_all_schemas() {
    let help = eke(&["schema", "--help"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, names) = help.split_once("all of them: ").unwrap();
    let names = names.split_whitespace().map(|name| name.trim_end_matches(','));
    let schemas = eke(&["schema"]).json();
    let schemas: std::collections::BTreeSet<&str> =
        schemas.as_object().unwrap().keys().map(String::as_str).collect();
    let named = names.take(schemas.len()).collect();
    assert_eq!(schemas, named);
}

#[test]
fn metrics_replace_a_file_as_a_whole() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("eke.prom");
    eke_testkit::tree::put(place.path(), "eke.prom", "old");
    let write = |file: &str| {
        // As root's shells have it that follow a hardening guide
        let hidden = ["-c", "umask 077; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_eke")];
        let arguments = ["metrics", "--format", "prometheus", "--output", file];
        ran(std::process::Command::new("sh").args(hidden).args(arguments))
    };
    let ran = write(file.to_str().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), ""), "{}", ran.shown());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\neke_ram_bytes ") && text.ends_with('\n'), "{text}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o644);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
    let ran = write(place.path().join("no/eke.prom").to_str().unwrap());
    assert!(ran.status == Some(1) && ran.stderr.contains("cannot write"), "{}", ran.shown());
}

/// Below a directory in which an agent listens and accepts nobody: the kernel does, into its queue.
fn beside_a_hung_agent() -> (Arc<FakeKernel>, UnixListener) {
    let machine = FakeKernel::new();
    let socket = machine.dir().join("run/eke/agent.sock");
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let agent = UnixListener::bind(socket).unwrap();
    (machine, agent)
}

#[test]
fn beside_an_agent_that_hangs_the_numbers_are_those_of_the_machine() {
    let (machine, _agent) = beside_a_hung_agent();
    let root = machine.dir().display().to_string();
    let verbs: [&[&str]; 5] = [&["status"], &["status", "--json"], &[], &["doctor"], &["metrics"]];
    let [status, json, bare, doctor, metrics] = std::thread::scope(|scope| {
        let root = root.as_str();
        let started = verbs.map(|verb| scope.spawn(move || eke(&[&["--root", root], verb].concat())));
        started.map(|verb| verb.join().unwrap())
    });
    assert_eq!(status.status, Some(3), "{}", status.shown());
    assert!(status.stdout.contains("the agent does not answer") && status.stdout.contains("available;"));
    assert!(status.stderr.contains("within 5 s") && status.stderr.contains("`eke down` ends it"));
    assert_eq!(json.status, Some(3), "{}", json.shown());
    let document = json.json();
    assert!(document["agent"].is_null() && document["model"]["ram"].as_u64() > Some(0), "{}", json.shown());
    assert!(document["agent_silent"].as_str().unwrap().contains("does not answer"), "{}", json.shown());
    for shown in [bare, doctor] {
        assert!(shown.status == Some(0) && shown.stdout.contains("does not answer"), "{}", shown.shown());
    }
    assert!(metrics.status == Some(0) && metrics.stdout.contains("eke_agent_up 0\n"), "{}", metrics.shown());
    assert!(metrics.stderr.contains("does not answer"), "{}", metrics.shown());
}

#[test]
fn an_agent_whose_queue_is_full_is_not_called_missing() {
    let (machine, agent) = beside_a_hung_agent();
    rustix::net::listen(&agent, 0).unwrap();
    let _queued = UnixStream::connect(machine.dir().join("run/eke/agent.sock")).unwrap();
    let status = eke(&["--root", &machine.dir().display().to_string(), "status"]);
    assert_eq!(status.status, Some(3), "{}", status.shown());
    assert!(status.stderr.contains("does not answer"), "{}", status.shown());
}

#[test]
fn up_prints_one_document_whatever_it_finds() {
    let machine = FakeKernel::new();
    let root = machine.dir().display().to_string();
    let up = |words: &[&str]| {
        let ran = eke(&[&["--root", &root, "--json", "up"], words].concat());
        assert!(ran.status == Some(0) && ran.stderr.is_empty(), "{}", ran.shown());
        ran.json()
    };
    machine.put("run/eke/down", "");
    let was_down = up(&["--boot"]);
    assert!(was_down["outcome"] == "was_down" && was_down["plan"].is_null(), "{was_down}");
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    plan.push(Step::set("vm.swappiness", 180), Reason::new("a test"));
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan).unwrap();
    let applied = Applied { unix_s: 1, plans: vec![plan], ..Applied::default() };
    state::save(&machine.root(), state::APPLIED, &applied).unwrap();
    let was_up = up(&["--size", "64M", "--govern-io"]);
    assert!(was_up["outcome"] == "was_up" && was_up["plan"].is_null(), "{was_up}");
    assert!(was_up["notes"][0].as_str().unwrap().starts_with("--size has no effect"), "{was_up}");
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

/// A program that reads JSON must not get anything else.
#[test]
fn what_has_no_json_is_refused() {
    let verbs: [&[&str]; 8] = [
        &["run"],
        &["doctor", "--knobs"],
        &["cache", "enable", "/srv"],
        &["cache", "disable", "/srv"],
        &["record", "mark", "a"],
        &["top"],
        &["enable"],
        &["down", "--print"],
    ];
    for verb in verbs {
        let ran = eke(&[&["--json"], verb].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{}", ran.shown());
        assert!(ran.stderr.contains("has no JSON"), "{}", ran.shown());
    }
}
