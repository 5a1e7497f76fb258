use proptest::prelude::*;

use super::*;

/// A disk within its burst: 0.1 ms for a request, 500 MB/s.
const BURST: Measured = Measured {
    request_s: 0.0001,
    near_request_s: 0.0001,
    depth_gain: 4.0,
    byte_s: 1.0 / 500e6,
    reads: 60,
    bytes: 6 << 20,
    took_s: 0.1,
};
const WINDOW: Duration = Duration::from_secs(2);

fn launch(reads: u64, read_ms: u64) -> Counters {
    Counters { reads, read_bytes: reads * 16_384, read_ms, ..Counters::default() }
}

#[test]
fn a_wrong_measurement_is_corrected_within_two_launches_and_the_burst_is_noticed_again() {
    let mut slowdowns = Slowdowns::default();
    let mut after = |did| {
        slowdowns.push(slowdown(&BURST, did, WINDOW).unwrap());
        BURST.slower(slowdowns.factor()).cost().seconds(100, 100 * 16_384)
    };
    let (slow, fast) = (launch(100, 800), launch(1500, 190));
    assert!(after(slow) < 0.02, "one launch may be chance");
    let corrected = after(slow);
    assert!((corrected - 0.8).abs() < 0.01, "{corrected}");
    assert!(after(fast) > 0.5 && after(slow) > 0.5, "most launches wait");
    after(fast);
    assert!(after(fast) < 0.02, "the last five were mostly fast");
}

#[test]
fn what_shows_nothing_is_left_out() {
    let of = |did| slowdown(&BURST, did, WINDOW);
    assert_eq!(of(launch(10, 900)), None, "few reads");
    assert_eq!(of(launch(100, 90)), None, "a short wait");
    assert_eq!(of(Counters { written_bytes: 1 << 20, ..launch(100, 900) }), None, "writes delayed them");
    assert_eq!(of(launch(2000, 300)), Some(1.0), "as predicted");
}

#[test]
fn a_launch_shows_whether_a_disk_is_far_faster_than_measured() {
    let rotating = Measured { request_s: 0.01, near_request_s: 0.01, ..BURST };
    for (measured, did, expected) in [
        (rotating, launch(100, 15), Some(true)),
        (rotating, launch(100, 500), Some(false)),
        (rotating, launch(100, 150), Some(false)),
        (rotating, launch(10, 0), None),
        (rotating, launch(40, 1), None),
        (BURST, launch(2000, 0), None),
    ] {
        assert_eq!(is_far_faster(&measured, did), expected, "{did:?}");
    }
}

#[test]
fn reads_in_parallel_wait_no_longer_than_the_window() {
    let deep = Counters { reads: 1000, read_bytes: 1 << 30, read_ms: 32_000, ..Counters::default() };
    assert_eq!(slowdown(&BURST, deep, WINDOW), Some(1.0), "500 MB/s, as measured");
}

#[test]
fn stored_ones_are_read_again() {
    let slowdowns = Slowdowns(vec![1.0, 30.0]);
    let text = serde_json::to_string(&slowdowns).unwrap();
    assert_eq!(serde_json::from_str::<Slowdowns>(&text).unwrap(), slowdowns);
}

proptest! {
    #[test]
    fn a_disk_gets_never_faster_and_stays_finite(
        launches in proptest::collection::vec((0u64..100_000, 0u64..1 << 40, 0u64..1 << 40, 1u64..10_000), 0..20),
    ) {
        let mut slowdowns = Slowdowns::default();
        for (reads, read_bytes, read_ms, window_ms) in launches {
            let did = Counters { reads, read_bytes, read_ms, ..Counters::default() };
            slowdown(&BURST, did, Duration::from_millis(window_ms)).into_iter().for_each(|s| slowdowns.push(s));
            prop_assert!((1.0..=MOST_SLOWDOWN).contains(&slowdowns.factor()) && slowdowns.0.len() <= KEPT);
        }
    }

    #[test]
    fn the_factor_is_between_the_last_launches(last in proptest::collection::vec(1.0f64..500.0, KEPT)) {
        let mut slowdowns = Slowdowns::default();
        last.iter().for_each(|s| slowdowns.push(*s));
        let slower = last.iter().filter(|s| **s >= slowdowns.factor()).count();
        let faster = last.iter().filter(|s| **s <= slowdowns.factor()).count();
        prop_assert!(slower >= 3 && faster >= 3);
    }

    #[test]
    fn a_measurement_that_is_right_is_not_corrected(reads in 16u64..10_000, bytes in 4096u64..1 << 20, chance in 0.3f64..1.9) {
        let did = Counters { reads, read_bytes: reads * bytes, ..Counters::default() };
        let took_s = BURST.cost().seconds(did.reads, did.read_bytes) * chance;
        let did = Counters { read_ms: (took_s * 1e3) as u64, ..did };
        prop_assert!(slowdown(&BURST, did, Duration::from_secs(1_000)).is_none_or(|s| s == 1.0));
    }
}
