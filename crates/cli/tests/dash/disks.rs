//! Disk latency on the page and for Prometheus, from an agent that has `eke-io` beside it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use eke_model::histogram::Histogram;
use eke_model::snapshot::{AgentState, IoLatency, IoState, Response, Snapshot};
use eke_model::units::Nanos;
use eke_testkit::real::{no_program, skip};
use eke_testkit::tree;
use eke_testkit::wait::wait_for;

use crate::browser::Browser;
use crate::common::eke;
use crate::environment::Environment;
use crate::page::keep;
use crate::prometheus::Prometheus;

const DISKS: &str = "#disks";

/// Counts of latencies in microseconds.
fn histogram(latencies_us: &[(u64, u64)]) -> Histogram {
    let mut of = Histogram::default();
    for (us, count) in latencies_us {
        (0..*count).for_each(|_| of.record(us * 1_000));
    }
    of
}

/// A disk of an old laptop beside a writer.
fn busy() -> IoState {
    let kind = |operation: &str, all: &[(u64, u64)], late: &[(u64, u64)]| IoLatency {
        operation: operation.into(),
        all: histogram(all),
        late: histogram(late),
    };
    let latencies = vec![
        kind(
            "read",
            &[
                (90, 210),
                (150, 330),
                (400, 90),
                (3_000, 400),
                (6_000, 1_200),
                (12_000, 800),
                (40_000, 59),
                (180_000, 1),
            ],
            &[(100, 30), (6_000, 50), (40_000, 19), (180_000, 1)],
        ),
        kind("write", &[(5_000, 300), (20_000, 900), (90_000, 500)], &[(20_000, 40), (90_000, 200)]),
        kind("flush", &[(30_000, 12), (60_000, 4)], &[]),
    ];
    IoState { pid: 8, up_s: 600, source: "bpf".into(), latencies, late_ms: 10_000, ..IoState::default() }
}

/// A time as on the page.
fn words(of: &Histogram, when: &str) -> String {
    let within = |share| Nanos(of.quantile_ns(share).unwrap() as u64);
    format!("{} {when}: half within {}, 99 of 100 within {}.", of.count, within(0.5), within(0.99))
}

/// An agent that answers with this snapshot while the test runs.
fn agent_that_says(environment: &Environment, io: Option<IoState>) {
    let agent = Some(AgentState { pid: 7, up_s: 900, ..AgentState::default() });
    let snapshot = Snapshot { agent, io, backend: "none".into(), ..Snapshot::default() };
    let answer = serde_json::to_string(&Response::Status(Box::new(snapshot))).unwrap() + "\n";
    let socket = environment.machine.dir().join("run/eke/agent.sock");
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut asked = String::new();
            let _ = BufReader::new(&stream).read_line(&mut asked);
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
}

#[test]
fn the_page_draws_a_histogram_of_each_kind_or_says_why_not() {
    if let Some(why) = no_program(&["chromium"]) {
        return skip("the_page_draws_a_histogram_of_each_kind_or_says_why_not", &why);
    }
    let environment = Environment::new();
    agent_that_says(&environment, Some(busy()));
    let (_dash, address) = environment.dash("127.0.0.1:0");
    let mut browser = Browser::start();
    for (name, size, dark) in
        [("phone", (360, 780), true), ("desktop", (1280, 900), false), ("desktop-dark", (1280, 900), true)]
    {
        browser.screen(size, dark);
        browser.go_to(&address);
        let shown = browser.until(DISKS, "measured", |t| t.contains("Reads"));
        // the page computes percentiles as the library does
        for kind in busy().latencies {
            let late = if kind.operation == "flush" {
                "None in the last 10 s.".into()
            } else {
                words(&kind.late, "in the last 10 s")
            };
            for part in [late, words(&kind.all, "since eke-io began")] {
                assert!(shown.contains(&part), "{part} in {shown}");
            }
        }
        // a bar for each bucket with recent requests, one outline for each kind
        let count = |what: &str| format!("document.querySelectorAll('#disks .plot {what}').length");
        browser.until_value(&count("path.s2"), 3);
        assert_eq!(browser.value(&count("rect")), 4 + 2);
        let wide = browser.value("document.documentElement.scrollWidth");
        assert_eq!(wide.as_u64(), Some(u64::from(size.0)), "{name}: it scrolls sideways");
        keep(&format!("disks-{name}.png"), &browser.picture());
    }
    browser.value("document.querySelector('#disks summary').click()");
    browser.until("#disks table", "filled", |t| t.contains("131 µs to 262 µs 0 330"));
    assert_eq!(browser.complaints(), Vec::<String>::new());

    agent_that_says(&environment, None);
    let shown = browser.until(DISKS, "not measured", |t| t.contains("Not measured"));
    assert!(shown.contains("sudo eke up --govern-io"), "{shown}");
    let average = IoLatency {
        operation: "read".into(),
        all: Histogram::of_average(4, 8_000_000),
        late: Histogram::default(),
    };
    agent_that_says(
        &environment,
        Some(IoState {
            source: "stat".into(),
            latencies: vec![average],
            late_ms: 10_000,
            ..IoState::default()
        }),
    );
    let shown = browser.until(DISKS, "an average", |t| t.contains("Averages only"));
    assert!(shown.contains("4 since eke-io began, 2.00 ms on average."), "{shown}");
    agent_that_says(&environment, Some(IoState::default()));
    browser.until(DISKS, "nothing yet", |t| t.contains("No disk was used"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn prometheus_gets_a_histogram_that_promtool_accepts() {
    let environment = Environment::new();
    agent_that_says(&environment, Some(busy()));
    let metrics = eke(&["--root", environment.root(), "metrics", "--format", "prometheus"]).stdout;
    for line in [
        "# TYPE eke_io_latency_seconds histogram",
        "eke_io_latency_seconds_bucket{operation=\"read\",le=\"0.000131072\"} 210",
        "eke_io_latency_seconds_bucket{operation=\"read\",le=\"+Inf\"} 3090",
        "eke_io_latency_seconds_count{operation=\"write\"} 1700",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line} lacks in\n{metrics}");
    }
    if let Some(why) = no_program(&["promtool"]) {
        return skip("prometheus_gets_a_histogram_that_promtool_accepts", &why);
    }
    tree::put(environment.place.path(), "metrics.txt", &metrics);
    let input = std::fs::File::open(environment.path("metrics.txt")).unwrap();
    let checked =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::from(input)).output().unwrap();
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
}

/// Prometheus computes percentiles from buckets as eke does, so both are equal.
#[test]
fn prometheus_and_eke_agree_on_a_percentile() {
    if let Some(why) = no_program(&["prometheus"]) {
        return skip("prometheus_and_eke_agree_on_a_percentile", &why);
    }
    let environment = Environment::new();
    agent_that_says(&environment, Some(busy()));
    let (_metrics, address) = environment.serve(&["metrics", "--listen", "127.0.0.1:0"]);
    let prometheus = Prometheus::scraping(&environment, &address);
    let reads = "eke_io_latency_seconds";
    let count = format!("{reads}_count{{operation=\"read\"}}");
    wait_for("a scrape", || prometheus.query(&count) == Some(3090.0));
    let theirs = format!("histogram_quantile(0.99,{reads}_bucket{{operation=\"read\"}})");
    let theirs_ns = prometheus.query(&theirs).unwrap() * 1e9;
    let ours_ns = busy().latencies[0].all.quantile_ns(0.99).unwrap();
    assert!((theirs_ns - ours_ns).abs() < 1e-6 * ours_ns, "{theirs_ns} and {ours_ns}");
}
