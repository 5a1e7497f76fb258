//! A real Prometheus and its tool, from the distribution's package.

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use eke_testkit::real::{no_program, skip};
use eke_testkit::tree;
use eke_testkit::wait::wait_for;
use serde_json::Value;

use crate::common::eke;
use crate::environment::{AVAILABLE, Environment, Process, get, port_of};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// A Prometheus of the test.
pub struct Prometheus {
    port: SocketAddr,
    _process: Process,
}

impl Prometheus {
    /// Scrapes this address each second.
    pub fn scraping(environment: &Environment, address: &str) -> Self {
        let target = port_of(address);
        tree::put(
            environment.place.path(),
            "prometheus.yml",
            &format!(
                "scrape_configs:\n  - job_name: eke\n    scrape_interval: 1s\n    static_configs:\n      - targets: ['{target}']\n"
            ),
        );
        // A free port: Prometheus does not choose one.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut prometheus = Command::new("prometheus");
        prometheus.arg(format!("--config.file={}", environment.path("prometheus.yml").display()));
        prometheus.arg(format!("--storage.tsdb.path={}", environment.path("data").display()));
        prometheus.arg(format!("--web.listen-address={port}")).stdin(Stdio::null()).stderr(Stdio::null());
        let process = Process(prometheus.spawn().unwrap());
        wait_for("Prometheus listens", || std::net::TcpStream::connect(port).is_ok());
        Self { port, _process: process }
    }

    /// The first value of a query without spaces.
    pub fn query(&self, query: &str) -> Option<f64> {
        let answer = get(self.port, &format!("/api/v1/query?query={query}"), &["Host: localhost"]);
        let body = &answer.body[answer.body.find('{')?..=answer.body.rfind('}')?];
        let body: Value = serde_json::from_str(body).ok()?;
        body["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

#[test]
fn promtool_finds_nothing_to_complain_about() {
    if let Some(why) = no_program(&["promtool"]) {
        return skip("promtool_finds_nothing_to_complain_about", &why);
    }
    let environment = Environment::new();
    let _agent = environment.agent();
    let metrics = eke(&["--root", environment.root(), "metrics", "--format", "prometheus"]);
    tree::put(environment.place.path(), "metrics.txt", &metrics.stdout);
    let input = std::fs::File::open(environment.path("metrics.txt")).unwrap();
    let checked = Command::new("promtool").args(["check", "metrics"]).stdin(input).output().unwrap();
    let output =
        String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && output.trim().is_empty(), "{output}");
}

/// The names of all alerts of the example, each of which must fire in a case: one that names it and expects at least one alert.
#[test]
fn each_example_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() {
    let example = std::fs::read_to_string(format!("{DOCS}/alerts.example.yml")).unwrap();
    let names: Vec<&str> = example.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10, "{names:?}");
    let cases: Vec<(&str, bool)> = include_str!("alerts.test.yml")
        .split("eval_time: ")
        .filter_map(|case| {
            let after = case.split_once("alertname: ")?.1;
            let name = after.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
            Some((name, after.contains("exp_alerts:") && after.contains("- exp_labels:")))
        })
        .collect();
    for name in names {
        assert!(cases.contains(&(name, true)), "no case of alerts.test.yml in which {name} fires");
        assert!(cases.contains(&(name, false)), "no case of alerts.test.yml in which {name} is silent");
    }
}

/// Each alert fires in its case, and is silent on a calm machine: `alerts.test.yml` has the cases.
#[test]
fn the_example_alerts_fire_when_they_should() {
    if let Some(why) = no_program(&["promtool"]) {
        return skip("the_example_alerts_fire_when_they_should", &why);
    }
    let place = tempfile::tempdir().unwrap();
    tree::put(place.path(), "alerts.test.yml", include_str!("alerts.test.yml"));
    let example = std::fs::read_to_string(format!("{DOCS}/alerts.example.yml")).unwrap();
    tree::put(place.path(), "alerts.example.yml", &example);
    for args in [["check", "rules", "alerts.example.yml"], ["test", "rules", "alerts.test.yml"]] {
        let ran = Command::new("promtool").args(args).current_dir(place.path()).output().unwrap();
        assert!(
            ran.status.success(),
            "{}{}",
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    let table = eke(&["metrics", "--table"]).stdout;
    let names =
        example.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| w.starts_with("eke_"));
    for name in names.map(|name| name.trim_end_matches("_bucket")) {
        assert!(table.contains(&format!("`{name}`")), "the example names {name}, which no table has");
    }
}

#[test]
fn a_real_prometheus_scrapes_and_a_query_returns_the_value() {
    if let Some(why) = no_program(&["prometheus"]) {
        return skip("a_real_prometheus_scrapes_and_a_query_returns_the_value", &why);
    }
    let environment = Environment::new();
    let _agent = environment.agent();
    let (_metrics, address) = environment.serve(&["metrics", "--listen", "127.0.0.1:0"]);
    let prometheus = Prometheus::scraping(&environment, &address);
    let query = |text: &str| prometheus.query(text);
    let mib = |n: u64| Some((n << 20) as f64);
    wait_for("a scrape", || query("eke_available_bytes") == mib(AVAILABLE));
    assert_eq!(query("sum(eke_memory_bytes)"), mib(1000));
    assert_eq!(query("eke_pressure_seconds_total{resource=\"memory\",tasks=\"some\"}"), Some(1.5));
    assert_eq!(query("eke_agent_up"), Some(1.0));
    assert_eq!(query("up"), Some(1.0));
    environment.memory(100, 111);
    wait_for("the next scrapes", || query("eke_available_bytes") == mib(111));
}
