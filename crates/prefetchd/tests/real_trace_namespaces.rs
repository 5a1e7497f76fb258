//! Tracing by a process with namespaces of its own, as the shipped service has them, and containers.
#![expect(clippy::unwrap_used, reason = "test code")]

mod tracing;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use eke_linux::Root;
use eke_prefetchd::trace::{News, Tracer, Way};
use eke_testkit::real::{SameDisks, lacking, no_program, skip};
use tracing::{Disk, Session, touched};

/// The tracer's process, by `unshare`; killed when dropped.
struct Apart {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Apart {
    /// Runs this function of this file, which must be a test.
    fn start(unshare: &[&str], function: &str, envs: &[(&str, &str)]) -> Self {
        let mut child = Command::new("unshare")
            .args(unshare)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", function, "--nocapture", "--test-threads=1"])
            .envs(envs.iter().copied())
            .env("EKE_APART", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// What it says after this word.
    fn says(&mut self, word: &str) -> String {
        let mut said = self.lines.by_ref().map_while(Result::ok);
        said.find_map(|line| Some(line.split_once(word)?.1.trim().to_owned())).unwrap_or_default()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_apart() -> bool {
    std::env::var_os("EKE_APART").is_some()
}

fn say(line: &str) {
    // a line of its own, whatever the harness has begun
    print!("\n{line}\n");
    std::io::stdout().flush().unwrap();
}

/// Not a test: the process that `tracing::mapper` starts.
#[test]
fn maps_when_told_to() {
    tracing::map_when_told_to();
}

/// Not a test: the tracer with mounts and a network of its own.
#[test]
fn learns_apart() {
    let (Some(place), true) = (std::env::var_os("EKE_PLACE"), is_apart()) else { return };
    let way = if std::env::var("EKE_WAY").unwrap() == Way::Bpf.name() { Way::Bpf } else { Way::Scan };
    let place = std::path::PathBuf::from(place);
    let (start, data) = (place.join("start"), place.join("data"));
    let mut session = Session::at(way, place);
    say("apart: ready");
    let id = session.until("the exec", |news| match news {
        News::Exec(exec, id) if exec.program.as_ref().is_some_and(|p| p.exe == start) => *id,
        _ => None,
    });
    say("apart: exec");
    let launch = session.until("the launch", |news| match news {
        News::Launch(finished) if finished.id == id => Some(finished.launch.clone()),
        _ => None,
    });
    let pages = touched(&launch, &data).map_or(0, |data| data.pages.count());
    say(&format!("apart: learned {pages}"));
}

/// A program with the host's mounts is learned by a tracer that has mounts and a network of its own, as below `eke.service`.
fn a_service_learns(test: &str, way: Way) {
    let why = tracing::lacking()
        .or_else(|| no_program(&["unshare"]))
        .or_else(|| Tracer::start_by(&Root::host(), way).err().map(|why| why.to_string()));
    if let Some(why) = why {
        return skip(test, &why);
    }
    let _machine = SameDisks::start();
    let disk = Disk::new();
    let place = disk.place();
    let envs = [("EKE_PLACE", place.to_str().unwrap()), ("EKE_WAY", way.name())];
    let mut tracer = Apart::start(&["--mount", "--net", "--propagation", "slave"], "learns_apart", &envs);
    tracer.says("apart: ready");
    let mut child = tracing::shell(&place, &tracing::mapper(&disk, "data", "3,200", 4000));
    let mut go = child.stdin.take().unwrap();
    tracer.says("apart: exec");
    go.write_all(b"go\n").unwrap();
    let learned = tracer.says("apart: learned");
    drop(go);
    assert!(child.wait().unwrap().success());
    assert!(learned.parse::<u64>().is_ok_and(|pages| pages >= 2), "{learned:?}");
}

#[test]
fn a_service_learns_by_looks() {
    a_service_learns("a_service_learns_by_looks", Way::Scan);
}

#[test]
fn a_service_learns_by_bpf() {
    a_service_learns("a_service_learns_by_bpf", Way::Bpf);
}

/// Not a test: which way a container's tracer takes.
#[test]
fn chooses_apart() {
    if is_apart() {
        say(&format!("apart: chose {}", Tracer::start(&Root::host()).source()));
    }
}

/// The kernel tells BPF programs the host's process numbers, and of process events nothing: neither is taken, and it is said why.
#[test]
fn in_a_container_what_is_deaf_is_not_taken() {
    let why = lacking(&["/proc/self/ns/pid"]).or_else(|| no_program(&["unshare"]));
    if let Some(why) = why {
        return skip("in_a_container_what_is_deaf_is_not_taken", &why);
    }
    let mut tracer = Apart::start(&["--pid", "--fork", "--mount-proc"], "chooses_apart", &[]);
    let chose = tracer.says("apart: chose");
    assert!(chose.starts_with("looks at /proc; not BPF: "), "{chose}");
}
