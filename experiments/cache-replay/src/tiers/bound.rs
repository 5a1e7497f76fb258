//! What no way can beat: Belady's rule for pieces of different sizes, relaxed.
//!
//! Between two requests for a piece somebody may keep it, compressed, for bytes times requests of memory. Of these intervals the best are kept, by what they
//! save for that price, until the price of all is the memory times the requests; the last one in part. The real optimum must also fit at each
//! moment, so it saves at most as much (PFOO-L in Berger, Beckmann, Harchol-Balter: *Practical bounds on optimal caching with variable object sizes*,
//! SIGMETRICS '18).

use super::load::Load;
use super::queue::CPUS;
use super::time::{Work, share_of_read};
use super::{Machine, Outcome};

/// The end of a request for a piece, and what it saves to keep the piece for it.
#[derive(Debug, Clone, Copy)]
struct Interval {
    piece: u32,
    pieces: u32,
    /// Requests since the last one for it, within the measured half.
    length: u64,
}

/// The least that every way reads, and the most that any serves.
pub fn bound(load: &Load, machine: &Machine) -> Outcome {
    let (intervals, firsts) = intervals(load);
    let measured = &load.requests[load.warm..];
    let bytes: u64 = measured.iter().map(|file| load.files[*file as usize].bytes).sum();
    let least = |value: &dyn Fn(&Interval) -> f64| {
        let first: f64 = firsts.iter().map(value).sum();
        first + missed(&intervals, load, machine, value)
    };
    let disk = &machine.disk;
    let size = |i: &Interval| u64::from(load.pieces[i.piece as usize]);
    let disk_bytes = least(&|i| size(i) as f64);
    let disk_s =
        least(&|i| size(i) as f64 / disk.rate + share_of_read(size(i), i.pieces) * disk.positioning_s);
    let of_request = |file: &u32| Work::request(load.files[*file as usize].bytes).cpu_s;
    let cpu_s: f64 = measured.iter().map(of_request).sum();
    Outcome {
        misses: least(&|i| 1.0 / f64::from(i.pieces)) / measured.len().max(1) as f64,
        from_disk: disk_bytes / bytes.max(1) as f64,
        throughput: bytes as f64 / disk_s.max(cpu_s / CPUS as f64),
        p99_s: None,
    }
}

/// The intervals that end in the measured half, and the pieces that come there for the first time.
fn intervals(load: &Load) -> (Vec<Interval>, Vec<Interval>) {
    let (mut intervals, mut firsts) = (Vec::new(), Vec::new());
    let mut last = vec![None; load.files.len()];
    for (number, &file) in load.requests.iter().enumerate() {
        let before: Option<usize> = last[file as usize].replace(number);
        if number < load.warm {
            continue;
        }
        let file = load.files[file as usize];
        let length = before.map_or(0, |before| (number - before.max(load.warm)) as u64);
        let to = if before.is_some() { &mut intervals } else { &mut firsts };
        let all = file.first..file.first + file.pieces;
        to.extend(all.map(|piece| Interval { piece, pieces: file.pieces, length }));
    }
    (intervals, firsts)
}

/// The least value of what is not kept.
fn missed(intervals: &[Interval], load: &Load, machine: &Machine, value: &dyn Fn(&Interval) -> f64) -> f64 {
    let price = |i: &Interval| f64::from(load.pieces[i.piece as usize]) / machine.ratio * i.length as f64;
    let mut all: Vec<(f64, f64)> = intervals.iter().map(|i| (value(i), price(i))).collect();
    all.sort_by(|a, b| (b.0 * a.1).total_cmp(&(a.0 * b.1)));
    let mut left = machine.memory.0 as f64 / load.scale as f64 * (load.requests.len() - load.warm) as f64;
    let mut missed = 0.0;
    for (value, price) in all {
        let kept = if price > left { left / price } else { 1.0 };
        left -= kept * price;
        missed += (1.0 - kept) * value;
    }
    missed
}
