//! A real mounted cache in `eke metrics` and `eke dash`: numbers for its user, names only in the metrics.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

#[path = "real_cache/environment.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod environment;
#[path = "dash/environment.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod served;

use std::path::Path;
use std::process::Command;

use common::build_others;
use eke_apply::session::Session;
use eke_apply::state;
use eke_model::applied::Applied;
use eke_model::step::{Plan, Reason, Step};
use eke_testkit::real::{lock_machine, skip};
use eke_testkit::wait::wait_for;
use environment::{Environment, no_fuse};
use served::{get, port_of, serving};

#[test]
fn a_mounted_cache_is_counted_and_named_for_its_user_alone() {
    if let Some(why) = no_fuse() {
        return skip("a_mounted_cache_is_counted_and_named_for_its_user_alone", &why);
    }
    let _machine = lock_machine();
    let environment = Environment::real(false);
    build_others();
    // Copied by another process: see `common::Public`.
    let dash = Path::new(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-dash");
    assert!(Command::new("cp").arg(dash).arg(environment.path("bin")).status().unwrap().success());
    let data = environment.text("data");
    let mounted = environment.cache(&["mount", &data, "--memory", "64M"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    assert_eq!(environment.read("data/file").len(), 900_000);
    let eke = |args: &[&str]| {
        let mut command = environment.program();
        command.arg(environment.path("bin/eke")).args(args);
        command
    };
    let sample = |name: &str, labels: &str| -> Option<f64> {
        let text = String::from_utf8(eke(&["metrics"]).output().unwrap().stdout).unwrap();
        let start = format!("{name}{{place=\"{data}\"{labels}}} ");
        text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
    };
    assert_eq!(sample("eke_cache_serving", ""), Some(1.0));
    let read = |from: &str| sample("eke_cache_read_bytes_total", &format!(",from=\"{from}\"")).unwrap();
    wait_for("what was read to be counted", || read("store") + read("backing") >= 900_000.0);
    assert!(sample("eke_cache_memory_limit_bytes", "").unwrap() <= f64::from(64 << 20));

    let history = environment.text("history.db");
    let (_dash, address) = serving(eke(&["dash", "--listen", "127.0.0.1:0", "--history", &history]));
    let now = || get(port_of(&address), "/now", &["Host: localhost"]).body;
    wait_for("a view", || now().contains("\"mounts\":"));
    let view: serde_json::Value = serde_json::from_str(&now()).unwrap();
    let caches = &view["view"]["caches"];
    assert!(caches["mounts"].as_u64() >= Some(1) && caches["serving"].as_u64() >= Some(1), "{caches}");
    assert!(
        caches["from_store"].as_u64().unwrap() + caches["from_backing"].as_u64().unwrap() >= 900_000,
        "{caches}"
    );
    assert!(!now().contains(&data), "any user of this machine can ask the page");
    let umount = environment.cache(&["umount", &data]);
    assert_eq!(umount.status, Some(0), "{}", umount.shown());
    assert_eq!(sample("eke_cache_serving", ""), None);
}

/// Root can read the journal and the plan, and every user can ask root's page.
#[test]
fn roots_page_has_no_names_of_groups() {
    build_others();
    let environment = served::Environment::new();
    let group = "user.slice/anna.scope";
    environment.machine.put(&format!("sys/fs/cgroup/memory/{group}/memory.swappiness"), "60\n");
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    let reason = Reason::new("anna's group is idle");
    plan.push(Step::set_at("memory.swappiness", group, 100), reason);
    Session::open(&environment.machine.root(), "swap").unwrap().apply_plan(&plan).unwrap();
    plan.push(Step::SwapOn { path: "/home/anna/swap".into(), priority: None }, Reason::new("anna's file"));
    plan.advice.push(Reason::new(format!("{group} has a memory limit")).with("limited_groups", 1.0));
    plan.advice.push(Reason::new("for all"));
    let applied = Applied { unix_s: 1, plans: vec![plan], ..Applied::default() };
    state::save(&environment.machine.root(), state::APPLIED, &applied).unwrap();
    at_its_limit(&environment, group);
    let (_dash, address) = environment.dash("127.0.0.1:0");
    let now = || get(port_of(&address), "/now", &["Host: localhost"]).body;
    wait_for("a view", || now().contains("\"journal\":"));
    let text = now();
    let view: serde_json::Value = serde_json::from_str(&text).unwrap();
    let journal = &view["view"]["journal"];
    assert_eq!(journal["changes"][0]["what"], "set vm.swappiness to 180", "{journal}");
    assert_eq!(journal["changes"].as_array().unwrap().len(), 1, "{journal}");
    assert!(journal["hidden"].as_str().unwrap().contains("1 in all"), "{journal}");
    let plan = &view["view"]["applied"]["plans"][0];
    assert_eq!((&plan["hidden"], &plan["advice"]), (&3.into(), &serde_json::json!(["for all"])), "{plan}");
    assert_eq!(view["view"]["snapshot"]["group_at_limit"], "user.slice");
    assert!(!text.contains("anna"), "any user of this machine can ask the page: {text}");
}

/// Its tasks wait for memory, and the machine has plenty.
fn at_its_limit(environment: &served::Environment, group: &str) {
    let waits = "some avg10=60.00 avg60=9.00 avg300=2.00 total=900\nfull avg10=30.00 avg60=4.00 avg300=1.00 total=500\n";
    environment.memory(700, 800);
    environment.machine.put("proc/pressure/memory", waits);
    environment.machine.put("sys/fs/cgroup/user.slice/memory.current", "999000\n");
    for (file, text) in [("max", "1000000\n"), ("current", "999000\n"), ("pressure", waits)] {
        environment.machine.put(&format!("sys/fs/cgroup/{group}/memory.{file}"), text);
    }
}
