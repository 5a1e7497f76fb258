use proptest::prelude::*;

use super::*;
use crate::disk::below::Block;

fn on(bottom: Bottom) -> Below {
    Below {
        dev: 1,
        file_system: "ext4".to_owned(),
        through: Vec::new(),
        own: None,
        bottom,
        cached_between: false,
    }
}

fn disk(says_rotational: bool) -> Below {
    let block = Block { name: "sda".into(), dev: 8, size_bytes: 1 << 40, says_rotational };
    on(Bottom::Disks(vec![block]))
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
fn kinds_are_what_was_measured_whatever_the_disk_says() {
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
        for says in [false, true] {
            let decided = decide(disk(says), Some(measured));
            assert_eq!(decided.kind, expected, "{name}: {:?}", decided.why);
            assert!(decided.way.on && decided.way.by_place == (expected == Rotating));
        }
    }
}

#[test]
fn only_where_figures_leave_it_open_it_is_as_the_disk_says() {
    let open = measured(8.0, 7.9, 1.0, 50.0);
    assert_eq!(decide(disk(true), Some(open)).kind, DiskKind::Rotating);
    assert_eq!(decide(disk(false), Some(open)).kind, DiskKind::Card);
}

#[test]
fn streams_follow_the_gain_by_depth() {
    let streams = |m| decide(disk(false), Some(m)).way.streams;
    assert_eq!(streams(measured(8.3, 5.4, 1.4, 60.0)), 1);
    assert_eq!(streams(measured(0.1, 0.1, 1.6, 500.0)), 4);
    assert_eq!(streams(measured(0.1, 0.1, 3.6, 500.0)), 8);
    assert_eq!(streams(measured(0.6, 0.6, 1.0, 40.0)), 1);
    assert_eq!(streams(measured(5.0, 5.0, 3.9, 100.0)), 4);
}

#[test]
fn without_a_measurement_it_is_assumed_and_said() {
    let rotating = decide(disk(true), None);
    assert_eq!((rotating.kind, rotating.way.by_place), (DiskKind::Rotating, true));
    assert_eq!(decide(disk(false), None).kind, DiskKind::Flash);
    assert!(rotating.why[0].contains("not measured"), "{:?}", rotating.why);
}

#[test]
fn what_has_no_disk_is_fetched_only_where_that_pays() {
    let is_on = |bottom: Bottom, measured| decide(on(bottom), measured).way.on;
    assert!(!is_on(Bottom::Memory, None));
    assert!(!is_on(Bottom::Unknown("zfs".into()), Some(measured(1.0, 1.0, 1.0, 100.0))));
    assert!(!is_on(Bottom::Network, None));
    assert!(!is_on(Bottom::Network, Some(measured(40.0, 40.0, 4.0, 100.0))));
    assert!(!is_on(Bottom::Network, Some(measured(1.0, 1.0, 4.0, 1.0))));
    assert!(is_on(Bottom::Network, Some(measured(1.0, 1.0, 4.0, 50.0))));
    assert_eq!(decide(on(Bottom::Network), Some(measured(0.1, 0.1, 4.0, 500.0))).kind, DiskKind::Network);
}

#[test]
fn a_piece_is_short_enough_to_stop_after_and_a_hole_no_longer_than_a_seek() {
    let way = |m| decide(disk(false), Some(m)).way;
    let (laptop, card, flash) = (
        way(measured(8.3, 5.4, 1.0, 60.0)),
        way(measured(0.6, 0.6, 1.0, 10.0)),
        way(measured(0.1, 0.1, 4.0, 500.0)),
    );
    assert_eq!((laptop.piece_bytes, laptop.hole_bytes), (1 << 20, 256 << 10));
    assert_eq!(card.piece_bytes, 192 << 10, "25 ms at 10 MB/s, in whole pages of 64 KiB");
    assert_eq!(card.hole_bytes, 4096, "0.6 ms at 10 MB/s are 6 kB");
    assert_eq!(flash.hole_bytes, 0);
}

proptest! {
    #[test]
    fn any_figures_give_a_way_that_can_be_gone(
        request in prop_oneof![Just(0.0), 1e-6f64..10.0, Just(f64::INFINITY), Just(f64::NAN)],
        near in 0f64..10.0,
        gain in prop_oneof![0f64..100.0, Just(f64::NAN)],
        byte in prop_oneof![Just(0.0), 1e-12f64..1.0, Just(f64::INFINITY)],
    ) {
        let measured = Measured {
            request_s: request, near_request_s: near, depth_gain: gain, byte_s: byte, reads: 1, bytes: 1, took_s: 1.0,
        };
        for below in [disk(true), on(Bottom::Network)] {
            let decided = decide(below, Some(measured));
            let way = decided.way;
            prop_assert!((1..=8).contains(&way.streams));
            prop_assert!(way.piece_bytes >= 64 << 10 && way.piece_bytes <= 1 << 20);
            prop_assert!(way.piece_bytes % (64 << 10) == 0 && way.hole_bytes % 4096 == 0 && way.hole_bytes <= 256 << 10);
            prop_assert!(!decided.why.is_empty());
        }
    }
}
