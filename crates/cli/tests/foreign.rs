//! Foreign names: of programs, files, disks, steps, other machines. No verb prints control characters of a name, and no name can imitate a
//! line of eke. Every verb is in the table, with a reason if it prints no such names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use common::{Ran, build_bench, build_cache, command, eke};
use eke_io::counters::{Device, Requester, Window};
use eke_model::applied::Applied;
use eke_model::snapshot::{AgentState, Event, IoDisk, IoState, PrefetchState, Response, Snapshot};
use eke_model::step::{Plan, Reason, Step};
use eke_prefetch_model::choose::{ChoiceOutcome, Occasion};
use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Pages, Program, Span, Stamp, Touched, UsedBy};
use eke_prefetch_store::{Decision, ProgramStore};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::real::lacking;
use eke_testkit::tree::put;

/// Clears the screen, sets the title, sets red by C1, reverses text, deletes, and begins a line.
const EVIL: &str = "evil\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{202e}\u{2066}\u{7f}\r\nFAKE";
/// The same text as a part of a path.
const EVIL_FILE: &[u8] = b"evil\x1b[2J\x9b31m\xc2\x9b31m\xe2\x80\xae\xff\x7f\r\nFAKE";

type Outputs = Vec<Ran>;

fn evil_event() -> Event {
    let program = eke_model::snapshot::Program { uid: 1000, name: Some(EVIL.into()) };
    Event { unix_s: 1, text: EVIL.into(), important: true, program: Some(program) }
}

/// The evidence that a verb prints no control characters.
enum How {
    /// Its output with such names.
    Prints(fn(&Environment) -> Outputs),
    /// It prints foreign names only in errors, which `every_verb_names_a_file_in_its_errors` tests.
    Nothing(&'static str),
}
use How::{Nothing, Prints};

const TABLE: &[(&str, How)] = &[
    ("", Prints(|g| g.with_agent(&[&[]]))),
    ("status", Prints(|g| g.with_agent(&[&["status"], &["status", "--json"]]))),
    ("metrics", Prints(|g| g.with_agent(&[&["metrics"], &["metrics", "--format", "prometheus"]]))),
    ("notify", Nothing("it shows sentences of the agent, escaped; real_notify.rs has its test")),
    ("doctor", Prints(|g| g.with_agent(&[&["doctor"], &["doctor", "--json"]]))),
    ("top", Nothing("it draws through crates/top, whose tests/screens.rs has a snapshot like this one's")),
    ("dash", Prints(dash)),
    ("plan", Prints(|g| g.at_root(&[&["plan"], &["plan", "--json"]]))),
    ("down", Nothing("it names what eke made or changed itself")),
    ("up", Nothing("it prints the plan, by the same function as `plan`")),
    ("run", Nothing("it prints the plan and the agent's numbers; its line goes through one_line")),
    ("report-bug", Nothing("it escapes and replaces foreign names; report_bug.rs has its test")),
    ("advise", Prints(|g| g.at_root(&[&["advise"], &["advise", "--json"]]))),
    ("enable", Nothing("it names eke's own files")),
    ("disable", Nothing("it names eke's own files")),
    ("box", Nothing("it prints numbers; the command's output is the command's")),
    ("demo", Nothing("it runs eke's own programs")),
    ("swap boot-config", Prints(|g| g.at_root(&[&["swap", "boot-config"]]))),
    ("record", Prints(record)),
    ("record mark", Nothing("it prints nothing but errors")),
    ("report", Prints(record)),
    ("cache mount", Prints(cache)),
    ("cache umount", Prints(cache)),
    ("cache status", Prints(cache)),
    ("cache warm", Prints(cache)),
    ("cache enable", Prints(cache)),
    ("cache disable", Prints(cache)),
    ("prefetch list", Prints(|g| g.prefetch(&[&["list"], &["list", "--json"]]))),
    ("prefetch show", Prints(|g| g.prefetch(&[&["show", "script"], &["show", "script", "--json"]]))),
    ("prefetch explain", Prints(|g| g.prefetch(&[&["explain"], &["explain", EVIL]]))),
    ("prefetch boot", Prints(|g| g.prefetch(&[&["boot"], &["boot", "--json"]]))),
    ("prefetch trace", Prints(|g| g.prefetch(&[&["trace"]]))),
    ("prefetch replay", Prints(replay)),
    ("prefetch export", Prints(prefetch_export)),
    ("prefetch import", Prints(prefetch_import)),
    ("prefetch forget", Prints(|g| g.prefetch(&[&["forget", "script"]]))),
    ("link", Prints(link)),
    ("ltsp plan", Prints(ltsp)),
    ("ltsp install", Nothing("it prints notes by the same function as `ltsp plan`")),
    ("ltsp uninstall", Nothing("it names what eke made itself")),
    ("ltsp status", Prints(ltsp)),
    ("ltsp targets", Prints(ltsp)),
    ("io watch", Prints(io_watch)),
    ("io compare", Prints(|_| vec![eke(&["io", "compare", EVIL, "1", "2", "--", "true"])])),
    ("io sweep", Prints(|_| vec![eke(&["io", "sweep", EVIL, "1,2", "--", "true"])])),
    ("bench", Prints(bench_show)),
    ("completions", Nothing("made of eke's own words")),
    ("man", Nothing("made of eke's own words")),
    ("schema", Nothing("made of eke's own words")),
];

/// A made-up machine with such names.
struct Environment {
    machine: Arc<FakeKernel>,
    place: tempfile::TempDir,
}

impl Environment {
    fn new() -> Self {
        let environment = Self { machine: FakeKernel::new(), place: tempfile::tempdir().unwrap() };
        let machine = &environment.machine;
        for (pid, name) in [(4711, EVIL), (4712, "\u{1b}c")] {
            machine.put(&format!("proc/{pid}/comm"), &format!("{name}\n"));
            machine.put(
                &format!("proc/{pid}/smaps_rollup"),
                "Pss: 4096 kB\nSwapPss: 64 kB\nPrivate_Dirty: 99 kB\n",
            );
        }
        machine.put("proc/sys/kernel/hostname", &format!("{EVIL}\n"));
        machine.put("proc/sys/kernel/osrelease", "6.1\u{1b}[2J\n");
        machine
            .put("proc/swaps", "Filename Type Size Used Priority\n/swap\u{1b}[2J\\012FAKE file 65536 4 -2\n");
        machine.put("sys/module/zswap/parameters/compressor", "lzo\u{1b}[2J\n");
        machine.put("etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\u{1b}[2J\"\n");
        let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
        plan.push(Step::set("vm.swappiness", 180), Reason::new(EVIL));
        plan.advice.push(Reason::new(EVIL));
        let applied = Applied { unix_s: 1, plans: vec![plan], ..Applied::default() };
        eke_apply::state::save(&machine.root(), eke_apply::state::APPLIED, &applied).unwrap();
        environment
    }

    fn root(&self) -> &str {
        self.machine.dir().to_str().unwrap()
    }

    fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.place.path().join(name.as_ref())
    }

    fn at_root(&self, all: &[&[&str]]) -> Outputs {
        all.iter().map(|args| eke(&[&["--root", self.root()], *args].concat())).collect()
    }

    /// A machine beside an agent that passes on such names.
    fn with_agent(&self, all: &[&[&str]]) -> Outputs {
        let snapshot = Snapshot {
            agent: Some(AgentState { pid: 7, ..AgentState::default() }),
            applied: true,
            backend: EVIL.into(),
            prefetch: Some(PrefetchState {
                source: EVIL.into(),
                off: Some(EVIL.into()),
                ..PrefetchState::default()
            }),
            io: Some(IoState {
                source: EVIL.into(),
                last: Some(EVIL.into()),
                disks: vec![IoDisk { name: EVIL.into(), changed: vec![EVIL.into()], ..IoDisk::default() }],
                ..IoState::default()
            }),
            events: vec![evil_event()],
            ended: vec![evil_event()],
            ..Snapshot::default()
        };
        let answer = serde_json::to_string(&Response::Status(Box::new(snapshot))).unwrap() + "\n";
        let socket = self.machine.dir().join("run/eke/agent.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = BufReader::new(&stream).read_line(&mut String::new());
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let printed = self.at_root(all);
        std::fs::remove_file(socket).unwrap();
        printed
    }

    /// A store with a program, a script and files with such names.
    fn prefetch(&self, all: &[&[&str]]) -> Outputs {
        let dir = self.path("store");
        if !dir.exists() {
            self.learn(&dir);
        }
        let store = ["prefetch", "--store", dir.to_str().unwrap()];
        all.iter().map(|args| eke(&[&store, *args].concat())).collect()
    }

    fn learn(&self, dir: &Path) {
        std::fs::create_dir(dir).unwrap();
        let now_s = 1_800_000_000;
        let mut keep = ProgramStore::open(dir, "boot", now_s).unwrap().store;
        let evil = |last: &str| Path::new("/tmp").join(OsStr::from_bytes(EVIL_FILE)).join(last);
        let file = |path: PathBuf| Touched {
            path,
            kind: Kind::File,
            stamp: Stamp { dev: 1, ino: 1, size: 0, mtime_ns: 0 },
            pages: Span::new(0, 9).into_iter().collect::<Pages>(),
            stale: Pages::default(),
            weight: 0.75,
            used_by: UsedBy::Unknown,
        };
        let program = Program { script: Some(evil("script")), ..Program::of_exe(evil("exe")) };
        let launch = Launch {
            program,
            uid: 1000,
            began_ns: now_s * 1_000_000_000,
            took: Duration::from_millis(900),
            ended: LaunchEnd::Quiet,
            set: FileSet { files: vec![file(evil("exe")), file(evil("library"))] },
            cold_bytes: 1 << 20,
        };
        keep.add_launch(&launch, &launch.set, now_s).unwrap();
        keep.add_decisions(&[Decision {
            at_s: minute_after_boot_s(),
            occasion: Occasion::Exec,
            program: launch.program.id(),
            probability: 1.0,
            outcome: ChoiceOutcome::Chosen { bytes: 4096, of_bytes: 8192, saved_s: 1.0, of_s: 2.0 },
            limit: None,
            usage: None,
        }])
        .unwrap();
    }

    /// `eke` beside this script under the name of a program.
    fn beside(&self, name: &str, script: &str) -> Command {
        let bin = self.path("bin");
        std::fs::create_dir_all(&bin).unwrap();
        // Copied by another process: see `common::Public`.
        assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_eke")).arg(&bin).status().unwrap().success());
        eke_testkit::tree::put(&bin, name, &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(bin.join(name), Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(bin.join("eke"));
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).stdin(Stdio::null());
        command
    }
}

/// A minute after the boot, in seconds since 1970: `eke prefetch boot` shows the first five.
fn minute_after_boot_s() -> i64 {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime_s: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
    let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    now_s as i64 - uptime_s as i64 + 60
}

fn ran(command: &mut Command) -> Ran {
    eke_testkit::program::ran(command)
}

fn dash(environment: &Environment) -> Outputs {
    let mut dash = command(&["--root", environment.root(), "dash", "--listen", "0.0.0.0:0", "--history"]);
    let mut dash =
        dash.arg(environment.path("h.db")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let line = eke_testkit::program::first_line(dash.stdout.take().unwrap());
    dash.kill().unwrap();
    let ended: Ran = eke_testkit::program::output_of(dash).into();
    vec![Ran { stdout: line, ..ended }]
}

fn record(environment: &Environment) -> Outputs {
    let (evil, file) = (environment.path(OsStr::from_bytes(EVIL_FILE)), environment.path("r.sqlite"));
    let page = environment.path(OsStr::from_bytes(&[EVIL_FILE, b".html"].concat()));
    if !evil.exists() {
        std::os::unix::fs::symlink("/bin/true", &evil).unwrap();
    }
    let mut record = command(&["record", "--every", "10ms", "--force", "--output"]);
    let recorded = ran(record.arg(&file).arg("--").arg(&evil).arg(EVIL));
    let report = |what: &[&str]| ran(command(&["report"]).arg(&file).args(what));
    let written = ran(command(&["report", "--force"]).arg(&file).arg("--html").arg(page));
    vec![recorded, report(&["--json"]), written, ran(command(&["report"]).arg(&evil))]
}

fn prefetch_export(environment: &Environment) -> Outputs {
    let file = environment.path(OsStr::from_bytes(EVIL_FILE)).with_extension("launches");
    let file = file.to_string_lossy();
    environment.prefetch(&[&["export", "--output", &file], &["export", EVIL, "--output", &file]])
}

fn prefetch_import(environment: &Environment) -> Outputs {
    let text = serde_json::json!({
        "form": "eke launches 1",
        "programs": [{"exe": format!("/usr/bin/{EVIL}"), "took_ms": 1, "files": []}]
    });
    let (hostile, other) = (environment.path("hostile"), environment.path("other"));
    put(environment.place.path(), "hostile", &text.to_string());
    put(environment.place.path(), "other", &serde_json::json!({"form": EVIL, "programs": []}).to_string());
    let of = |path: &Path| path.to_str().unwrap().to_owned();
    environment.prefetch(&[
        &["import", &of(&hostile), "--unsigned"],
        &["import", &of(&other), "--unsigned"],
        &["import", EVIL],
    ])
}

fn replay(environment: &Environment) -> Outputs {
    build_bench();
    let trace = environment.path(OsStr::from_bytes(EVIL_FILE));
    let dir = trace.with_extension("csv");
    let traced = environment.prefetch(&[&["trace"]]);
    drop(
        std::fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&dir)
            .unwrap()
            .write_all(traced[0].stdout.as_bytes()),
    );
    let replay = |path: &Path| ran(command(&["prefetch", "replay"]).arg(path));
    vec![replay(&dir), replay(Path::new(OsStr::from_bytes(EVIL_FILE)))]
}

/// The other end sends anything on both of its outputs.
fn link(environment: &Environment) -> Outputs {
    let script = format!("printf '%s\\n' '{EVIL}' >&2; printf '%s\\n' 'hostname {EVIL}' '{EVIL}'; exit 255");
    let mut link = environment.beside("ssh", &script);
    vec![ran(link.args(["link", "host"])), ran(environment.beside("ssh", &script).args(["link", EVIL]))]
}

fn io_watch(environment: &Environment) -> Outputs {
    let who = Requester {
        name: EVIL.into(),
        id: 7,
        device: EVIL.into(),
        operation: eke_io::class::Operation::Read,
        count: 3,
        bytes: eke_model::units::Bytes(9),
        sum_ns: 9,
        most_ns: 9,
    };
    let window = Window {
        seconds: 1.0,
        source: EVIL.into(),
        missing: vec![EVIL.into()],
        devices: vec![Device {
            name: EVIL.into(),
            busy: Some(0.5),
            reads_in_flight: Some(1),
            ..Device::default()
        }],
        gone: vec![EVIL.into()],
        requesters: vec![who],
    };
    let text = serde_json::to_string(&window).unwrap();
    eke_testkit::tree::put(environment.place.path(), "window", &(text + "\n"));
    let script = format!("while read line; do cat '{}'; done", environment.path("window").display());
    let watch = ["io", "watch", "--count", "1", "--every", "100ms"];
    [&["--by", "process"][..], &["--json"], &["--csv"]]
        .iter()
        .map(|how| ran(environment.beside("eke-io", &script).args(watch).args(*how)))
        .collect()
}

/// A saved result is foreign: every free text in it is such a name.
fn bench_show(environment: &Environment) -> Outputs {
    build_bench();
    let saved = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/capacity-levers.json");
    let text = std::fs::read_to_string(saved).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    for name in ["experiment", "command"] {
        report[name] = EVIL.into();
    }
    report["machine"]["kernel"] = EVIL.into();
    report["machine"]["processor"] = EVIL.into();
    report["variants"][0]["set_up"] = EVIL.into();
    let name = environment.path(OsStr::from_bytes(EVIL_FILE));
    eke_testkit::tree::put(environment.place.path(), "saved.json", &report.to_string());
    let renamed = text.replace("\"tuned zram\"", &serde_json::to_string(EVIL).unwrap());
    eke_testkit::tree::put(environment.place.path(), "renamed.json", &renamed);
    let show = |file: &Path| ran(command(&["bench", "show"]).arg(file));
    vec![show(&environment.path("saved.json")), show(&environment.path("renamed.json")), show(&name)]
}

fn cache(environment: &Environment) -> Outputs {
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return vec![Ran { stdout: format!("skipped: cache: {why}\n"), stderr: String::new(), status: None }];
    }
    let cache = build_cache();
    let dir = environment.path(OsStr::from_bytes(EVIL_FILE));
    std::fs::create_dir_all(&dir).unwrap();
    let verb = |verb: &[&str]| {
        let mut command = command(&[&["cache"], verb].concat());
        ran(command.arg(&dir).env("XDG_RUNTIME_DIR", environment.place.path()))
    };
    assert!(cache.exists());
    // The list of what was hot would stay on this machine. Nothing is mounted at boot: the name is not UTF-8.
    let verbs = ["mount", "status", "warm", "mount", "umount", "umount", "warm", "enable", "disable"];
    let options = |name| if name == "mount" { vec![name, "--no-remember"] } else { vec![name] };
    let printed = verbs.map(|name| verb(&options(name)));
    printed.into_iter().chain([verb(&["status", "--json"])]).collect()
}

/// The faults of an output: control characters except line ends and tabs, characters that reverse text, lines that begin in a name.
fn obeyed(verb: &str, output: &Ran) -> Vec<String> {
    let is_obeyed = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let lines = [&output.stdout, &output.stderr].into_iter().flat_map(|text| text.split('\n'));
    let bad = lines.filter(|line| line.contains(is_obeyed) || line.starts_with("FAKE"));
    bad.map(|line| format!("eke {verb}: {line:?} of {}", output.shown())).collect()
}

#[test]
fn no_verb_prints_what_a_terminal_obeys() {
    let mut wrong = Vec::new();
    for (verb, how) in TABLE {
        let Prints(print) = how else { continue };
        let environment = Environment::new();
        let outputs = print(&environment);
        wrong.extend(outputs.iter().flat_map(|output| obeyed(verb, output)));
        let all: String = outputs.iter().map(Ran::shown).collect();
        if !["evil", "\\u001b", "skipped:"].iter().any(|shown| all.contains(shown)) {
            wrong.push(format!("eke {verb} was fed no such name: {all}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_verb_names_a_file_in_its_errors() {
    build_bench();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join(EVIL);
    let mut opened = std::fs::OpenOptions::new().create_new(true).write(true).open(&file).unwrap();
    opened.write_all(b"[evil\x1b[2J\r\nFAKE").unwrap();
    for (verb, how) in TABLE {
        let mut command = command(&["--config"]);
        let output = ran(command.arg(&file).args(verb.split_whitespace()).arg("--json"));
        assert_ne!(output.status, Some(0), "{verb}");
        assert_eq!(obeyed(verb, &output), Vec::<String>::new());
        let is_named = output.stderr.contains("evil\\u001b[2J");
        assert!(is_named || output.status == Some(2), "{verb}: {}", output.shown());
        assert!(!matches!(how, Nothing(why) if why.is_empty()), "{verb}");
    }
}

/// A server whose `ltsp.conf` and leases have such names.
fn ltsp(environment: &Environment) -> Outputs {
    let machine = &environment.machine;
    machine.put("usr/sbin/ltsp", "");
    machine.put(
        "etc/ltsp/ltsp.conf",
        &format!(
            "[clients]\nEKE_SWAP='{EVIL}'\nEKE=auto\nEKE_METRICS=on\n[52:54:00:aa:bb:01]\nHOSTNAME='{EVIL}'\n"
        ),
    );
    machine.put("var/lib/misc/dnsmasq.leases", "0 52:54:00:aa:bb:02 127.0.0.9 evil\u{1b}[2J\u{9b} *\n");
    environment.at_root(&[
        &["ltsp", "plan"],
        &["ltsp", "status"],
        &["ltsp", "status", "--json"],
        &["ltsp", "targets"],
        &["ltsp", "status", EVIL],
    ])
}

/// The verbs of the help, with their subverbs.
fn verbs(of: &[String]) -> Vec<String> {
    let words: Vec<&str> = of.iter().map(String::as_str).chain(["--help"]).collect();
    // The laboratory is another program.
    if of == ["bench"] {
        return vec![of.join(" ")];
    }
    let help = eke(&words).stdout;
    let Some(list) = help.split("\nCommands:\n").nth(1) else { return vec![of.join(" ")] };
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    let names =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let below: Vec<String> = names
        .filter(|name| *name != "help")
        .flat_map(|name| verbs(&[of, &[name.to_owned()]].concat()))
        .collect();
    // `eke` and `eke record` also work without further words.
    let own = (of.is_empty() || of == ["record"]).then(|| of.join(" "));
    own.into_iter().chain(below).collect()
}

#[test]
fn every_verb_is_in_the_table() {
    let known: BTreeSet<String> = TABLE.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    let shown: BTreeSet<String> = verbs(&[]).into_iter().collect();
    assert_eq!(known, shown);
}
