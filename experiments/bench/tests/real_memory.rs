//! `eke bench` for real: small documents in a viewer, in a box, on this machine's own zram.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::clean::{Clean, disks_and_groups};
use common::pdf::{pdf, put, two_documents};
use common::{Ran, build_eke, command, machine, until_begun};
use eke_bench_desktop::desktop::viewers;
use eke_testkit::real::{lacking, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Page 1 to 50 and back needs one more.
const PAGES: u32 = 51;
/// Where trees of programs are kept, which other runs of these tests take from there.
const CACHE: &str = env!("CARGO_TARGET_TMPDIR");

/// Why there can be no experiment here.
fn lacks() -> Option<String> {
    let needs = ["/sys/class/zram-control", "/dev/fuse", "/sys/fs/cgroup", "/dev/loop-control"];
    lacking(&needs).or_else(|| no_program(&["Xvfb", "openbox", "mke2fs", viewers()[0].name]))
}

/// Everything that an experiment changes for a while: settings, swap, devices, mounts, directories, groups.
fn traces() -> String {
    format!("{}\n{}", machine(), disks_and_groups())
}

/// `eke bench paging` of the documents in `place`. `eke` is built before, so that no build of another test's slows the viewer down.
fn paging(place: &Path, args: &[&str]) -> Command {
    build_eke();
    let mut command = command(&["paging", "--viewer", viewers()[0].name, "--ballast", "8M", "--documents"]);
    command.arg(place).args(args).env("XDG_CACHE_HOME", CACHE);
    command
}

fn zram_is_on() -> bool {
    std::fs::read_to_string("/proc/swaps").unwrap().contains("/dev/zram")
}

/// An experiment with a compressed variant in force.
struct Begun {
    child: Child,
    processes: Vec<u32>,
}

impl Begun {
    fn start(place: &Path, args: &[&str]) -> Self {
        let mut command = paging(place, args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let viewer =
            |processes: &[u32]| processes.iter().any(|pid| comm(*pid).starts_with(viewers()[0].name));
        let (id, mut seen) = (child.id(), Vec::new());
        let is_begun = until_begun(&mut child, || {
            seen = below(id);
            zram_is_on() && viewer(&seen)
        });
        assert!(
            is_begun,
            "no compressed variant: {}",
            Ran::from(eke_testkit::program::output_of(child)).shown()
        );
        Self { child, processes: seen }
    }

    /// Sends the signal, and waits until it and all that it started are gone.
    fn end(self, signal: Signal) -> Ran {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let ran = eke_testkit::program::output_of(self.child).into();
        for pid in self.processes {
            let is_gone = || !Path::new(&format!("/proc/{pid}")).exists();
            wait_for(&format!("{} ({pid}) to end", comm(pid)), is_gone);
        }
        ran
    }
}

fn comm(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// Its children, and theirs.
fn below(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: String = children.collect();
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    children.flat_map(|child| [vec![child], below(child)].concat()).collect()
}

/// The samples of a metric, by variant.
fn samples(report: &Value, metric: &str, variant: &str) -> Vec<f64> {
    let rows = report["rows"].as_array().unwrap();
    let rows = rows.iter().filter(|row| row["metric"] == metric && row["variant"] == variant);
    let samples = rows.flat_map(|row| row["samples"].as_array().unwrap());
    samples.map(|sample| sample.as_f64().unwrap()).collect()
}

/// One run for both, because it takes most of a minute.
#[test]
fn an_experiment_has_every_page_of_every_variant_and_leaves_nothing_also_of_a_killed_one() {
    if let Some(why) = lacks() {
        return skip("an_experiment_has_every_page", &why);
    }
    let clean = Clean::start(traces);
    let (place, out) = (two_documents(PAGES), tempfile::tempdir().unwrap());
    Begun::start(place.path(), &["--variants", "eke", "--disk", "sd"]).end(Signal::KILL);
    assert!(zram_is_on() && traces() != clean.before, "a test that cannot fail");

    let (json, html) = (out.path().join("paging.json"), out.path().join("paging.html"));
    let files = ["--output", json.to_str().unwrap(), "--html", html.to_str().unwrap(), "--json"];
    let run = ["--repeats", "1", "--variants", "nothing, eke", "--disk", "sd"];
    let ran = eke_testkit::program::ran(&mut paging(place.path(), &[&run[..], &files].concat()));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    clean.is_as_before();

    let report = ran.json();
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(saved, report);
    for variant in ["nothing", "eke"] {
        let pages = samples(&report, "one page", variant);
        // Forth and back: A alone, then B and A with both open.
        assert_eq!(pages.len(), 3 * 2 * 49, "{variant}: {}", ran.shown());
        assert!(pages.iter().all(|seconds| *seconds > 0.0), "{pages:?}");
        assert_eq!(samples(&report, "pages 1 to 50 and back", variant).len(), 3);
        assert_eq!(samples(&report, "finished", variant), [1.0]);
        assert!(samples(&report, "read from the disk", variant)[0] > 1.0, "it is cold");
    }
    let notes = report["notes"].to_string();
    assert!(!notes.contains("stayed unlike") && notes.contains("a.pdf"), "{notes}");
    assert!(report["command"].as_str().unwrap().contains("--repeats 1"), "{}", report["command"]);

    let page = std::fs::read_to_string(&html).unwrap();
    let shown = page.split("data-value=\"").skip(1).filter_map(|t| t.split('"').next()?.parse::<f64>().ok());
    let shown: Vec<f64> = shown.collect();
    for total in samples(&report, "pages 1 to 50 and back", "eke") {
        assert!(shown.iter().any(|s| (s - total).abs() < 1e-9), "{total} is in no plot: {shown:?}");
    }
}

#[test]
fn ctrl_c_in_a_compressed_variant_leaves_nothing() {
    if let Some(why) = lacks() {
        return skip("ctrl_c_in_a_compressed_variant", &why);
    }
    let clean = Clean::start(traces);
    let (place, out) = (two_documents(PAGES), tempfile::tempdir().unwrap());
    let json = out.path().join("paging.json");
    let run = ["--variants", "eke", "--disk", "none", "--output", json.to_str().unwrap()];
    let ran = Begun::start(place.path(), &run).end(Signal::INT);
    assert_eq!(ran.status, Some(1), "{}", ran.shown());
    assert!(ran.stderr.ends_with("eke: interrupted; everything is as it was before\n"), "{}", ran.shown());
    assert!(ran.stdout.is_empty() && !json.exists(), "{}", ran.stdout);
    clean.is_as_before();
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    if let Some(why) = lacks() {
        return skip("what_cannot_be_is_said", &why);
    }
    let clean = Clean::start(traces);
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    for directory in ["empty", "broken", "short"] {
        std::fs::create_dir(at(directory)).unwrap();
    }
    put(at("text").as_ref(), b"text");
    put(at("broken/broken.pdf").as_ref(), b"%PDF-1.4\nnothing");
    put(at("short/short.pdf").as_ref(), &pdf(3, 7));
    let [nowhere, empty, text, broken, short] = ["nowhere", "empty", "text", "broken", "short"].map(at);
    let no_document = format!("no document below {broken} can be shown: broken.pdf ");
    for (args, status, message) in [
        (
            &["paging", "--viewer", "kpdf"][..],
            2,
            "there is no viewer \"kpdf\" in the table; there are: xpdf, mupdf",
        ),
        (
            &["paging", "--variants", "eke,x"],
            2,
            "there is no variant \"x\" in this experiment; there are: memory to spare, nothing, zram-tools",
        ),
        (&["capacity", "--variants", "memory to spare"], 2, "there is no variant \"memory to spare\""),
        (&["capacity", "--of", "tabs", "--variants", "x"], 2, "there is no variant \"x\""),
        (
            &["paging", "--documents", &nowhere],
            1,
            &format!("cannot read {nowhere}: No such file or directory"),
        ),
        (&["switch", "--documents", &text], 1, &format!("cannot read {text}: Not a directory")),
        (&["capacity", "--documents", &empty], 1, &format!("no PDF file (*.pdf, *.pdf.gz) is below {empty}")),
        (&["paging", "--documents", &broken], 1, &no_document),
        (
            &["paging", "--documents", &short],
            1,
            "none of 1 documents has 51 pages (the longest, short.pdf, has 3)",
        ),
    ] {
        let mut command = command(args);
        let ran = eke_testkit::program::ran(command.env("XDG_CACHE_HOME", at("cache")));
        assert_eq!(ran.status, Some(status), "{args:?}: {}", ran.shown());
        assert!(ran.stderr.contains(message) && ran.stdout.is_empty(), "{args:?}: {}", ran.shown());
        clean.is_as_before();
    }
    assert!(!Path::new(&at("cache")).exists(), "no tree of programs is made");
}
