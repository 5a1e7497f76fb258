//! Access control: rebinding names, tokens, headers; the history's file; the cost to the agent.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::common::{Public, command, eke, is_root};
use crate::environment::{Environment, get, port_of, serving};
use eke_testkit::real::skip;
use eke_testkit::tree;
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn on_loopback_only_this_machines_names_are_answered() {
    let environment = Environment::new();
    let (_dash, address) = environment.dash("127.0.0.1:0");
    let to = port_of(&address);
    for path in ["/", "/now", "/app.js", "/nothing"] {
        let refused = get(to, path, &["Host: evil.example"]);
        assert_eq!(refused.status, 403, "{path}");
        assert!(!refused.body.contains("eke</title>"), "{}", refused.body);
    }
    let page = get(to, "/", &["Host: localhost:9999"]);
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header} lacks in {}", page.head);
    }
    assert!(!page.head.contains("access-control"), "{}", page.head);
    wait_for("a view", || !get(to, "/now", &["Host: localhost"]).body.contains("\"view\":null"));
    let now = get(to, "/now?span=hour", &["Host: localhost"]);
    assert!(
        now.head.contains("content-type: application/json") && now.body.contains("\"classroom\""),
        "{}",
        now.body
    );
    assert_eq!(get(to, "/nothing", &["Host: localhost"]).status, 404);
}

#[test]
fn elsewhere_a_token_is_needed() {
    let environment = Environment::new();
    let (_dash, address) = environment.dash("0.0.0.0:0");
    let to = port_of(&address);
    let token = address.split_once("?token=").unwrap().1;
    assert_eq!(token.len(), 32);
    assert!(address.starts_with(&format!("http://classroom:{}/", to.port())), "{address}");
    for path in ["/", "/now", "/app.js", "/?token=", "/?token=00000000000000000000000000000000"] {
        let refused = get(to, path, &["Host: classroom"]);
        assert_eq!(refused.status, 401, "{path}: {}", refused.body);
        assert!(!refused.body.contains(token) && !refused.head.contains(token));
    }
    let admitted = get(to, &format!("/?token={token}"), &["Host: classroom"]);
    assert_eq!(admitted.status, 303);
    assert!(admitted.head.contains("location: /\r\n"), "{}", admitted.head);
    let cookie = admitted.head.split("set-cookie: ").nth(1).unwrap().split("\r\n").next().unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=lax"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(get(to, "/", &["Host: classroom", &cookie]).status, 200);
    assert_eq!(get(to, "/now", &["Host: classroom", &cookie]).status, 200);
}

#[test]
fn a_history_that_is_none_is_set_aside_and_what_was_recorded_is_there_again() {
    let environment = Environment::new();
    tree::put(environment.place.path(), "history.db", "my thesis");
    let file = environment.path("history.db");
    let args = ["dash", "--listen", "127.0.0.1:0", "--history", file.to_str().unwrap()];
    let (dash, address) = environment.serve(&args);
    let points = |address: &str| {
        let body = get(port_of(address), "/now?span=hour", &["Host: localhost"]).body;
        let now: serde_json::Value = serde_json::from_str(&body).unwrap();
        (now["points"]["at"].as_array().unwrap().len(), now["view"]["notes"].to_string())
    };
    wait_for("a point of the hour", || points(&address).0 > 0);
    let (_, notes) = points(&address);
    assert!(notes.contains("not an SQLite file") && notes.contains("history.db.broken-1"), "{notes}");
    assert_eq!(std::fs::read_to_string(environment.path("history.db.broken-1")).unwrap(), "my thesis");
    let mut second = command(&[&["--root", environment.root()], &args[..]].concat());
    let taken = eke_testkit::program::output(&mut second);
    assert_eq!(taken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&taken.stderr).contains("is written by another eke dash"));
    kill_process(Pid::from_child(&dash.0), Signal::TERM).unwrap();
    let mut dash = dash;
    assert_eq!(eke_testkit::program::end_of(&mut dash.0).code(), Some(0));
    let (_dash, address) = environment.serve(&args);
    wait_for("the hour is there again", || points(&address).0 > 0 && points(&address).1 != "null");
    assert_eq!(points(&address).1, "[]");
}

#[test]
fn it_needs_no_root_and_says_what_only_root_sees() {
    if !is_root() {
        return skip("it_needs_no_root_and_says_what_only_root_sees", "only root can become nobody");
    }
    let public = Public::with_others();
    let metrics = public.as_nobody(&["metrics"]);
    assert_eq!(metrics.status, Some(0), "{}", metrics.shown());
    assert!(
        metrics.stdout.ends_with("# EOF\n") && metrics.stdout.contains("\neke_ram_bytes "),
        "{}",
        metrics.stdout
    );

    let environment = Environment::new();
    let agent = environment.agent();
    std::fs::set_permissions(environment.machine.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut dash = Command::new(public.path());
    dash.args(["--root", environment.root(), "dash", "--listen", "127.0.0.1:0"])
        .current_dir("/")
        .uid(65534)
        .gid(65534);
    dash.env_remove("XDG_STATE_HOME").env("HOME", "/nonexistent");
    let (_dash, address) = serving(dash);
    let now = || get(port_of(&address), "/now", &["Host: localhost"]).body;
    wait_for("a view", || !now().contains("\"view\":null"));
    let now: serde_json::Value = serde_json::from_str(&now()).unwrap();
    let view = &now["view"];
    assert_eq!(view["snapshot"]["agent"]["pid"], agent.0.id());
    assert_eq!(view["applied"]["plans"][0]["steps"][0]["what"], "set vm.swappiness to 180");
    assert!(view["journal"]["hidden"].as_str().unwrap().contains("Only root can read"), "{view}");
    assert!(view["notes"][0].as_str().unwrap().contains("in memory only"), "{view}");
}

#[test]
fn metrics_come_as_they_are_asked_for() {
    let environment = Environment::new();
    let _agent = environment.agent();
    let (_metrics, address) = environment.serve(&["metrics", "--listen", "127.0.0.1:0"]);
    let to = port_of(&address);
    let open =
        get(to, "/metrics", &["Host: localhost", "Accept: application/openmetrics-text;version=1.0.0"]);
    assert!(open.head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{}", open.head);
    assert!(
        open.body.ends_with("# EOF\n") && open.body.contains("\n# TYPE eke_oom_kills counter\n"),
        "{}",
        open.body
    );
    let old = get(to, "/metrics", &["Host: localhost"]);
    assert!(old.head.contains("content-type: text/plain; version=0.0.4"), "{}", old.head);
    assert!(
        old.body.contains("\n# TYPE eke_oom_kills_total counter\n") && !old.body.contains("# EOF"),
        "{}",
        old.body
    );
    assert_eq!(get(to, "/metrics", &["Host: evil.example"]).status, 403);
}

#[test]
fn what_cannot_be_is_said() {
    let environment = Environment::new();
    let (_dash, address) = environment.dash("127.0.0.1:0");
    let taken = eke(&["dash", "--listen", &port_of(&address).to_string()]);
    assert_eq!(taken.status, Some(1), "{}", taken.shown());
    assert!(
        taken.stderr.contains("cannot listen on 127.0.0.1:") && taken.stderr.contains("--listen"),
        "{}",
        taken.stderr
    );
    assert_eq!(eke(&["dash", "--listen", "localhost"]).status, Some(2));
    assert_eq!(eke(&["metrics", "--json"]).status, Some(2));
    for verb in ["dash", "metrics"] {
        assert!(eke(&[verb, "--help"]).stdout.contains("Example:"), "{verb}");
    }
}
