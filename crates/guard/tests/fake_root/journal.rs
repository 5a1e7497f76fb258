//! Everything that is stopped continues, whatever happens to the agent or to the journal.

use eke_apply::journal;

use super::*;

#[test]
fn at_the_agents_end_everything_continues() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 300, SESSION);
    machine.polls(2_500, 0.9);
    assert!(machine.guard.let_go(&machine.root).is_none());
    assert!(machine.effects().last().is_some_and(|last| last.contains("CONT")));
    assert!(journal::entries(&machine.root).unwrap().is_empty());
}

/// Another eke has the journal for a while (`eke plan` measures): what is stopped continues all the same.
#[test]
fn a_journal_in_use_delays_no_continuation_and_loses_nothing() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 300, SESSION);
    machine.polls(2_500, 0.9);
    let other = journal::Journal::open(&machine.root).unwrap();
    let said = machine.polls(3_000, 0.0);
    assert!(said.is_empty(), "{said:?}");
    let continued = |machine: &Machine| machine.effects().iter().filter(|e| e.contains("CONT")).count();
    assert_eq!((continued(&machine), journal::entries(&machine.root).unwrap().len()), (1, 1));
    drop(other);
    machine.polls(500, 0.0);
    assert_eq!(continued(&machine), 1, "its user may have stopped it since");
    assert!(journal::entries(&machine.root).unwrap().is_empty());
}

/// Another eke undid all and began a new journal, whose numbers are those of the old one.
#[test]
fn a_change_of_another_eke_with_the_same_number_stays() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 300, SESSION);
    machine.polls(2_500, 0.9);
    let mut other = Session::open(&machine.root, "swap").unwrap();
    revert::all(&machine.root, other.journal()).unwrap();
    drop(other);
    other = Session::open(&machine.root, "swap").unwrap();
    let mut plan = Plan::default();
    plan.push(Step::set("vm.swappiness", 180), Reason::new("for the test"));
    other.apply_plan(&plan).unwrap();
    drop(other);
    machine.polls(3_000, 0.0);
    assert_eq!(machine.root.read("proc/sys/vm/swappiness").unwrap().trim(), "180");
    assert_eq!(journal::entries(&machine.root).unwrap().len(), 1);
}

#[test]
fn a_journal_in_use_delays_a_stop_and_makes_it_no_end() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 300, SESSION);
    machine.memory(120);
    let other = journal::Journal::open(&machine.root).unwrap();
    let said = machine.polls(8_000, 0.9);
    assert!(said.is_empty() && machine.effects().is_empty(), "{said:?} {:?}", machine.effects());
    drop(other);
    machine.polls(250, 0.9);
    let effects = machine.effects();
    assert!(effects.len() == 1 && effects[0].contains("STOP"), "{effects:?}");
}

#[test]
fn an_eke_that_hangs_with_the_journal_keeps_no_stall_from_ending() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 300, SESSION);
    machine.memory(120);
    let _other = journal::Journal::open(&machine.root).unwrap();
    // What does not grow for ten seconds is left alone for half a minute.
    let said = machine.polls(40_000, 0.9);
    assert!(said.iter().any(|s| s.starts_with("Ended: process 20")), "{said:?}");
    assert!(machine.effects()[0].contains("TERM"), "{:?}", machine.effects());
}

/// Another eke has the journal when the next agent starts: what the killed one stopped continues all the same.
#[test]
fn what_a_killed_agent_stopped_continues_although_the_journal_is_in_use() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 300, SESSION);
    machine.polls(2_500, 0.9);
    machine.guard = Guard::default();
    let other = journal::Journal::open(&machine.root).unwrap();
    machine.polls(250, 0.0);
    assert!(machine.effects().iter().any(|e| e.contains("CONT")));
    drop(other);
    machine.polls(250, 0.0);
    assert!(journal::entries(&machine.root).unwrap().is_empty());
}

/// A crash after any effect: the next guard lets everything continue.
#[test]
fn a_crash_leaves_nothing_stopped() {
    for crash_after in 0..6 {
        let mut machine = Machine::new("");
        machine.polls(1_000, 0.0);
        machine.process(20, 12, "stressor", 1000, 300, SESSION);
        machine.kernel.set_faults(Faults { crash_after: Some(crash_after), ..Faults::default() });
        machine.polls(2_500, 0.9);
        machine.kernel.set_faults(Faults::default());
        let was_stopped = machine.effects().iter().any(|e| e.contains("STOP"));
        machine.guard = Guard::default();
        machine.polls(250, 0.0);
        let goes_on = machine.effects().iter().any(|e| e.contains("CONT"));
        assert!(!was_stopped || goes_on, "after {crash_after} effects");
        assert!(journal::entries(&machine.root).unwrap().is_empty(), "after {crash_after} effects");
    }
}
