//! The governor on recorded traces, one line for each second of a disk.

use eke_io::Histogram;
use eke_io::governor::{Change, ChangeKind, Governor, Observation, Rules, TunedKnob};
use eke_io::histogram::{BUCKETS, bucket_of};
use eke_model::units::Nanos;

/// `seconds,waits,read_bytes,written_bytes,buckets`; buckets are `from_ns:count`, separated by spaces.
fn parse(text: &str) -> Vec<Observation> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(observation).collect()
}

#[expect(clippy::unwrap_used, reason = "test code")]
fn observation(line: &str) -> Observation {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |i: usize| fields[i].parse::<f64>().unwrap();
    let mut buckets = [0; BUCKETS];
    for word in fields[4].split_whitespace() {
        let (from_ns, count) = word.split_once(':').unwrap();
        buckets[bucket_of(from_ns.parse().unwrap())] += count.parse::<u64>().unwrap();
    }
    let reads = Histogram::of_buckets(buckets);
    Observation {
        seconds: number(0),
        waits: number(1) != 0.0,
        answered: reads.count,
        read_bytes: number(2) as u64,
        written_bytes: number(3) as u64,
        reads,
        ..Observation::default()
    }
}

fn replay(text: &str, target_ms: u64) -> Vec<Change> {
    let knob = |knob, start, floor, unit| TunedKnob {
        name: knob,
        target: "sda".into(),
        start,
        now: start,
        floor,
        unit,
        window_s: 1.0,
    };
    let knobs = vec![knob("queue.max_sectors_kb", 1280, 64, 4), knob("queue.wbt_lat_usec", 2000, 250, 1)];
    let mut governor = Governor::new(Rules::new(Nanos(target_ms * 1_000_000)), knobs);
    let mut now_s = 0.0;
    let mut changes = Vec::new();
    for observed in parse(text) {
        now_s += observed.seconds;
        changes.extend(governor.observe(now_s, &observed));
    }
    changes
}

#[test]
fn a_noisy_recording_that_does_not_answer_makes_it_neither_swing_nor_raise() {
    let changes = replay(include_str!("traces/streaming.csv"), 50);
    assert_eq!(changes.first().map(|c| (c.kind, c.value)), Some((ChangeKind::Lower, 640)), "{changes:?}");
    assert!(changes.len() <= 5 && changes.iter().all(|c| c.kind != ChangeKind::Raise), "{changes:?}");
    let steps =
        changes.windows(2).filter(|pair| pair[0].knob == pair[1].knob && pair[1].kind == ChangeKind::Lower);
    assert!(steps.into_iter().all(|pair| pair[1].value < pair[0].value), "{changes:?}");
}

#[test]
fn few_reads_because_each_is_slow_are_not_unknown() {
    let changes = replay(include_str!("traces/no_throttle.csv"), 10);
    assert_eq!(changes.first().map(|c| c.kind), Some(ChangeKind::Lower), "{changes:?}");
}

#[test]
fn a_device_that_answers_nothing_for_seconds_is_slow() {
    // as in Linux commit f91ffe89b201
    let changes = replay(include_str!("traces/stalls.csv"), 10);
    assert!(changes.iter().any(|c| c.kind == ChangeKind::Lower), "{changes:?}");
    assert!(changes.iter().all(|c| c.kind != ChangeKind::Raise), "{changes:?}");
}

#[test]
fn answers_slower_than_the_period_do_not_make_it_swing() {
    // as in Linux commit 7afcccafa59f
    let changes = replay(include_str!("traces/period.csv"), 50);
    assert!(changes.len() <= 1, "{changes:?}");
}

#[test]
fn a_quiet_disk_is_left_alone() {
    assert!(replay(include_str!("traces/quiet.csv"), 50).is_empty());
}
