//! Every arrangement on the real kernel: it holds in a box what does not fit without it, and nothing of it stays.

#![expect(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use eke_bench_core::variants::host::processes_in_boxes;
use eke_bench_core::variants::{
    self, ArrangedMachine, Arrangement, Features, Host, in_box, ours, variations,
};
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_sandbox::cgroup_box::{self, BoxSpec, Output, Swap};
use eke_testkit::real::{lacking, lock_machine, skip};
use eke_testkit::wait::{RaiseOnDrop, wait_for};

const BOX: Bytes = Bytes::mib(48);
/// The pages are of one repeated word, which cost zram nothing: a device that holds this much is all that it takes.
const HOLD_60_MIB: &str = "head -c 60M /dev/zero | tail -c 60M >/dev/null";

/// What an arrangement may change.
fn state() -> BTreeMap<&'static str, String> {
    let root = Root::host();
    let files = ["proc/swaps", "proc/sys/vm/swappiness", "proc/sys/vm/page-cluster", "sys/kernel/mm/ksm/run"];
    let mut state: BTreeMap<&str, String> =
        files.iter().map(|file| (*file, root.read(file).unwrap_or_default())).collect();
    state.insert("zram", eke_linux::zram::devices(&root).unwrap_or_default().join(" "));
    state
}

fn holds(root: &Root, arrangement: &Arrangement) -> bool {
    let mut spec = BoxSpec::new(BOX, ["sh", "-c", HOLD_60_MIB]);
    spec.output = Output::Capture;
    spec.swap = if arrangement.swap { Swap::Machines } else { Swap::Forbidden };
    spec.swappiness = arrangement.swappiness;
    cgroup_box::run(root, &spec, &AtomicBool::new(false)).unwrap().exit_code == Some(0)
}

#[test]
fn every_arrangement_works_and_goes() {
    if let Some(why) = lacking(&["/sys/class/zram-control/hot_add"]) {
        return skip("every_arrangement_works_and_goes", &why);
    }
    let _machine = lock_machine();
    let (root, before) = (Root::host(), state());
    let ground = match ArrangedMachine::prepare(&root) {
        Err(e @ (variants::Error::EkeIsUp | variants::Error::Busy { .. })) => {
            return skip("every_arrangement_works_and_goes", &e.to_string());
        }
        ground => ground.unwrap(),
    };
    let mut host = Host::of(&root).unwrap();
    let measured = host.measure(&root, None, None).unwrap();
    host.learn(&measured);
    let mut all = in_box(BOX, &host, &[]).unwrap().arrangements;
    all.push(ours(BOX, &host, &measured, Features::default()).unwrap());
    all.extend(variations(BOX, &host, &measured).unwrap().0);
    for arrangement in &all {
        ground.apply(arrangement).unwrap();
        assert_eq!(holds(&root, arrangement), arrangement.swap, "{}", arrangement.variant.name);
        ground.restore().unwrap();
        assert_eq!(state(), before, "{}", arrangement.variant.name);
    }
}

#[test]
fn the_processes_of_a_box_are_found_and_no_others() {
    if let Some(why) = lacking(&[]) {
        return skip("the_processes_of_a_box", &why);
    }
    let _machine = lock_machine();
    let root = Root::host();
    assert!(processes_in_boxes(&root).is_empty());
    let mut spec = BoxSpec::new(BOX, ["sh", "-c", "sleep 30 & sleep 30"]);
    spec.output = Output::Capture;
    let stop = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        let end = RaiseOnDrop(&stop);
        let run = scope.spawn(|| cgroup_box::run(&root, &spec, &stop));
        // A shell and two that sleep, should the box start.
        let mut found: Vec<u32> = Vec::new();
        wait_for("three processes in the box, or its end", || {
            found = processes_in_boxes(&root);
            found.len() == 3 || run.is_finished()
        });
        drop(end);
        run.join().unwrap().unwrap();
        found
    });
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(processes_in_boxes(&root).is_empty());
}
