//! `eke record`, `eke record mark` and `eke report`: the built program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use common::{CHROMIUM, Public, Ran, chromium, command, eke, is_root};
use eke_testkit::real::skip;
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};

const EKE: &str = env!("CARGO_BIN_EXE_eke");

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Runs a script of sh under a recording of this name.
    fn record(&self, name: &str, script: &str) -> Ran {
        eke(&["record", "--every", "20ms", "--output", &self.text(name), "--", "sh", "-c", script])
    }

    /// A running recording with its first samples written.
    fn going_on(&self, name: &str, what: &[&str]) -> Child {
        let output = self.text(name);
        let args = [&["record", "--every", "20ms", "--output", &output][..], what].concat();
        let mut recorder = command(&args)
            .env("XDG_RUNTIME_DIR", self.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("samples", || {
            assert!(recorder.try_wait().unwrap().is_none(), "the recorder ended");
            let report = eke(&["report", &output, "--csv", "/dev/null", "--force", "--json"]);
            report.stdout.contains("complete")
        });
        recorder
    }

    fn report(&self, name: &str) -> serde_json::Value {
        let html = format!("{name}.html");
        eke(&["report", &self.text(name), "--html", &self.text(&html), "--force", "--json"]).json()
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn a_command_is_recorded_with_its_steps_and_its_status_is_passed_on() {
    let place = Place::new();
    let script = format!(
        "{EKE} record mark 'open <A> & \"B\"' && sleep 0.6 && {EKE} record mark last && sleep 0.3 && echo out && exit 7"
    );
    let ran = place.record("a.sqlite", &script);
    assert_eq!(ran.status, Some(7), "{}", ran.shown());
    assert!(ran.stdout.ends_with("out\n"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("ended with 7")
            && ran.stderr.contains("2 named steps")
            && ran.stderr.contains("% of one CPU"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::metadata(place.path("a.sqlite")).unwrap().mode() & 0o777, 0o600);
    let report = place.report("a.sqlite");
    assert_eq!(report["complete"], true);
    assert_eq!(report["steps"][1]["name"], "open <A> & \"B\"");
    assert!(report["samples"].as_u64().unwrap() >= 3, "{report}");
    assert!(report["steps"][1]["end"]["tree_rss"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["notes"]["end"], "ended with 7");
    let html = std::fs::read_to_string(place.path("a.sqlite.html")).unwrap();
    assert!(html.contains("open &lt;A&gt; &amp; &quot;B&quot;") && !html.contains("open <A>"));
}

#[test]
fn the_json_document_is_alone_on_standard_output() {
    let place = Place::new();
    let output = place.text("a.sqlite");
    let ran = eke(&["record", "--json", "--output", &output, "--", "sh", "-c", "echo out; kill -9 $$"]);
    assert_eq!(ran.status, Some(137), "{}", ran.shown());
    let ended = ran.json();
    assert_eq!(
        (ended["exit_status"].as_u64(), ended["end"].as_str()),
        (Some(137), Some("ended by signal 9"))
    );
    assert!(ran.stderr.contains("out"));
    for key in eke(&["schema", "record"]).json()["required"].as_array().unwrap() {
        assert!(ended.get(key.as_str().unwrap()).is_some(), "{key}");
    }
}

#[test]
fn report_writes_csv_and_svg_and_overwrites_nothing_unasked() {
    let place = Place::new();
    place.record("a.sqlite", "sleep 0.2");
    let (file, csv, svg) = (place.text("a.sqlite"), place.text("a.csv"), place.text("plots"));
    let args = ["report", &file, "--csv", &csv, "--svg", &svg];
    let ran = eke(&args);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(ran.stdout.contains("(start)") && !place.path("a.html").exists(), "{}", ran.stdout);
    let text = std::fs::read_to_string(&csv).unwrap();
    assert!(text.starts_with("time_ms,free_bytes,") && text.lines().count() > 3, "{text}");
    let first = std::fs::read_to_string(place.path("plots/1-free-memory.svg")).unwrap();
    assert!(first.starts_with("<svg xmlns=") && first.contains("prefers-color-scheme:dark"));
    let again = eke(&args);
    assert_eq!(again.status, Some(2));
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    assert_eq!(eke(&["report", &file]).status, Some(0));
    assert!(place.path("a.html").exists());
    let taken = place.record("a.sqlite", "true");
    assert_eq!((taken.status, taken.stderr.contains("--force")), (Some(2), true), "{}", taken.shown());
}

#[test]
fn what_cannot_be_recorded_is_said_and_leaves_no_file() {
    let place = Place::new();
    let output = place.text("a.sqlite");
    for (what, status, part) in [
        (&["--", "no-such-command-anywhere"][..], 127, "there is no command \"no-such-command-anywhere\""),
        (&["--", "/dev/null"], 126, "cannot start \"/dev/null\": Permission denied"),
        (&["--pid", "4194999"], 1, "there is no process 4194999"),
        (&["--every", "1us", "--", "true"], 2, "is not a time from 10 ms"),
        (&["--pid", "1", "--", "true"], 2, "cannot be used with"),
        (&[], 2, "required"),
    ] {
        let ran = eke(&[&["record", "--output", &output][..], what].concat());
        assert_eq!(ran.status, Some(status), "{}", ran.shown());
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
        assert!(!place.path("a.sqlite").exists(), "{what:?} left a file");
    }
    let nowhere = eke(&["record", "--output", "/nonexistent/a.sqlite", "--", "true"]);
    assert!(
        nowhere.stderr.contains("cannot create /nonexistent/a.sqlite: No such file"),
        "{}",
        nowhere.stderr
    );
}

#[test]
fn a_step_without_its_recording_is_refused() {
    let ran: Ran = command(&["record", "mark", "x"])
        .env("EKE_RECORDING", "/nonexistent/socket")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("the recording at /nonexistent/socket has ended"), "{}", ran.stderr);
    if !is_root() {
        return skip("mark_of_nobody", "only root can become nobody");
    }
    let public = Public::with_others();
    let ran = public.as_nobody(&["record", "mark", "x"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("no recording of this user is running"), "{}", ran.stderr);
}

#[test]
fn what_is_no_recording_is_told_apart() {
    let place = Place::new();
    place.record("a.sqlite", "sleep 1.2");
    let whole = std::fs::read(place.path("a.sqlite")).unwrap();
    assert!(whole.len() > 8192);
    let mut other = whole.clone();
    other[68..72].fill(0);
    let mut newer = whole.clone();
    newer[63] = 99;
    for (name, bytes, part) in [
        ("text", &b"not a database"[..], "it is not an SQLite file"),
        ("nothing", b"", "has no samples"),
        ("short", &whole[..60], "it is not an SQLite file"),
        ("half", &whole[..4096], "is damaged or cut short"),
        ("other", &other, "of another program"),
        ("newer", &newer, "use a newer eke"),
    ] {
        std::io::Write::write_all(
            &mut std::fs::OpenOptions::new().write(true).create_new(true).open(place.path(name)).unwrap(),
            bytes,
        )
        .unwrap();
        let ran = eke(&["report", &place.text(name)]);
        assert_eq!(ran.status, Some(1), "{name}: {}", ran.shown());
        assert!(ran.stderr.contains(part), "{name}: {}", ran.stderr);
        assert!(!place.path(&format!("{name}.html")).exists());
    }
    let gone = eke(&["report", "/nonexistent/a.sqlite"]);
    assert!(gone.stderr.contains("cannot read /nonexistent/a.sqlite: No such file"), "{}", gone.stderr);
    let directory = eke(&["report", place.0.path().to_str().unwrap()]);
    assert!(directory.stderr.contains("not a regular file"), "{}", directory.stderr);
}

#[test]
fn a_killed_recorder_leaves_what_it_wrote() {
    let place = Place::new();
    let mut recorder = place.going_on("a.sqlite", &["--system"]);
    signal(&recorder, Signal::KILL);
    recorder.wait().unwrap();
    let report = place.report("a.sqlite");
    assert_eq!(report["complete"], false);
    assert!(report["samples"].as_u64().unwrap() > 0);
    let page = std::fs::read_to_string(place.path("a.sqlite.html")).unwrap();
    assert!(page.contains("was killed or is still running"));
}

#[test]
fn the_interrupt_ends_a_recording_cleanly() {
    let place = Place::new();
    let mut recorder = place.going_on("a.sqlite", &["--system"]);
    signal(&recorder, Signal::INT);
    assert_eq!(eke_testkit::program::end_of(&mut recorder).code(), Some(0));
    assert_eq!(place.report("a.sqlite")["complete"], true);
    // a command that the terminal did not signal is signalled by the recorder
    let mut recorder = place.going_on("b.sqlite", &["--", "sleep", "600"]);
    signal(&recorder, Signal::TERM);
    assert_eq!(eke_testkit::program::end_of(&mut recorder).code(), Some(143));
    assert_eq!(place.report("b.sqlite")["notes"]["end"], "ended by signal 15");
}

#[test]
fn a_running_process_is_recorded_until_it_ends() {
    let place = Place::new();
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut recorder = place.going_on("a.sqlite", &["--pid", &sleeper.id().to_string()]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(eke_testkit::program::end_of(&mut recorder).code(), Some(0));
    let report = place.report("a.sqlite");
    assert_eq!(report["notes"]["subject"], format!("process {} (sleep)", sleeper.id()));
    assert!(report["steps"][0]["start"]["tree_rss"].as_u64().unwrap() > 0);
    let timed = eke(&["record", "--system", "--for", "200ms", "--output", &place.text("b.sqlite")]);
    assert_eq!(timed.status, Some(0), "{}", timed.shown());
}

/// A day has 86,400 seconds.
#[test]
fn what_may_be_recorded_for_days_has_a_row_each_second() {
    let place = Place::new();
    let own = std::process::id().to_string();
    for (name, what, every) in [
        ("a.sqlite", &["--system", "--for", "100ms"][..], "1000"),
        ("b.sqlite", &["--pid", &own, "--for", "100ms"], "1000"),
        ("c.sqlite", &["--system", "--for", "100ms", "--every", "1h"], "3600000"),
        ("d.sqlite", &["--", "true"], "100"),
    ] {
        let ran = eke(&[&["record", "--output", &place.text(name)], what].concat());
        assert_eq!(ran.status, Some(0), "{}", ran.shown());
        assert_eq!(place.report(name)["notes"]["every_ms"], every, "{what:?}");
    }
}

/// Under sudo root often has no /run/user/0.
#[test]
fn a_directory_that_somebody_else_made_first_stops_no_recording() {
    let why = (!common::is_root()).then(|| "not root".to_owned());
    if let Some(why) = why.or_else(|| eke_testkit::real::no_program(&["unshare"])) {
        return skip("a_directory_that_somebody_else_made_first_stops_no_recording", &why);
    }
    common::build_others();
    let record = |run: &str| {
        let script = format!(
            "mount -t tmpfs {run} x /run; mount -t tmpfs -o mode=1777 x /tmp; mkdir -m 777 /tmp/eke-0; cd /tmp; \
             $0 record -o a -- sh -c 'echo \"socket $EKE_RECORDING\"' && ls a"
        );
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", &script, env!("CARGO_BIN_EXE_eke")]);
        common::ran(command.env_remove("XDG_RUNTIME_DIR").env("EKE_RECORDING", "/of/another"))
    };
    let own = record("");
    assert!(
        own.status == Some(0) && own.stdout.starts_with("socket /run/eke-record/record-"),
        "{}",
        own.shown()
    );
    let none = record("-o ro");
    assert!(none.status == Some(0) && none.stdout == "socket \na\n", "{}", none.shown());
    assert!(none.stderr.contains("steps cannot be named: cannot listen in /tmp/eke-0"), "{}", none.shown());
}

#[test]
fn the_verbs_have_examples() {
    for verb in [&["record"][..], &["record", "mark"], &["report"]] {
        let help = eke(&[verb, &["--help"]].concat());
        assert!(help.stdout.contains("Example:"), "{}", help.shown());
    }
}

#[test]
fn the_page_works_in_a_real_browser() {
    if !Path::new(CHROMIUM).exists() {
        return skip("the_page_works_in_a_real_browser", "no /usr/bin/chromium on this machine");
    }
    let place = Place::new();
    let script =
        format!("{EKE} record mark 'one </script>' && sleep 0.5 && {EKE} record mark two && sleep 0.5");
    place.record("a.sqlite", &script);
    let samples = place.report("a.sqlite")["samples"].as_u64().unwrap();
    // the script must have run to the end: it shows the value under the pointer
    let page = std::fs::read_to_string(place.path("a.sqlite.html")).unwrap();
    let probe = "<script>const s=document.querySelector('svg.wide'),b=s.getBoundingClientRect();\
                 s.dispatchEvent(new PointerEvent('pointermove',{clientX:b.right-20,clientY:b.top+50}));</script></body>";
    let probed = place.path("probed.html");
    eke_testkit::tree::put(place.0.path(), "probed.html", &page.replace("</body>", probe));
    let ran = chromium(&probed, &["--dump-dom"]);
    assert!(!ran.stderr.contains("CONSOLE"), "{}", ran.stderr);
    let counts =
        ran.stdout.split("data-points=\"").skip(1).filter_map(|t| t.split('"').next()?.parse::<u64>().ok());
    let counts: Vec<u64> = counts.collect();
    assert_eq!(counts[0], samples, "free memory has a point for each sample");
    assert!(counts.len() >= 10 && counts.iter().all(|n| *n > 0), "{counts:?}");
    assert!(
        ran.stdout.contains("s: available ") && ran.stdout.contains("<title>one &lt;/script&gt;</title>")
    );
}
