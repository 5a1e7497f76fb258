//! The journal as a file: full disks, partial records, compaction, other versions.

use super::*;

#[test]
fn a_full_disk_with_the_journal_changes_nothing() {
    let machine = FakeKernel::new();
    let before = machine.tree();
    let changes = [Step::set("vm.page-cluster", 0), Step::set("zswap.enabled", "Y"), zram(100, Some(100))];
    for intents_that_fit in 0..=changes.len() {
        let mut session = Session::open(&machine.root(), "swap").unwrap();
        for step in &changes[..intents_that_fit] {
            assert_eq!(session.apply_plan(&plan([step.clone()])).unwrap().len(), 1);
        }
        assert_eq!(journal::entries(&machine.root()).unwrap().len(), intents_that_fit);
        machine.set_faults(Faults { errors: vec![("journal.jsonl".into(), 28, 1)], ..Faults::default() });
        let error = session.apply_plan(&plan([Step::set("vm.swappiness", 180)])).unwrap_err().to_string();
        assert!(error.contains("journal.jsonl") && error.contains("no space is left"), "{error}");
        drop(session);
        down(&machine);
        assert_eq!(machine.tree(), before);
    }
}

/// The records of the usual plan: the boot, intent and outcome of each step, and the device's name.
const RECORDS: usize = 10;

#[test]
fn a_change_that_the_journal_cannot_record_is_undone() {
    for (taken, times) in (0..RECORDS).flat_map(|taken| [(taken, 1), (taken, usize::MAX)]) {
        let machine = FakeKernel::new();
        let before = machine.tree();
        let mut session = Session::open(&machine.root(), "swap").unwrap();
        machine.set_faults(Faults { full: Some((taken, times)), ..Faults::default() });
        let error = session.apply_plan(&usual()).unwrap_err().to_string();
        assert!(
            error.contains("no space is left") && error.contains("everything before it was undone"),
            "{error}"
        );
        assert_eq!(machine.tree(), before, "full after {taken} records: {error}");
        drop(session);
        assert!(!down(&machine).iter().any(|o| matches!(o, Outcome::Restored(_) | Outcome::Blocked(_))));
        assert_eq!(journal::entries(&machine.root()).unwrap(), [], "also where it is full");
    }
}

#[test]
fn a_step_that_can_be_neither_recorded_nor_undone_is_reported() {
    let machine = FakeKernel::new();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    // `done` cannot be recorded, and without meminfo the room for a swapoff is unknown.
    let swap = plan([Step::SwapOn { path: "/dev/zram0".into(), priority: None }]);
    std::fs::remove_file(machine.dir().join("proc/meminfo")).unwrap();
    machine.set_faults(Faults { full: Some((2, 1)), ..Faults::default() });
    let error = session.apply_plan(&swap).unwrap_err().to_string();
    assert!(error.contains("still in force") && error.contains("`eke down`"), "{error}");
    drop(session);
    machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 600000 kB\n");
    assert!(matches!(&down(&machine)[..], [Outcome::Restored(_)]));
}

#[test]
fn a_record_after_a_partial_one_is_not_lost() {
    for taken in 0..RECORDS {
        let machine = FakeKernel::new();
        let before = machine.tree();
        let mut session = Session::open(&machine.root(), "swap").unwrap();
        machine.set_faults(Faults { full: Some((taken, 1)), ..Faults::default() });
        session.apply_plan(&usual()).unwrap_err();
        session.apply_plan(&usual()).unwrap();
        assert_eq!(journal::entries(&machine.root()).unwrap().len(), 4, "torn after {taken} records");
        drop(session);
        down(&machine);
        assert_eq!(machine.tree(), before, "torn after {taken} records");
    }
}

const JOURNAL: &str = "run/eke/journal.jsonl";

/// A machine with the usual plan and a journal of 300 KiB, from changes that are undone.
fn with_long_journal() -> (std::sync::Arc<FakeKernel>, u64) {
    let machine = FakeKernel::new();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    session.apply_plan(&usual()).unwrap();
    session.apply_plan(&plan([Step::set("vm.swappiness", 10)])).unwrap();
    let seq = journal::entries(&machine.root()).unwrap().last().unwrap().seq;
    session.undo(seq).unwrap();
    drop(session);
    let text = machine.root().read(JOURNAL).unwrap();
    let undone: String = text
        .lines()
        .filter(|l| l.contains(&format!("\"seq\":{seq},")))
        .map(|l| l.to_owned() + "\n")
        .collect();
    machine.put(JOURNAL, &(text + &undone.repeat((300 << 10) / undone.len())));
    (machine, seq)
}

fn length(machine: &FakeKernel) -> u64 {
    std::fs::metadata(machine.dir().join(JOURNAL)).unwrap().len()
}

#[test]
fn a_long_journal_is_compacted_and_forgets_no_change_and_no_number() {
    let (machine, last) = with_long_journal();
    let before = journal::entries(&machine.root()).unwrap();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    assert!(length(&machine) < 10_000, "{}", length(&machine));
    assert_eq!(journal::entries(&machine.root()).unwrap(), before);
    let mode = std::fs::metadata(machine.dir().join(JOURNAL)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let next = session.apply_plan(&plan([Step::set("vm.swappiness", 20)])).unwrap();
    assert!(matches!(next[..], [AppliedStep::Made { seq, .. }] if seq == last + 1), "{next:?}");
    drop(session);
    down(&machine);
    assert_eq!(machine.tree(), FakeKernel::new().tree());
}

#[test]
fn no_crash_and_no_full_file_system_loses_a_long_journal() {
    let full = |times| Faults { errors: vec![("journal.jsonl".into(), 28, times)], ..Faults::default() };
    let crash = |after, torn| Faults { crash_after: Some(after), torn, ..Faults::default() };
    for faults in [full(1), full(2), crash(0, false), crash(1, false), crash(2, false), crash(2, true)] {
        let (machine, _) = with_long_journal();
        let before = journal::entries(&machine.root()).unwrap();
        machine.set_faults(faults.clone());
        if let Ok(mut session) = Session::open(&machine.root(), "swap") {
            let _ = session.apply_plan(&plan([Step::set("vm.swappiness", 20)]));
        }
        machine.set_faults(Faults::default());
        let entries = journal::entries(&machine.root()).unwrap();
        assert!(entries.starts_with(&before), "{faults:?}");
        down(&machine);
        assert_eq!(machine.tree(), FakeKernel::new().tree(), "{faults:?}");
    }
}

#[test]
fn a_journal_of_another_version_is_kept_and_named() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual()).unwrap();
    let text = machine.root().read("run/eke/journal.jsonl").unwrap();
    machine.put("run/eke/journal.jsonl", &text.replace("\"remove_zram\"", "\"remove_zram_2\""));
    let error = Journal::open(&machine.root()).unwrap_err().to_string();
    assert!(error.contains("another version of eke"), "{error}");
}

/// Where `/run` is kept on a disk, a newer eke may have left one.
#[test]
fn a_journal_of_another_version_and_another_boot_is_no_obstacle() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&usual()).unwrap();
    let text = machine.root().read(JOURNAL).unwrap();
    machine.put(JOURNAL, &text.replace("\"remove_zram\"", "\"remove_zram_2\""));
    machine.put("proc/sys/kernel/random/boot_id", "another\n");
    assert_eq!(journal::entries(&machine.root()).unwrap(), []);
    Journal::open(&machine.root()).unwrap();
    assert!(!machine.tree().contains_key(JOURNAL));
}

#[test]
fn a_session_without_a_change_writes_nothing_and_one_after_all_is_undone_begins_anew() {
    let machine = FakeKernel::new();
    let mut session = Session::open(&machine.root(), "swap").unwrap();
    assert!(!machine.tree().contains_key(JOURNAL));
    for _ in 0..2 {
        session.apply_plan(&plan([Step::set("vm.swappiness", 180)])).unwrap();
        assert_eq!(journal::entries(&machine.root()).unwrap().len(), 1);
        session.undo_own().unwrap();
        assert!(!machine.tree().contains_key(JOURNAL));
    }
}

#[test]
fn a_journal_without_its_first_line_is_kept_and_named() {
    let machine = FakeKernel::new();
    Session::open(&machine.root(), "swap")
        .unwrap()
        .apply_plan(&plan([Step::set("vm.swappiness", 180)]))
        .unwrap();
    let whole = machine.root().read(JOURNAL).unwrap();
    let (first, rest) = whole.split_once('\n').unwrap();
    for damaged in [rest.to_owned(), format!("{}\n{rest}", &first[..9]), format!("\0\0\0\n{rest}")] {
        machine.put(JOURNAL, &damaged);
        let refused = Journal::open(&machine.root()).unwrap_err().to_string();
        assert!(refused.contains("journal.jsonl is damaged"), "{refused}");
        assert!(journal::entries(&machine.root()).is_err());
        assert_eq!(machine.root().read(JOURNAL).unwrap(), damaged);
    }
    machine.put(JOURNAL, &first[..9]);
    Journal::open(&machine.root()).unwrap();
}
