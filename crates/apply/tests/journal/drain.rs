//! A device that another one replaces while the plan stays applied.

use std::sync::Arc;

use eke_apply::swapoff::Interrupt;
use eke_apply::{drain as away, swapped_off};
use eke_testkit::wait::wait_for;

use super::*;

/// eke's zram1, and zram2, which the kernel fills first.
fn two_devices() -> Arc<FakeKernel> {
    let machine = FakeKernel::new();
    let steps = plan([zram(50, Some(100)), zram(50, Some(101))]);
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&steps).unwrap();
    machine
}

fn drain(machine: &Arc<FakeKernel>) -> Result<Option<String>, Error> {
    away::drain(&machine.root(), "swap", "zram1", &Interrupt::default())
}

fn areas(machine: &Arc<FakeKernel>) -> Vec<String> {
    read::swaps(&machine.root()).unwrap().into_iter().map(|area| area.path).collect()
}

fn off(machine: &Arc<FakeKernel>) -> Vec<String> {
    swapped_off::devices(&machine.root(), "swap").unwrap().into_iter().map(|off| off.name).collect()
}

fn fault(path: &str, errno: i32) -> Faults {
    Faults { errors: vec![(path.into(), errno, 1)], ..Faults::default() }
}

#[test]
fn the_journal_has_it_before_the_device_goes() {
    let machine = two_devices();
    let from = machine.log().len();
    assert_eq!(drain(&machine).unwrap(), None);
    let log = machine.log().split_off(from);
    let of = |words: &str| log.iter().position(|line| line.contains(words)).unwrap_or(usize::MAX);
    assert_eq!(
        [of("journal.jsonl"), of("swap off dev/zram1"), of("zram1/reset"), of("hot_remove")],
        [0, 1, 2, 3],
        "{log:?}"
    );
    assert_eq!(areas(&machine), ["/dev/zram2"]);
    let made: Vec<_> = journal::entries(&machine.root()).unwrap().into_iter().map(|e| e.made).collect();
    assert_eq!(made, [Some("zram2".to_owned())]);
    assert!(drain(&machine).is_err(), "it is not eke's any more");
}

#[test]
fn a_crash_at_any_effect_is_finished_or_undone() {
    let before = FakeKernel::new().tree();
    let mut half_gone = 0;
    for (after, torn) in (0..10).flat_map(|after| [(after, false), (after, true)]) {
        for is_finished in [true, false] {
            let machine = two_devices();
            machine.set_faults(Faults { crash_after: Some(after), torn, ..Faults::default() });
            let _ = drain(&machine);
            machine.set_faults(Faults::default());
            assert_eq!(off(&machine), [""; 0], "nobody swaps it on again, after {after} effects");
            half_gone += u32::from(journal::entries(&machine.root()).unwrap().iter().any(|e| e.draining));
            if is_finished && drain(&machine).is_ok() {
                assert_eq!(areas(&machine), ["/dev/zram2"]);
            }
            down(&machine);
            assert_eq!(machine.tree(), before, "after {after} effects, torn: {torn}");
            assert_eq!(journal::entries(&machine.root()).unwrap(), []);
        }
    }
    assert!(half_gone > 0);
}

#[test]
fn without_room_nothing_is_written() {
    let machine = two_devices();
    machine.add_area("/dev/zram1", 5_000_000, 4_000_000, 100);
    let log = machine.log();
    let why = drain(&machine).unwrap().unwrap();
    assert!(why.contains("swapping /dev/zram1 off loads"), "{why}");
    assert_eq!(machine.log(), log);
}

#[test]
fn a_journal_without_space_keeps_the_device() {
    let machine = two_devices();
    machine.set_faults(Faults { full: Some((0, 1)), ..Faults::default() });
    assert!(drain(&machine).is_err());
    assert_eq!(areas(&machine), ["/dev/zram1", "/dev/zram2"]);
}

/// swapoff(2) ends with EINTR at a signal, which is no failure, and with ENOMEM.
#[test]
fn a_device_that_stays_swap_is_an_ordinary_one_again() {
    for (errno, says) in [(4, Some("its swapoff was interrupted")), (12, None)] {
        let machine = two_devices();
        machine.set_faults(fault("dev/zram1", errno));
        assert_eq!(drain(&machine).ok().flatten().as_deref(), says);
        assert_eq!(areas(&machine), ["/dev/zram1", "/dev/zram2"]);
        machine.remove_area("/dev/zram1");
        assert_eq!(off(&machine), ["zram1"], "what others swap off is reported");
    }
}

#[test]
fn a_busy_device_is_removed_later() {
    let machine = two_devices();
    machine.set_faults(Faults { errors: vec![("zram1/reset".into(), 16, 99)], ..Faults::default() });
    assert!(drain(&machine).is_err());
    assert_eq!((areas(&machine), off(&machine)), (vec!["/dev/zram2".to_owned()], Vec::new()));
    machine.set_faults(Faults::default());
    assert_eq!(drain(&machine).unwrap(), None);
    assert!(!machine.root().exists("sys/block/zram1"));
}

#[test]
fn only_swap_of_the_owner_is_drained() {
    let machine = two_devices();
    let root = machine.root();
    let refused = |owner: &str, device: &str| {
        let why = away::drain(&root, owner, device, &Interrupt::default()).unwrap_err();
        why.to_string().contains("is not a swap device that eke created")
    };
    let mut session = Session::open(&root, "swap").unwrap();
    let scratch = session.scratch_zram(&spec(10, None), Reason::new("a test")).unwrap();
    drop(session);
    assert!(refused("another", "zram1") && refused("swap", &scratch));
    assert!(machine.root().exists(format!("sys/block/{scratch}")));
}

/// At a shutdown: the file system of the file could not be unmounted.
#[test]
fn only_devices_with_a_file_behind_them_are_let_go() {
    let machine = FakeKernel::new();
    let root = machine.root();
    let steps = plan([zram(50, Some(100)), backed_zram()]);
    Session::open(&root, "swap").unwrap().apply_plan(&steps).unwrap();
    machine.add_area("/dev/zram2", 5_000_000, 4_000_000, 90);
    let stay = away::files(&root, "swap").unwrap();
    let [(name, why)] = &stay[..] else { panic!("{stay:?}") };
    assert!(name == "zram2" && why.contains("swapping /dev/zram2 off loads"), "{stay:?}");
    machine.add_area("/dev/zram2", 51_200, 0, 90);
    assert_eq!(away::files(&root, "another").unwrap(), []);
    assert_eq!(areas(&machine), ["/dev/zram1", "/dev/zram2"]);
    assert_eq!(away::files(&root, "swap").unwrap(), []);
    assert_eq!((areas(&machine), root.exists("sys/block/zram2")), (vec!["/dev/zram1".to_owned()], false));
}

/// Its number is another program's now.
#[test]
fn a_device_that_somebody_else_made_by_that_number_stays_swap() {
    let machine = two_devices();
    machine.put("sys/block/zram1/disksize", "104857600\n");
    let log = machine.log();
    let why = drain(&machine).unwrap_err().to_string();
    assert!(why.contains("it is somebody else's"), "{why}");
    assert_eq!((areas(&machine), machine.log()), (vec!["/dev/zram1".into(), "/dev/zram2".into()], log));
}

#[test]
fn an_interrupt_before_the_swapoff_leaves_all_as_it_was() {
    let machine = two_devices();
    let before = (areas(&machine), journal::entries(&machine.root()).unwrap());
    let interrupt = Interrupt::default();
    interrupt.set();
    let why = away::drain(&machine.root(), "swap", "zram1", &interrupt).unwrap();
    assert_eq!(why.as_deref(), Some("its swapoff was interrupted"));
    assert_eq!((areas(&machine), journal::entries(&machine.root()).unwrap()), before);
}

/// The agent's swapoff may just be ending when `down` begins.
#[test]
fn down_waits_for_a_swapoff_that_ends() {
    let machine = two_devices();
    machine.set_faults(Faults { errors: vec![("dev/zram1".into(), 22, 3)], ..Faults::default() });
    down(&machine);
    assert_eq!((areas(&machine), journal::entries(&machine.root()).unwrap()), (Vec::new(), Vec::new()));
}

/// `down` and another `up` while it lasts: a new device with its number is none of its.
#[test]
fn a_device_that_another_eke_replaced_meanwhile_is_left_alone() {
    let machine = two_devices();
    machine.hold_swapoffs(true);
    let (root, interrupt) = (machine.root(), Interrupt::default());
    let of_thread = interrupt.clone();
    let drains = std::thread::spawn(move || away::drain(&root, "swap", "zram1", &of_thread));
    wait_for("the note", || journal::entries(&machine.root()).unwrap().iter().any(|e| e.draining));
    wait_for("the journal", || Journal::try_open(&machine.root()).is_ok());
    down(&machine);
    let steps = plan([zram(50, Some(100))]);
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&steps).unwrap();
    let before = (areas(&machine), journal::entries(&machine.root()).unwrap(), machine.log());
    interrupt.set();
    assert_eq!(drains.join().unwrap().unwrap(), None);
    assert_eq!((areas(&machine), journal::entries(&machine.root()).unwrap(), machine.log()), before);
}
