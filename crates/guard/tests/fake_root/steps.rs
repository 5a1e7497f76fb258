//! The steps: which program, in what order, and how it goes on.

use eke_apply::journal;

use super::*;

#[test]
fn a_job_is_stopped_and_goes_on_and_the_journal_is_empty_then() {
    let mut machine = Machine::new("");
    assert!(machine.polls(1_000, 0.0).is_empty());
    machine.process(20, 12, "stressor", 1000, 300, SESSION);
    let said = machine.polls(2_500, 0.9);
    assert!(said[0].starts_with("Stopped for a moment: process 20 of user 1000 (300 MiB)"), "{said:?}");
    assert!(!said.concat().contains("stressor"), "no name of a user's program");
    assert_eq!(machine.about, [Some(Program { uid: 1000, name: Some("stressor".into()) })], "{said:?}");
    assert_eq!(journal::entries(&machine.root).unwrap().len(), 1);
    machine.polls(2_000, 0.0);
    let effects = machine.effects();
    assert!(effects.len() == 2 && effects[0].contains("STOP") && effects[1].contains("CONT"), "{effects:?}");
    assert!(journal::entries(&machine.root).unwrap().is_empty());
}

#[test]
fn a_service_is_slowed_and_frozen_as_a_whole() {
    let mut machine = Machine::new("");
    let dir = "sys/fs/cgroup/system.slice/stressor.service";
    machine.kernel.put("sys/fs/cgroup/cgroup.controllers", "memory\n");
    for (file, text) in
        [("memory.high", "max\n"), ("memory.current", "104861696\n"), ("cgroup.freeze", "0\n")]
    {
        machine.kernel.put(&format!("{dir}/{file}"), text);
    }
    machine.polls(1_000, 0.0);
    machine.process(20, 1, "stressor", 1000, 300, SERVICE);
    let said = machine.polls(2_500, 0.9);
    let unit = Some(Program { uid: 1000, name: Some("stressor (stressor.service)".into()) });
    assert_eq!(machine.about, [unit.clone(), unit], "{said:?}");
    assert_eq!(machine.root.read(format!("{dir}/cgroup.freeze")).unwrap().trim(), "1");
    // A thirty-second more, in whole pages, as the kernel keeps it.
    let page = rustix::param::page_size() as u64;
    let high = (108_138_624 / page * page).to_string();
    assert_eq!(machine.root.read(format!("{dir}/memory.high")).unwrap().trim(), high);
    machine.polls(12_000, 0.0);
    assert_eq!(machine.root.read(format!("{dir}/cgroup.freeze")).unwrap().trim(), "0");
    assert_eq!(machine.root.read(format!("{dir}/memory.high")).unwrap().trim(), "max");
}

/// libvirt has the threads of each machine in threaded groups of their own.
#[test]
fn a_virtual_machine_of_libvirt_is_slowed_and_frozen_as_a_whole() {
    let mut machine = Machine::new("");
    let all = "sys/fs/cgroup/machine.slice/vm.scope/libvirt";
    machine.kernel.put("sys/fs/cgroup/cgroup.controllers", "memory\n");
    for (file, text) in [
        ("cgroup.type", "domain threaded\n"),
        ("memory.high", "max\n"),
        ("memory.current", "104861696\n"),
        ("cgroup.freeze", "0\n"),
        ("emulator/cgroup.type", "threaded\n"),
        ("emulator/cgroup.freeze", "0\n"),
    ] {
        machine.kernel.put(&format!("{all}/{file}"), text);
    }
    machine.polls(1_000, 0.0);
    machine.process(20, 1, "stressor", 107, 300, "0::/machine.slice/vm.scope/libvirt/emulator\n");
    machine.polls(2_500, 0.9);
    let read = |file: &str| machine.root.read(format!("{all}/{file}")).unwrap().trim().to_owned();
    assert_ne!(read("memory.high"), "max");
    assert_eq!(
        [read("cgroup.freeze"), read("emulator/cgroup.freeze")],
        ["1", "0"],
        "{:?}",
        machine.effects()
    );
}

#[test]
fn what_could_not_be_slowed_is_slowed_when_it_can_be() {
    let mut machine = Machine::new("");
    let dir = "sys/fs/cgroup/system.slice/stressor.service";
    machine.kernel.put("sys/fs/cgroup/cgroup.controllers", "memory\n");
    machine.polls(1_000, 0.0);
    machine.process(20, 1, "stressor", 1000, 300, SERVICE);
    machine.polls(1_250, 0.9);
    assert!(machine.effects().is_empty(), "{:?}", machine.effects());
    machine.kernel.put(&format!("{dir}/memory.high"), "max\n");
    machine.kernel.put(&format!("{dir}/memory.current"), "104861696\n");
    machine.polls(250, 0.9);
    assert_ne!(machine.root.read(format!("{dir}/memory.high")).unwrap().trim(), "max");
}

#[test]
fn a_limit_that_is_lower_stays() {
    let mut machine = Machine::new("");
    let dir = "sys/fs/cgroup/system.slice/stressor.service";
    machine.kernel.put("sys/fs/cgroup/cgroup.controllers", "memory\n");
    machine.kernel.put(&format!("{dir}/memory.high"), "52428800\n");
    machine.kernel.put(&format!("{dir}/memory.current"), "104857600\n");
    machine.polls(1_000, 0.0);
    machine.process(20, 1, "stressor", 1000, 300, SERVICE);
    let said = machine.polls(1_250, 0.9);
    assert!(said.is_empty() && machine.effects().is_empty(), "{said:?}");
}

#[test]
fn only_what_grew_is_ended_when_nothing_is_left() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 500, SESSION);
    machine.memory(5);
    let said = machine.polls(1_000, 0.2);
    assert!(said.last().is_some_and(|last| last.starts_with("Ended: process 20 of user 1000")), "{said:?}");
    let named = machine.about.last().cloned().flatten();
    assert_eq!(named, Some(Program { uid: 1000, name: Some("stressor".into()) }));
    let effects = machine.effects();
    assert!(effects.iter().all(|e| e.contains("proc/20")), "{effects:?}");
    assert_eq!(effects.iter().filter(|e| e.contains("KILL")).count(), 1, "{effects:?}");
    assert_eq!(machine.guard.shown().ended, 1);
}

/// It closes its files, which a FUSE server can delay for ever.
#[test]
fn a_killed_program_without_memory_that_stays_keeps_no_other_from_being_ended() {
    let mut machine = Machine::new("");
    machine.process(21, 12, "other", 1000, 60, SESSION);
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 500, SESSION);
    machine.memory(5);
    machine.polls(500, 0.2);
    machine.process(20, 12, "stressor", 1000, 0, SESSION);
    machine.process(21, 12, "other", 1000, 500, SESSION);
    machine.polls(3_000, 0.2);
    let effects = machine.effects();
    assert!(effects.iter().any(|e| e.contains("proc/21") && e.contains("KILL")), "{effects:?}");
}

/// One with all its code in libraries has none of its own, as within execve(2).
#[test]
fn a_program_without_code_of_its_own_is_not_hidden() {
    let mut machine = Machine::new("");
    machine.polls(1_000, 0.0);
    machine.process(20, 12, "stressor", 1000, 500, SESSION);
    machine.kernel.put("proc/20/statm", "128000 128000 1 0 0 128000 0\n");
    machine.memory(5);
    machine.polls(1_000, 0.2);
    let effects = machine.effects();
    assert!(effects.iter().any(|e| e.contains("proc/20") && e.contains("KILL")), "{effects:?}");
}

/// Nothing wakes it, so it polls before a program can use the room up.
#[test]
fn without_psi_it_polls_the_sooner_the_less_room_there_is() {
    let mut machine = Machine::new("");
    let mut next_ms = |available_mib| {
        machine.memory(available_mib);
        let now = Sampler::new(&machine.root).brief(machine.ms).unwrap();
        let poll = Poll { root: &machine.root, settings: &machine.settings.guard, now };
        machine.guard.poll(poll);
        machine.ms += 20_000;
        (machine.guard.next_poll_ms(0), machine.guard.shown().without_psi)
    };
    assert_eq!(next_ms(900), (Some(1_500), true));
    assert_eq!(next_ms(200), (Some(333), true));
    machine.polls(250, 0.0);
    assert_eq!((machine.guard.next_poll_ms(machine.ms), machine.guard.shown().without_psi), (None, false));
}

/// As systemd-oomd does, so that the service counts as failed: `Restart=on-failure` starts it again.
#[test]
fn systemd_hears_once_why_a_service_ends() {
    let mut machine = Machine::new("");
    let dir = "sys/fs/cgroup/system.slice/stressor.service";
    machine.kernel.put("sys/fs/cgroup/cgroup.controllers", "memory\n");
    machine.kernel.put(&format!("{dir}/cgroup.procs"), "20\n21\n");
    machine.polls(1_000, 0.0);
    machine.process(20, 1, "stressor", 1000, 400, SERVICE);
    machine.process(21, 1, "stressor", 1000, 100, SERVICE);
    machine.memory(5);
    machine.polls(3_000, 0.2);
    let counted = [format!("set user.oomd_kill to 2 of {dir}"), format!("set user.oomd_ooms to 1 of {dir}")];
    let effects = machine.effects();
    let at = effects.iter().position(|e| e.contains("KILL")).unwrap();
    assert_eq!(effects[at - 2..at], counted, "{effects:?}");
    assert_eq!(effects.iter().filter(|e| e.contains("user.oomd")).count(), 2, "{effects:?}");
}

/// systemd would end the whole session for it, and on a hybrid machine it does not look.
#[test]
fn nothing_is_counted_for_a_job_nor_without_the_unified_hierarchy() {
    for (group, controllers) in [(SESSION, "memory\n"), (SERVICE, "")] {
        let mut machine = Machine::new("");
        let of = if controllers.is_empty() { "unified/" } else { "" };
        machine.kernel.put(&format!("sys/fs/cgroup/{of}cgroup.controllers"), controllers);
        machine.kernel.put(&format!("sys/fs/cgroup/{of}system.slice/stressor.service/cgroup.procs"), "20\n");
        machine.polls(1_000, 0.0);
        machine.process(20, 12, "stressor", 1000, 500, group);
        machine.memory(5);
        machine.polls(3_000, 0.2);
        let effects = machine.effects();
        assert!(
            effects.iter().any(|e| e.contains("KILL")) && !effects.concat().contains("oomd"),
            "{effects:?}"
        );
    }
}
