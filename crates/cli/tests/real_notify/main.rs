//! `eke notify` with a real D-Bus session: events of a stub agent reach a stub notification server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use eke_model::snapshot::{Event, Program, Response};
use eke_testkit::real::skip;
use eke_testkit::wait::{BOUND, wait_for};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_notify/server.py");
/// Debian's: other interpreters lack its packages.
const PYTHON: &str = "/usr/bin/python3";

fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Drop ends the session: dbus-run-session ends with its program.
struct Session {
    child: Child,
    pid: i32,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.pid.to_string()).status();
        let ended = || matches!(self.child.try_wait(), Ok(Some(_)));
        if !std::thread::panicking() {
            wait_for("the session to end", ended);
        }
        eke_testkit::program::kill(&mut self.child);
    }
}

fn session(place: &Path, out: &Path) -> Session {
    let script = r#""$PYTHON" "$SERVER" "$OUT" & server=$!
        n=0; while [ ! -e "$OUT" ] && [ $n -lt 1200 ]; do sleep 0.1; n=$((n + 1)); done
        "$EKE" --root "$PLACE" notify >"$PLACE/said" 2>&1 & echo $! >"$PLACE/pid.new"
        mv "$PLACE/pid.new" "$PLACE/pid"; wait $!; kill $server"#;
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", script]).stdin(Stdio::null());
    command.envs([("PYTHON", PYTHON), ("SERVER", SERVER), ("EKE", env!("CARGO_BIN_EXE_eke"))]);
    command.envs([("OUT", out), ("PLACE", place), ("XDG_STATE_HOME", &place.join("state"))]);
    let child = command.spawn().unwrap();
    let pid = wait_for("eke notify to be started", || {
        std::fs::read_to_string(place.join("pid")).ok().map(|pid| pid.trim().parse().unwrap())
    });
    Session { child, pid }
}

#[test]
fn an_important_event_appears_on_the_desktop_once_and_is_no_markup() {
    let name = "an_important_event_appears_on_the_desktop";
    if !works("dbus-run-session", &["--", "true"]) {
        return skip(name, "dbus-run-session is missing");
    }
    if !works(PYTHON, &["-c", "import dbus, dbus.mainloop.glib; from gi.repository import GLib"]) {
        return skip(name, "python3 has neither dbus nor gi for the stub server (python3-dbus, python3-gi)");
    }
    if !works("busctl", &["--version"]) && !works("notify-send", &["--version"]) {
        return skip(name, "neither busctl nor notify-send is installed");
    }
    let place = tempfile::tempdir().unwrap();
    let (root, out) = (place.path(), place.path().join("out"));
    std::fs::create_dir_all(root.join("run/eke")).unwrap();
    std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o755)).unwrap();
    let listener = UnixListener::bind(root.join("run/eke/agent.sock")).unwrap();
    let session = session(root, &out);
    listener.set_nonblocking(true).unwrap();
    let (mut client, _) = wait_for("eke notify to connect", || listener.accept());
    client.set_nonblocking(false).unwrap();
    client.set_read_timeout(Some(BOUND)).unwrap();
    let mut request = String::new();
    BufReader::new(client.try_clone().unwrap()).read_line(&mut request).unwrap();
    assert_eq!(request, "{\"ask\":\"watch\"}\n");
    let evil = "--help <a href=\"x\">eke</a> & \u{1b}]0;t\u{7}\nstopped";
    let full = event(8, "No further zram device: full.");
    let answers = [Response::Done, event(7, evil), event(7, evil), full, ended(9)];
    for answer in answers {
        client.write_all((serde_json::to_string(&answer).unwrap() + "\n").as_bytes()).unwrap();
    }
    let shown = wait_for("three notifications", || {
        let text = std::fs::read_to_string(&out).ok()?;
        (text.lines().count() >= 3 && text.ends_with('\n')).then_some(text)
    });
    let shown: Vec<serde_json::Value> =
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert_eq!((&shown[0]["app"], &shown[0]["title"]), (&"eke".into(), &"eke".into()));
    let body = "--help &lt;a href=\"x\"&gt;eke&lt;/a&gt; &amp; \\u001b]0;t\\u0007\\u000astopped";
    assert_eq!(shown[0]["body"], body);
    assert_eq!(shown[2]["body"], "\"leak &amp; co\": Ended: process 20 of user 1000.");
    wait_for("the newest event to be remembered", || {
        std::fs::read_to_string(root.join("state/eke/notified")).is_ok_and(|text| text == "9\n")
    });
    drop(session);
    assert_eq!(std::fs::read_to_string(&out).unwrap().lines().count(), 3);
}

fn event(unix_s: u64, text: &str) -> Response {
    Response::Event(Event { unix_s, text: text.into(), important: true, ..Event::default() })
}

/// The guard ended a program of this user, to whom the agent names it.
fn ended(unix_s: u64) -> Response {
    Response::Event(Event {
        unix_s,
        text: "Ended: process 20 of user 1000.".into(),
        important: true,
        program: Some(Program { uid: 1000, name: Some("leak & co".into()) }),
    })
}
