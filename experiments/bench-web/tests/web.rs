//! The content of `eke bench web` as images of real file systems, and a server with clients on them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use eke_bench_core::{Environment, Failure, run};
use eke_bench_web::content::{Content, Corpus, FileSystem, ensure};
use eke_bench_web::disk::Disk;
use eke_bench_web::plan::{Axis, Conditions, Variant};
use eke_bench_web::{Options, Requests, ServerKind, Web};
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_present::progress::Silent;
use eke_results::report::{Provenance, Report};
use eke_testkit::real::{SameDisks, lacking, no_program, skip};
use twox_hash::XxHash64;

const SYSTEMS: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Btrfs, FileSystem::Erofs];
/// 8.6 MB.
const CLIENTS: u32 = 5;

fn lacks(programs: &[&str]) -> Option<String> {
    lacking(&["/dev/fuse", "/sys/fs/cgroup", "/dev/loop-control"]).or_else(|| no_program(programs))
}

/// Writes files to cut from: text that compresses, and noise that does not.
fn corpus(dir: &Path) {
    let mut noise: u32 = 1;
    let mut next = || {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    };
    let put = |name: &str, bytes: &[u8]| {
        let options = std::fs::OpenOptions::new().write(true).create_new(true).open(dir.join(name));
        options.unwrap().write_all(bytes).unwrap();
    };
    let text: String =
        (0..60_000).map(|n| format!("line {n} of a text that compresses well enough\n")).collect();
    put("text", text.as_bytes());
    put("noise", &(0..700_000).map(|_| next()).collect::<Vec<u8>>());
}

struct TestDirectory {
    dir: tempfile::TempDir,
    root: Root,
    shutdown: AtomicBool,
}

impl TestDirectory {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("corpus")).unwrap();
        corpus(&dir.path().join("corpus"));
        Self { dir, root: Root::host(), shutdown: AtomicBool::new(false) }
    }

    fn corpus(&self) -> PathBuf {
        self.dir.path().join("corpus")
    }

    /// A short experiment at one point.
    fn experiment(&self, server: ServerKind, disk: Option<&str>) -> Web {
        let base = Conditions {
            server,
            memory: Bytes::mib(300),
            clients: CLIENTS,
            connections: 4,
            requests: Requests::Zipf(0.8),
            think: Duration::ZERO,
            share: 50,
            disk: disk.map(str::to_owned),
        };
        Web(Options {
            quick: false,
            repeats: 1,
            base,
            axes: vec![Axis::Base],
            variants: vec![Variant::Ext4],
            corpus: Some(self.corpus()),
            warm_up: Duration::from_secs(1),
            window: Duration::from_secs(2),
        })
    }

    fn environment(&self) -> Environment<'_> {
        Environment {
            root: &self.root,
            program: PathBuf::from("/nonexistent/eke"),
            cache: self.dir.path().join("cache"),
            command: String::new(),
            provenance: Provenance::default(),
            progress: &Silent,
            shutdown: &self.shutdown,
        }
    }
}

/// Checks that every file of the image has the bytes with which it was made.
fn check(root: &Root, content: &Content, fs: FileSystem) {
    let disk = Disk::mount(root, &content.image(fs), fs, None).unwrap();
    for (spec, hash) in content.files.iter().zip(&content.properties.hashes) {
        let bytes = std::fs::read(disk.dir().join(&spec.path)).unwrap();
        assert_eq!(
            (bytes.len() as u64, XxHash64::oneshot(0, &bytes)),
            (spec.bytes, *hash),
            "{fs:?} {spec:?}"
        );
    }
    assert!(disk.reads().bytes > 1_000_000, "{fs:?}: {:?}", disk.reads());
    disk.teardown().unwrap();
}

#[test]
fn every_image_has_the_same_bytes_and_is_made_once() {
    if let Some(why) = lacks(&["mke2fs", "mkfs.btrfs", "mkfs.erofs"]) {
        return skip("every_image_has_the_same_bytes", &why);
    }
    let _same = SameDisks::start();
    let test = TestDirectory::new();
    let environment = test.environment();
    let corpus = Corpus::find(Some(&test.corpus())).unwrap();
    let content = ensure(&environment, &corpus, CLIENTS, &SYSTEMS).unwrap();
    assert!(
        content.properties.ratio > 1.5 && content.properties.ratio < 20.0,
        "{}",
        content.properties.ratio
    );
    for fs in SYSTEMS {
        check(&test.root, &content, fs);
    }
    let [btrfs, erofs] = [FileSystem::Btrfs, FileSystem::Erofs].map(|fs| content.taken(fs).unwrap());
    assert!(erofs.0 < content.total() && btrfs.0 < content.total() * 2, "{btrfs:?} {erofs:?}");

    let made = |fs| content.image(fs).metadata().unwrap().modified().unwrap();
    let before: Vec<SystemTime> = SYSTEMS.map(made).to_vec();
    assert_eq!(ensure(&environment, &corpus, CLIENTS, &SYSTEMS).unwrap(), content);
    assert_eq!(SYSTEMS.map(made).to_vec(), before);
    let left = std::fs::read_dir(environment.cache.join("web")).unwrap().map(|e| e.unwrap().file_name());
    let left: Vec<String> = left.map(|n| n.into_string().unwrap()).collect();
    assert!(left.iter().all(|n| n.starts_with("web-")) && left.len() == 4, "{left:?}");
}

/// The median of the only row of this metric.
fn median(report: &Report, metric: &str) -> f64 {
    let rows: Vec<_> = report.rows.iter().filter(|r| r.metric == metric).collect();
    assert_eq!(rows.len(), 1, "{metric}: {:?}", report.rows);
    rows[0].median
}

/// Makes a run of ext4 and checks that its metrics fit each other.
fn serve(server: ServerKind) {
    let test = TestDirectory::new();
    let report = run(&test.experiment(server, Some("sd")), &test.environment()).unwrap();
    let (throughput, answered) = (median(&report, "throughput"), median(&report, "answered requests"));
    assert!(throughput > 0.1 && answered > 0.1, "{throughput} MB/s, {answered} /s");
    assert!(median(&report, "response time, 99th percentile") >= median(&report, "response time, median"));
    assert!(median(&report, "page cache") > 1.0 && median(&report, "CPU, system") > 0.0);
    assert!((0.0..=100.0).contains(&median(&report, "found in memory")));
    let notes = report.notes.join("\n");
    assert!(notes.contains("16 files") && notes.contains("each 32th"), "{notes}");
}

#[test]
fn nginx_serves_whole_files_from_the_slow_disk() {
    if let Some(why) = lacks(&["mke2fs", "nginx"]) {
        return skip("nginx_serves_whole_files", &why);
    }
    let _same = SameDisks::start();
    serve(ServerKind::Nginx);
}

#[test]
fn tomcat_serves_whole_files_from_the_slow_disk() {
    let tomcat = lacking(&["/usr/share/tomcat10/bin/bootstrap.jar"]);
    if let Some(why) = lacks(&["mke2fs", "java"]).or(tomcat) {
        return skip("tomcat_serves_whole_files", &why);
    }
    let _same = SameDisks::start();
    serve(ServerKind::Tomcat);
}

#[test]
fn a_signal_before_the_first_run_leaves_nothing() {
    if let Some(why) = lacks(&["mke2fs", "nginx"]) {
        return skip("a_signal_before_the_first_run", &why);
    }
    let _same = SameDisks::start();
    let test = TestDirectory::new();
    test.shutdown.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = run(&test.experiment(ServerKind::Nginx, Some("sd")), &test.environment()).unwrap_err();
    assert!(matches!(error, Failure::Interrupted), "{error}");
    let left: Vec<_> = std::fs::read_dir(test.dir.path().join("cache/web")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
