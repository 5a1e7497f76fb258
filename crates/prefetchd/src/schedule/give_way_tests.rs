use proptest::prelude::*;

use super::*;

const LAPTOP: DiskCost = DiskCost { request_s: 0.008, near_request_s: 0.004, byte_s: 1.0 / 60e6 };
const FLASH: DiskCost = DiskCost { request_s: 0.000_08, near_request_s: 0.000_08, byte_s: 1.0 / 2e9 };
const STEP: u64 = 20;

fn limits() -> Limits {
    Limits {
        reserve_bytes: 100,
        quiet: Duration::from_secs(1),
        longest_wait: Duration::from_secs(30),
        ..Limits::default()
    }
}

fn quiet(ms: u64) -> Sample {
    Sample { at: Duration::from_millis(ms), available_bytes: 1000, ..Sample::default() }
}

fn reader(ms: u64, requests: u64, bytes: u64) -> Sample {
    Sample { others: OthersIo { requests, bytes, in_flight: 0 }, ..quiet(ms) }
}

/// The decisions for samples every 20 ms.
fn decisions(cost: DiskCost, samples: impl IntoIterator<Item = Sample>) -> Vec<GateDecision> {
    let mut give_way = GiveWay::new(limits(), cost, Duration::ZERO);
    samples.into_iter().map(|sample| give_way.sample(sample)).collect()
}

#[test]
fn a_quiet_disk_is_read() {
    let all = decisions(LAPTOP, (1..500).map(|n| quiet(n * STEP)));
    assert!(all.iter().all(|v| *v == GateDecision::Go));
}

#[test]
fn one_request_now_and_then_is_no_need_two_in_a_row_are() {
    let now_and_then =
        (1..500).map(|n| if n % 10 == 0 { reader(n * STEP, 1, 4096) } else { quiet(n * STEP) });
    assert!(decisions(LAPTOP, now_and_then).iter().all(|v| *v == GateDecision::Go));
    let two = [quiet(20), reader(40, 1, 4096), reader(60, 1, 4096), quiet(80)];
    assert_eq!(
        decisions(LAPTOP, two),
        [
            GateDecision::Go,
            GateDecision::Go,
            GateDecision::Wait(Cause::Disk),
            GateDecision::Wait(Cause::Disk)
        ]
    );
}

#[test]
fn io_that_is_negligible_for_a_fast_disk_is_no_need() {
    let compiler = (1..200).map(|n| reader(n * STEP, 5, 5 * 16_384));
    assert!(decisions(FLASH, compiler).iter().all(|v| *v == GateDecision::Go));
    let busy = [reader(20, 100, 100 * 4096), reader(40, 100, 100 * 4096)];
    assert_eq!(decisions(FLASH, busy)[1], GateDecision::Wait(Cause::Disk));
    let streaming = [reader(20, 40, 40 << 20), reader(40, 40, 40 << 20)];
    assert_eq!(decisions(FLASH, streaming)[0], GateDecision::Wait(Cause::Disk));
}

#[test]
fn it_goes_on_after_a_second_of_quiet_and_not_before() {
    let mut give_way = GiveWay::new(limits(), LAPTOP, Duration::ZERO);
    give_way.sample(quiet(20));
    assert_eq!(give_way.sample(reader(40, 3, 12_288)), GateDecision::Wait(Cause::Disk));
    let first_go = (3..200u64).map(|n| n * STEP).find(|ms| give_way.sample(quiet(*ms)) == GateDecision::Go);
    // It leaves the window at 140 ms; one second of quiet follows.
    assert_eq!(first_go, Some(1140));
}

#[test]
fn a_reader_that_is_fast_without_our_reads_is_busy() {
    const CARD: DiskCost = DiskCost { request_s: 0.000_5, near_request_s: 0.000_5, byte_s: 1.0 / 40e6 };
    let decide = |cost, requests| {
        let mut give_way = GiveWay::new(limits(), cost, Duration::ZERO);
        assert_eq!((give_way.sample(quiet(20)), give_way.is_unsure()), (GateDecision::Go, false));
        assert_eq!((give_way.sample(reader(40, 1, 4096)), give_way.is_unsure()), (GateDecision::Go, true));
        give_way.sample_alone(reader(45, requests, requests * 4096))
    };
    assert_eq!(decide(CARD, 0), GateDecision::Go);
    assert_eq!(decide(CARD, 1), GateDecision::Wait(Cause::Disk));
    assert_eq!(decide(FLASH, 2), GateDecision::Go);
    assert_eq!(decide(FLASH, 40), GateDecision::Wait(Cause::Disk));
}

#[test]
fn a_request_in_flight_while_we_read_nothing_keeps_it_waiting() {
    let stuck = |ms| Sample { others: OthersIo { requests: 0, bytes: 0, in_flight: 1 }, ..quiet(ms) };
    let samples = [reader(20, 9, 36_864)].into_iter().chain((2..200).map(|n| stuck(n * STEP)));
    assert!(decisions(LAPTOP, samples).iter().all(|v| *v == GateDecision::Wait(Cause::Disk)));
}

#[test]
fn short_memory_is_waited_for_and_stays_the_cause() {
    let short = |ms| Sample { available_bytes: 99, ..quiet(ms) };
    let all = decisions(FLASH, [quiet(20), short(40), reader(60, 900, 900 * 4096), quiet(80)]);
    assert_eq!(all[0], GateDecision::Go);
    assert!(all[1..].iter().all(|v| *v == GateDecision::Wait(Cause::Memory)), "{all:?}");
}

#[test]
fn a_fetch_that_evicts_pages_of_others_stops() {
    let available_bytes = 2 * limits().reserve_bytes - 1;
    let sample = |refaulted_bytes, reclaimed_bytes| Sample {
        available_bytes,
        refaulted_bytes,
        reclaimed_bytes,
        ..quiet(20)
    };
    let refaults = |refaulted_kib: u64, reclaimed_kib: u64| {
        decisions(FLASH, [sample(refaulted_kib << 10, reclaimed_kib << 10)])[0]
    };
    assert_eq!(refaults(256, 4), GateDecision::Stop(Cause::Harm));
    assert_eq!(refaults(1000, 0), GateDecision::Go, "nothing is taken away, so we push nothing out");
    assert_eq!(refaults(255, 1000), GateDecision::Go);
}

#[test]
fn while_memory_is_ample_harm_is_waited_out() {
    let mut give_way = GiveWay::new(limits(), FLASH, Duration::ZERO);
    let harm =
        |ms| Sample { refaulted_bytes: 256 << 10, reclaimed_bytes: 4096, available_bytes: 200, ..quiet(ms) };
    assert_eq!(give_way.sample(harm(20)), GateDecision::Wait(Cause::Harm));
    let first_go = (2..200u64).map(|n| n * STEP).find(|ms| give_way.sample(quiet(*ms)) == GateDecision::Go);
    assert_eq!(first_go, Some(1120), "it leaves the window at 120 ms; one second of quiet follows");
    let all = decisions(FLASH, (1..3000).map(|n| harm(n * STEP)));
    assert_eq!(all.last(), Some(&GateDecision::Stop(Cause::Patience)));
}

#[test]
fn nobody_waits_for_ever() {
    let all = decisions(LAPTOP, (1..3000).map(|n| reader(n * STEP, 5, 20_480)));
    let stop = all.iter().position(|v| *v == GateDecision::Stop(Cause::Patience)).unwrap();
    assert_eq!(stop as u64, 30_000 / STEP + 1);
}

proptest! {
    #[test]
    fn a_busy_reader_is_given_way_within_four_samples(requests in 2u64..50, before in 0u64..50) {
        let mut give_way = GiveWay::new(limits(), LAPTOP, Duration::ZERO);
        (1..=before).for_each(|n| { give_way.sample(quiet(n * STEP)); });
        let decisions: Vec<GateDecision> = (1..=4).map(|n| give_way.sample(reader((before + n) * STEP, requests, requests * 4096))).collect();
        prop_assert_eq!(decisions[3], GateDecision::Wait(Cause::Disk));
    }
}
