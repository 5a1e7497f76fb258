use proptest::prelude::*;

use super::*;
use crate::backing::Block;

fn on(storage: Storage) -> Backing {
    Backing {
        dev: 1,
        file_system: "ext4".to_owned(),
        through: Vec::new(),
        own: None,
        storage,
        cached_between: false,
    }
}

fn disk(reports_rotational: bool) -> Backing {
    let block = Block { name: "sda".into(), dev: 8, size_bytes: 1 << 40, reports_rotational };
    on(Storage::Disks(vec![block]))
}

fn measured(request_ms: f64, near_ms: f64, depth_gain: f64, mb_per_s: f64) -> Measured {
    Measured {
        request_s: request_ms / 1e3,
        near_request_s: near_ms / 1e3,
        depth_gain,
        byte_s: 1e-6 / mb_per_s,
        reads: 60,
        bytes: 6 << 20,
        took_s: 0.5,
    }
}

#[test]
fn kinds_follow_the_measurement_and_not_the_disks_report() {
    use DiskKind::{Card, Flash, Rotating};
    let table = [
        ("laptop", measured(8.3, 5.4, 1.0, 60.0), Rotating),
        ("with a queue of its own", measured(12.0, 6.0, 1.7, 150.0), Rotating),
        ("full stroke, near barely better", measured(12.0, 10.0, 1.1, 100.0), Rotating),
        ("SATA flash", measured(0.12, 0.11, 3.5, 500.0), Flash),
        ("old flash", measured(0.5, 0.5, 3.0, 200.0), Flash),
        ("virtual disk", measured(0.08, 0.08, 1.1, 2000.0), Flash),
        ("SD card", measured(0.6, 0.6, 1.0, 40.0), Card),
        ("a cloud's disk", measured(5.0, 5.0, 3.9, 100.0), Card),
    ];
    for (name, measured, expected) in table {
        for reports in [false, true] {
            let decided = decide(disk(reports), Some(measured));
            assert_eq!(decided.kind, expected, "{name}: {:?}", decided.why);
            assert!(decided.strategy.is_enabled && decided.strategy.in_disk_order == (expected == Rotating));
        }
    }
}

#[test]
fn only_an_ambiguous_measurement_follows_the_disks_report() {
    let open = measured(8.0, 7.9, 1.0, 50.0);
    assert_eq!(decide(disk(true), Some(open)).kind, DiskKind::Rotating);
    assert_eq!(decide(disk(false), Some(open)).kind, DiskKind::Card);
}

#[test]
fn streams_follow_the_gain_by_depth() {
    let streams = |m| decide(disk(false), Some(m)).strategy.streams;
    assert_eq!(streams(measured(8.3, 5.4, 1.4, 60.0)), 1);
    assert_eq!(streams(measured(0.1, 0.1, 1.6, 500.0)), 4);
    assert_eq!(streams(measured(0.1, 0.1, 3.6, 500.0)), 8);
    assert_eq!(streams(measured(0.6, 0.6, 1.0, 40.0)), 1);
    assert_eq!(streams(measured(5.0, 5.0, 3.9, 100.0)), 4);
}

#[test]
fn without_a_measurement_the_kind_is_assumed_and_reported() {
    let rotating = decide(disk(true), None);
    assert_eq!((rotating.kind, rotating.strategy.in_disk_order), (DiskKind::Rotating, true));
    assert_eq!(decide(disk(false), None).kind, DiskKind::Flash);
    assert!(rotating.why[0].contains("not measured"), "{:?}", rotating.why);
}

#[test]
fn storage_without_a_disk_is_not_read() {
    let is_enabled = |storage: Storage, measured| decide(on(storage), measured).strategy.is_enabled;
    assert!(!is_enabled(Storage::Memory, None));
    assert!(!is_enabled(Storage::Unknown("zfs".into()), Some(measured(1.0, 1.0, 1.0, 100.0))));
    assert!(!is_enabled(Storage::Network, None));
    assert!(!is_enabled(Storage::Network, Some(measured(1.0, 1.0, 4.0, 50.0))), "it may not answer");
    assert_eq!(decide(on(Storage::Network), Some(measured(0.1, 0.1, 4.0, 500.0))).kind, DiskKind::Network);
}

#[test]
fn a_piece_is_short_enough_to_stop_after_and_a_hole_no_longer_than_a_seek() {
    let strategy = |m| decide(disk(false), Some(m)).strategy;
    let (laptop, card, flash) = (
        strategy(measured(8.3, 5.4, 1.0, 60.0)),
        strategy(measured(0.6, 0.6, 1.0, 10.0)),
        strategy(measured(0.1, 0.1, 4.0, 500.0)),
    );
    assert_eq!((laptop.piece_bytes, laptop.hole_bytes), (1 << 20, 256 << 10));
    assert_eq!(card.piece_bytes, 192 << 10, "25 ms at 10 MB/s, in whole pages of 64 KiB");
    assert_eq!(card.hole_bytes, 4096, "0.6 ms at 10 MB/s are 6 kB");
    assert_eq!(flash.hole_bytes, 0);
}

proptest! {
    #[test]
    fn any_measurement_gives_a_valid_strategy(
        request in prop_oneof![Just(0.0), 1e-6f64..10.0, Just(f64::INFINITY), Just(f64::NAN)],
        near in 0f64..10.0,
        gain in prop_oneof![0f64..100.0, Just(f64::NAN)],
        byte in prop_oneof![Just(0.0), 1e-12f64..1.0, Just(f64::INFINITY)],
    ) {
        let measured = Measured {
            request_s: request, near_request_s: near, depth_gain: gain, byte_s: byte, reads: 1, bytes: 1, took_s: 1.0,
        };
        for backing in [disk(true), on(Storage::Network)] {
            let decided = decide(backing, Some(measured));
            let strategy = decided.strategy;
            prop_assert!((1..=8).contains(&strategy.streams));
            prop_assert!(strategy.piece_bytes >= 64 << 10 && strategy.piece_bytes <= 1 << 20);
            prop_assert!(strategy.piece_bytes % (64 << 10) == 0 && strategy.hole_bytes % 4096 == 0 && strategy.hole_bytes <= 256 << 10);
            prop_assert!(!decided.why.is_empty());
        }
    }
}
