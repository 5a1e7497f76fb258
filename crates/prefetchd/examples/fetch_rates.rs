//! Measures reading on slow disks on this machine: the calls, the number of streams, the time to give way, and the gain of disk order. As root:
//! `cargo run --release -p eke-prefetchd --example fetch_rates [rates|way|order|whole|cpu|kinds]`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failing measurement panics")]

#[path = "../tests/real_fetch/slow_ext4.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod slow_ext4;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::mount_of;
use eke_model::units::Nanos;
use eke_prefetch_disk::{DiskProfile, Measured, Target, backing, decide, measure};
use eke_prefetchd::file::resident::missing_bytes;
use eke_prefetchd::read::Piece;
use eke_prefetchd::read::pread::Sink;
use eke_prefetchd::request::{Priority, ReadRequest};
use eke_prefetchd::schedule::order::by_use;
use eke_prefetchd::schedule::{Limits, Scheduler};
use eke_slow_disk::Profile;
use eke_testkit::wait::wait_for;
use rustix::fs::{Advice, OFlags, fadvise};

use slow_ext4::{SlowExt4, pages, request, run, wait, whole};

const MIB: u64 = 1 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_requested = |part: &str| arguments.is_empty() || arguments.iter().any(|a| a == part);
    if is_requested("rates") {
        rates();
    }
    if is_requested("way") {
        way();
    }
    if is_requested("order") {
        order();
    }
    if is_requested("whole") {
        whole_fetches();
    }
    if is_requested("cpu") {
        cpu();
    }
    if is_requested("kinds") {
        kinds();
    }
}

/// How to read a piece.
#[derive(Debug, Clone, Copy)]
enum Call {
    Pread,
    Readahead,
}

fn rates() {
    println!("disk | pattern | call | streams | ms | MB/s | CPU ms");
    let flash = Profile { rate: 500_000_000, latency: Nanos::micros(100), depth: 8, ..Profile::plain() };
    let disk = SlowExt4::create("rates", flash).expect("root and loop devices");
    rates_on("flash-like 500 MB/s, 0.1 ms, depth 8", &|| disk.cool(), &disk);
    drop(disk);
    let plain = SlowExt4::create("rates", Profile::plain()).expect("root and loop devices");
    rates_on("memory, no delay", &|| plain.cool(), &plain);
}

fn rates_on(name: &str, cool: &dyn Fn(), disk: &SlowExt4) {
    let files: Vec<PathBuf> = (0..24).map(|n| disk.file(&format!("f{n}"), 4 * MIB)).collect();
    // Sequential, and the first 16 of every 32 pages, as in a library.
    let whole = pages(&[(0, 1024)]);
    let some: Vec<(u64, u64)> = (0..32).map(|n| (n * 32, n * 32 + 16)).collect();
    for (pattern, requested) in [("whole files, 96 MiB", whole), ("64 KiB of each 128, 48 MiB", pages(&some))]
    {
        let pieces = by_use((0..files.len()).map(|file| (file, &requested)), MIB, 0);
        for streams in [1, 4, 8] {
            for call in [Call::Pread, Call::Readahead] {
                let mut trials: Vec<(f64, f64)> =
                    (0..5).map(|_| trial(&files, &pieces, call, streams, cool)).collect();
                trials.sort_by(|a, b| a.0.total_cmp(&b.0));
                let (ms, cpu) = trials[2];
                let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
                println!(
                    "{name} | {pattern} | {call:?} | {streams} | {ms:.0} | {:.0} | {cpu:.0}",
                    bytes as f64 / ms / 1e3
                );
            }
        }
    }
}

/// Milliseconds until all is resident, and milliseconds of CPU time.
fn trial(files: &[PathBuf], pieces: &[Piece], call: Call, streams: usize, cool: &dyn Fn()) -> (f64, f64) {
    cool();
    let open: Vec<File> = files.iter().map(|path| File::open(path).unwrap()).collect();
    open.iter().for_each(|file| fadvise(file, 0, None, Advice::Random).unwrap());
    let queue = Mutex::new(pieces.iter());
    let (began, cpu) = (Instant::now(), cpu_ms());
    std::thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| {
                let mut sink = Sink::default();
                loop {
                    let Some(piece) = queue.lock().unwrap().next() else { return };
                    read(&open[piece.request], piece, call, &mut sink);
                }
            });
        }
    });
    let cpu = cpu_ms() - cpu;
    // readahead(2) returns early: pread of each piece's last byte waits for it.
    pieces.iter().for_each(|piece| {
        open[piece.request].read_exact_at(&mut [0], piece.offset + piece.bytes - 1).unwrap();
    });
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let size = 4 * MIB;
    let missing: u64 = pieces
        .iter()
        .map(|p| missing_bytes(Root::host().page_size(), &open[p.request], p.offset, p.bytes, size).unwrap())
        .sum();
    assert_eq!(missing, 0, "{call:?} left out {missing} bytes");
    (ms, cpu)
}

#[expect(unsafe_code, reason = "readahead(2) has no safe wrapper")]
fn read(file: &File, piece: &Piece, call: Call, sink: &mut Sink) {
    match call {
        Call::Pread => drop(sink.read(file, piece.offset, piece.bytes).unwrap()),
        Call::Readahead => {
            // SAFETY: numbers only.
            let answer =
                unsafe { libc::readahead(file.as_raw_fd(), piece.offset as i64, piece.bytes as usize) };
            assert_eq!(answer, 0);
        }
    }
}

fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn disk_profile(path: &Path, request_s: f64, mb_per_s: f64) -> DiskProfile {
    profile_with_gain(path, request_s, mb_per_s, 1.0)
}

fn profile_with_gain(path: &Path, request_s: f64, mb_per_s: f64, depth_gain: f64) -> DiskProfile {
    let mounts = mountinfo::parse(&fs::read("/proc/self/mountinfo").unwrap());
    let measured = Measured {
        request_s,
        near_request_s: request_s * 0.6,
        depth_gain,
        byte_s: 1e-6 / mb_per_s,
        reads: 1,
        bytes: 1,
        took_s: 1.0,
    };
    decide(backing(&Root::host(), mount_of(path, &mounts).unwrap(), &mounts), Some(measured))
}

/// The time from another reader's first read to the shut gate.
fn way() {
    for (name, profile, request_s, mb_per_s) in
        [("laptop", Profile::laptop(), 0.0083, 60.0), ("sd", Profile::sd(), 0.0005, 40.0)]
    {
        let disk = SlowExt4::create("way", profile).expect("root and loop devices");
        let path = disk.file("file", 200 * MIB);
        let requested = whole(&path);
        let scheduler = Scheduler::new(Root::host(), Limits { reserve_bytes: 0, ..Limits::default() });
        scheduler.set_profiles(vec![disk_profile(&path, request_s, mb_per_s)]);
        let all: Vec<(f64, f64)> = (0..30).map(|_| one_way(&disk, &scheduler, &requested)).collect();
        let prompt = all.iter().filter(|(_, late)| *late < 20.0);
        println!("{name}, all trials: {}", spread(all.iter().map(|(took, _)| *took)));
        println!(
            "{name}, trials in which no thread waited 20 ms for a CPU: {}",
            spread(prompt.map(|(took, _)| *took))
        );
        println!(
            "{name}, the longest wait for a CPU in a trial: {}",
            spread(all.iter().map(|(_, late)| *late))
        );
    }
}

fn spread(ms: impl Iterator<Item = f64>) -> String {
    let mut ms: Vec<f64> = ms.collect();
    ms.sort_by(f64::total_cmp);
    let at = |share: f64| {
        ms.get(((ms.len() as f64 * share) as usize).min(ms.len().saturating_sub(1))).copied().unwrap_or(0.0)
    };
    format!(
        "n {}, least {:.0}, median {:.0}, 90 % {:.0}, most {:.0} ms",
        ms.len(),
        at(0.0),
        at(0.5),
        at(0.9),
        at(1.0)
    )
}

/// Milliseconds, and the longest time that a sleeping thread waited for a CPU meanwhile.
fn one_way(disk: &SlowExt4, scheduler: &Scheduler, requested: &ReadRequest) -> (f64, f64) {
    disk.cool();
    let fetch = scheduler.start(vec![requested.clone()], Priority::Ahead).unwrap();
    wait_for("it reads", || fetch.report().pieces >= 3 || fetch.is_over());
    assert!(!fetch.is_over(), "{:?}", fetch.report());
    let waits = fetch.report().waits_for_disk;
    let stop = AtomicBool::new(false);
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(disk.device())
        .unwrap();
    let began = Instant::now();
    let (took, late) = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let (step, mut late) = (Duration::from_millis(5), 0.0f64);
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(step);
                late = late.max((began.elapsed() - step).as_secs_f64() * 1e3);
            }
            late
        });
        scope.spawn(|| {
            let mut memory = vec![0; 8192];
            let start = memory.as_ptr().align_offset(4096);
            let mut nth: u64 = 1;
            while !stop.load(Ordering::Relaxed) {
                file.read_exact_at(&mut memory[start..start + 4096], nth * 7919 % 60_000 * 4096).unwrap();
                nth += 1;
            }
        });
        wait_for("it waits", || fetch.report().waits_for_disk > waits || fetch.is_over());
        let took = began.elapsed();
        stop.store(true, Ordering::Relaxed);
        (took, sleeper.join().unwrap())
    });
    assert!(!fetch.is_over(), "it ended before it gave way: {:?}", fetch.report());
    fetch.stop();
    wait(&fetch);
    (took.as_secs_f64() * 1e3, late)
}

/// 100 MiB in 500 files, scattered among others.
fn order() {
    let disk = SlowExt4::create("order", Profile::laptop()).expect("root and loop devices");
    let mut requests = Vec::new();
    for n in 0..500u64 {
        // Different directories: ext4 keeps the files of a directory together, and directories apart.
        let path = disk.file(&format!("d{}/f{n}", n * 7919 % 37), 200 << 10);
        requests.push(path);
    }
    let mut requests: Vec<ReadRequest> =
        requests.iter().map(|path| request(path, pages(&[(0, 50)]))).collect();
    requests.sort_by_key(|w| w.stamp.ino.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
    run("sync", &[]);
    let known = disk_profile(&disk.top(), 0.0083, 60.0);
    for round in 0..3 {
        for by_place in [false, true] {
            disk.cool();
            let mut profile = known.clone();
            profile.strategy.in_disk_order = by_place;
            profile.strategy.streams = 1;
            let scheduler = Scheduler::new(Root::host(), Limits::default());
            scheduler.set_profiles(vec![profile]);
            let began = Instant::now();
            let report = wait(&scheduler.start(requests.clone(), Priority::AtExec).unwrap());
            let took: Duration = began.elapsed();
            println!(
                "order, round {round}: 500 parts, {} MiB, {}: {:.2} s ({:?})",
                report.fetched_bytes >> 20,
                if by_place { "in disk order" } else { "in the order of requests" },
                took.as_secs_f64(),
                report.ended
            );
        }
    }
}

/// The cost of watching others' I/O: the same requests ahead and at exec.
fn whole_fetches() {
    let flash = Profile { rate: 500_000_000, latency: Nanos::micros(100), depth: 8, ..Profile::plain() };
    let disks = [
        ("laptop", Profile::laptop(), 0.0083, 60.0, 1.0),
        ("flash-like", flash, 0.0002, 500.0, 4.0),
        ("sd", Profile::sd(), 0.0005, 40.0, 1.0),
    ];
    for (name, profile, request_s, mb_per_s, gain) in disks {
        let disk = SlowExt4::create("whole", profile).expect("root and loop devices");
        let requests: Vec<ReadRequest> =
            (0..60).map(|n| whole(&disk.file(&format!("f{n}"), 2 * MIB))).collect();
        for priority in [Priority::AtExec, Priority::Ahead] {
            let mut trials: Vec<(f64, u64)> = (0..5)
                .map(|_| {
                    disk.cool();
                    let scheduler =
                        Scheduler::new(Root::host(), Limits { reserve_bytes: 0, ..Limits::default() });
                    scheduler.set_profiles(vec![profile_with_gain(&disk.top(), request_s, mb_per_s, gain)]);
                    let began = Instant::now();
                    let report = wait(&scheduler.start(requests.clone(), priority).unwrap());
                    assert_eq!(report.fetched_bytes, 120 * MIB, "{report:?}");
                    (began.elapsed().as_secs_f64(), report.waits_for_disk)
                })
                .collect();
            trials.sort_by(|a, b| a.0.total_cmp(&b.0));
            let rate = 120.0 * MIB as f64 / 1e6 / trials[2].0;
            println!(
                "{name}: 120 MiB {priority:?}: median {:.2} s of five, {rate:.0} MB/s; waits {:?}",
                trials[2].0,
                trials.iter().map(|t| t.1).collect::<Vec<_>>()
            );
        }
    }
}

/// CPU time of a fetch at exec of many small files, as a launch has, by the kind of the disk.
fn cpu() {
    let disk = SlowExt4::create("cpu", Profile::plain()).expect("root and loop devices");
    let requests: Vec<ReadRequest> =
        (0..200).map(|n| whole(&disk.file(&format!("f{n}"), 128 << 10))).collect();
    for (name, request_s, gain) in
        [("in disk order", 0.0083, 1.0), ("flash", 0.0002, 4.0), ("card", 0.005, 1.0)]
    {
        let mut trials: Vec<(u64, f64)> = (0..9)
            .map(|_| {
                disk.cool();
                let scheduler = Scheduler::new(Root::host(), Limits::default());
                scheduler.set_profiles(vec![profile_with_gain(&disk.top(), request_s, 100.0, gain)]);
                let began = Instant::now();
                let report = wait(&scheduler.start(requests.clone(), Priority::AtExec).unwrap());
                assert_eq!(report.fetched_bytes, 25 * MIB, "{report:?}");
                (report.cpu_us, began.elapsed().as_secs_f64())
            })
            .collect();
        trials.sort_by_key(|trial| trial.0);
        let (cpu_us, s) = trials[4];
        println!(
            "{name}: 25 MiB in 200 files at exec: {:.1} ms of CPU time (median of nine), {s:.2} s",
            cpu_us as f64 / 1e3
        );
    }
}

/// The kinds that measurements yield, five times each.
fn kinds() {
    let flash = Profile { rate: 500_000_000, latency: Nanos::micros(100), depth: 8, ..Profile::plain() };
    for profile in [Profile::laptop(), Profile::sd(), Profile::nfs(), flash, Profile::plain()] {
        let name = profile.name.clone();
        let disk = SlowExt4::create("kinds", profile).expect("root and loop devices");
        // A busy machine lengthens this path, and then the disk appears faster than its profile.
        println!(
            "{name}: the round trip that is subtracted from each request: {:.2} ms",
            disk.slow_disk.path().seconds() * 1e3
        );
        for seed in 0..5 {
            print_kind(&name, &disk.top(), seed);
        }
    }
    print_kind("this machine's own", Path::new("/"), 1);
}

fn print_kind(name: &str, top: &Path, seed: u64) {
    let mounts = mountinfo::parse(&fs::read("/proc/self/mountinfo").unwrap());
    let backing = backing(&Root::host(), mount_of(top, &mounts).unwrap(), &mounts);
    let mut target = Target::of(&backing).unwrap();
    if File::open(&target.path).is_err() {
        target = target.by_file(std::env::current_exe().unwrap());
    }
    let mut tries = 0;
    let measured = loop {
        tries += 1;
        match measure(&Root::host(), &target, seed) {
            Ok(measured) => break measured,
            Err(e) if tries == 40 => return println!("{name}: {e}"),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    let (took, bytes) = (measured.took_s, measured.bytes >> 10);
    let decided = decide(backing, Some(measured));
    println!(
        "{name}: {:?} after {tries} tries, {took:.2} s, {bytes} KiB: {}",
        decided.kind,
        decided.why.join("; ")
    );
}
