//! Control groups with memory limits: which compressed swap is charged to them.

use eke_model::units::Bytes;
use eke_swap::decide::Decision;
use eke_swap::decide::backend::Backend;
use eke_swap::facts::{DiskKind, LimitedGroup};

use crate::machine::{Machine, device, notes};

fn group(name: &str, limit_mib: u64) -> LimitedGroup {
    LimitedGroup { group: name.into(), limit: Bytes::mib(limit_mib), zswap_is_charged: true }
}

/// 2 GiB with this much swap on an SSD, and groups with these limits.
fn host(swap_mib: u64, limits_mib: &[u64]) -> Machine {
    Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2).with(|m| {
        m.facts.areas[0].size = Bytes::mib(swap_mib);
        m.facts.limited_groups = limits_mib.iter().map(|mib| group("docker/0a1b", *mib)).collect();
    })
}

fn kind(decision: &Decision) -> &'static str {
    match decision.backend {
        Backend::Zram => "zram",
        Backend::Zswap { .. } => "zswap",
        Backend::Adopted { .. } => "adopted",
        Backend::Nothing => "nothing",
    }
}

#[test]
fn limits_of_most_of_the_memory_decide_for_the_pool_that_is_charged() {
    let chosen = |swap_mib, limits: &[u64]| kind(&host(swap_mib, limits).decide());
    assert_eq!(chosen(800, &[]), "zram");
    assert_eq!(chosen(800, &[512, 512]), "zswap");
    assert_eq!(chosen(800, &[512, 511]), "zram", "less than half of RAM");
    assert_eq!(chosen(511, &[512, 512]), "zram", "too few slots for half of what the groups may have");
    assert_eq!(chosen(4096, &[64]), "zswap", "as without groups");
    let decision = host(800, &[512, 512]).decide();
    let why = &decision.backend_reason.text;
    assert!(why.contains("control groups may have 1.0 GiB of the 2.0 GiB of RAM"), "{why}");
}

#[test]
fn a_pool_that_is_charged_to_no_group_decides_nothing() {
    let uncharged = host(800, &[1024]).with(|m| m.facts.limited_groups[0].zswap_is_charged = false).decide();
    assert_eq!(kind(&uncharged), "zram");
    let notes = notes(&uncharged);
    assert!(notes.contains("docker/0a1b has a memory limit of 1.0 GiB: zram's compressed pages are charged to no group, so at its limit"), "{notes}");
    assert!(!notes.contains("and zswap"), "{notes}");
}

#[test]
fn the_plan_says_what_a_limit_means_with_each_form() {
    let old = |m: &mut Machine| m.facts.limited_groups[0].zswap_is_charged = false;
    let zram = Machine::usual().with(|m| m.facts.limited_groups = vec![group("a", 512), group("b", 256)]);
    let cases = [
        (host(4096, &[512]), "pages that zswap compresses count towards the limit"),
        (host(4096, &[512]).with(old), "this kernel charges no group for zswap's compressed pages"),
        (
            zram.clone(),
            "a has a memory limit of 512 MiB, and 1 other has one: zram's compressed pages are charged to no group",
        ),
        (zram.clone(), "and zswap, in front of enough swap on a disk, charges its group"),
        (zram.clone().zram("zram0", Bytes::mib(512), 5), "zram's compressed pages are charged to no group"),
    ];
    for (machine, part) in cases {
        let notes = notes(&machine.decide());
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let decision = zram.decide();
    assert!(device(&decision).is_some());
    let numbers = &decision.plan.advice.last().unwrap().numbers;
    assert_eq!((numbers["limited_groups"], numbers["limits_bytes"]), (2.0, Bytes::mib(768).0 as f64));
    assert!(!notes(&Machine::usual().decide()).contains("memory limit"));
}

#[test]
fn a_name_that_a_terminal_would_obey_is_not_passed_on() {
    let named = Machine::usual().with(|m| m.facts.limited_groups = vec![group("a\x1b[2Jb", 512)]);
    assert!(notes(&named.decide()).contains("a[2Jb has a memory limit"));
}
