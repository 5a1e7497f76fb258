//! Tracing from a process with its own namespaces, like the shipped service, and from a container.
#![expect(clippy::unwrap_used, reason = "test code")]

mod tracing;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use eke_linux::Root;
use eke_prefetchd::trace::{Observation, TraceMethod, Tracer};
use eke_testkit::real::{SameDisks, lacking, no_program, skip};
use tracing::{Disk, Session, touched};

/// The tracer's process, started with `unshare` and killed on drop.
struct Apart {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Apart {
    /// Runs this test function of this file.
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

    /// The rest of the first line with this word.
    fn line_after(&mut self, word: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find_map(|line| Some(line.split_once(word)?.1.trim().to_owned())).unwrap_or_default()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        eke_testkit::program::kill(&mut self.child);
    }
}

fn is_apart() -> bool {
    std::env::var_os("EKE_APART").is_some()
}

fn print_line(line: &str) {
    // on a line of its own, after any output of the harness
    print!("\n{line}\n");
    std::io::stdout().flush().unwrap();
}

/// Not a test: the process that `tracing::mapper` starts.
#[test]
fn maps_on_request() {
    tracing::map_on_request();
}

/// Not a test: the tracer with its own mounts and network.
#[test]
fn learns_apart() {
    let (Some(place), true) = (std::env::var_os("EKE_PLACE"), is_apart()) else { return };
    let name = std::env::var("EKE_METHOD").unwrap();
    let methods = [TraceMethod::Bpf, TraceMethod::ExecOpens, TraceMethod::Scan];
    let method = methods.into_iter().find(|method| method.name() == name).unwrap();
    let place = std::path::PathBuf::from(place);
    let (start, data) = (place.join("start"), place.join("data"));
    let mut session = Session::at(method, place);
    print_line("apart: ready");
    let (pid, id) = session.until("the exec", |observation| match observation {
        Observation::Exec(exec, id) if exec.program.as_ref().is_some_and(|p| p.exe == start) => {
            Some((exec.pid, (*id)?))
        }
        _ => None,
    });
    print_line("apart: exec");
    let launch = session.finished(pid, id);
    let pages = touched(&launch, &data).map_or(0, |data| data.pages.count());
    print_line(&format!("apart: learned {pages}"));
}

/// A tracer with its own mounts and network, as in `eke.service`, learns a program that has the host's mounts.
fn a_service_learns(test: &str, method: TraceMethod) {
    let why = tracing::lacking()
        .or_else(|| no_program(&["unshare"]))
        .or_else(|| Tracer::start_by(&Root::host(), method).err().map(|why| why.to_string()));
    if let Some(why) = why {
        return skip(test, &why);
    }
    let _machine = SameDisks::start();
    let disk = Disk::new();
    let place = disk.place();
    let envs = [("EKE_PLACE", place.to_str().unwrap()), ("EKE_METHOD", method.name())];
    let mut tracer = Apart::start(&["--mount", "--net", "--propagation", "slave"], "learns_apart", &envs);
    tracer.line_after("apart: ready");
    let mut child = tracing::shell(&place, &tracing::mapper(&disk, "data", "3,200", 4000));
    let mut go = child.stdin.take().unwrap();
    tracer.line_after("apart: exec");
    go.write_all(b"go\n").unwrap();
    let learned = tracer.line_after("apart: learned");
    drop(go);
    assert!(eke_testkit::program::end_of(&mut child).success());
    assert!(learned.parse::<u64>().is_ok_and(|pages| pages >= 2), "{learned:?}");
}

#[test]
fn a_service_learns_by_polling() {
    a_service_learns("a_service_learns_by_polling", TraceMethod::Scan);
}

#[test]
fn a_service_learns_by_fanotify() {
    a_service_learns("a_service_learns_by_fanotify", TraceMethod::ExecOpens);
}

#[test]
fn a_service_learns_by_bpf() {
    a_service_learns("a_service_learns_by_bpf", TraceMethod::Bpf);
}

/// Not a test: prints the method that a container's tracer selects.
#[test]
fn chooses_apart() {
    if is_apart() {
        print_line(&format!("apart: chose {}", Tracer::start(&Root::host()).source()));
    }
}

/// In a container, BPF programs get the host's process ids, and process events are not delivered: both methods are rejected with a reason. Fanotify
/// reports the container's own processes.
#[test]
fn in_a_container_methods_that_report_nothing_are_rejected() {
    let why = lacking(&["/proc/self/ns/pid"]).or_else(|| no_program(&["unshare"]));
    if let Some(why) = why {
        return skip("in_a_container_methods_that_report_nothing_are_rejected", &why);
    }
    let mut tracer = Apart::start(&["--pid", "--fork", "--mount-proc"], "chooses_apart", &[]);
    let chose = tracer.line_after("apart: chose");
    assert!(chose.starts_with("fanotify; not BPF: "), "{chose}");
}
