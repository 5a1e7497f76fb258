//! What the guard leaves alone, and when it waits for others.

use super::*;

#[test]
fn protected_programs_are_never_signalled() {
    let mut machine = Machine::new("");
    machine.memory(5);
    assert!(machine.root.exists("proc/12/stat"));
    fs::remove_dir_all(machine.kernel.dir().join("proc/12")).unwrap();
    machine.polls(60_000, 1.0);
    assert_eq!(machine.effects(), [] as [&str; 0], "sshd alone has memory");
}

#[test]
fn it_does_nothing_beside_another_guard_unless_told_to() {
    for (toml, acts) in
        [("", false), ("[guard]\nenabled = \"on\"\n", true), ("[guard]\nenabled = \"off\"\n", false)]
    {
        let mut machine = Machine::new(toml);
        machine.process(30, 1, "earlyoom", 0, 1, "0::/system.slice/earlyoom.service\n");
        machine.process(20, 12, "stressor", 1000, 500, SESSION);
        machine.memory(5);
        machine.polls(2_000, 1.0);
        assert_eq!(!machine.effects().is_empty(), acts, "{toml}");
        let off = machine.guard.shown().off.clone();
        assert_eq!(off.is_none(), acts, "{off:?}");
    }
}

/// It waits for free swap to end, too, and half of the compressed one is still free.
#[test]
fn beside_another_guard_that_compressed_swap_blinds_it_is_the_last_resort() {
    let ended = |toml: &str| {
        let mut machine = Machine::new(toml);
        machine.kernel.add_area("/dev/zram0", 1_000 << 10, 500 << 10, 100);
        machine.kernel.put("sys/block/zram0/mm_stat", "524288000 524288000 524288000 0 524288000 0 0 0 0\n");
        machine.process(30, 1, "earlyoom", 0, 1, "0::/system.slice/earlyoom.service\n");
        machine.polls(1_000, 0.0);
        machine.process(20, 12, "stressor", 1000, 500, SESSION);
        machine.memory(120);
        machine.polls(8_000, 0.9);
        assert!(machine.effects().is_empty(), "no milder step: {:?}", machine.effects());
        machine.memory(5);
        machine.polls(1_500, 0.9);
        assert!(machine.effects().is_empty(), "the daemon goes first: {:?}", machine.effects());
        machine.polls(1_000, 0.9);
        let shown = machine.guard.shown();
        (shown.ended, shown.last_resort.is_some(), shown.off.is_some())
    };
    assert_eq!(ended(""), (1, true, false));
    assert_eq!(ended("[guard]\nenabled = \"off\"\n"), (0, false, true));
}

/// Its pages count as used, and the host gives them back before the kernel's OOM killer acts.
#[test]
fn beside_a_balloon_that_deflates_it_is_the_last_resort() {
    let ended = |toml: &str, features: &str| {
        let mut machine = Machine::new(toml);
        machine.kernel.put("sys/bus/virtio/drivers/virtio_balloon/virtio3/features", features);
        machine.polls(1_000, 0.0);
        machine.process(20, 12, "stressor", 1000, 500, SESSION);
        machine.memory(5);
        machine.polls(1_500, 0.9);
        let at_once = machine.guard.shown().ended;
        machine.polls(1_000, 0.9);
        let shown = machine.guard.shown();
        (at_once, shown.ended > 0, shown.last_resort.is_some())
    };
    assert_eq!(ended("", "0110\n"), (0, true, true));
    assert_eq!(ended("", "0100\n"), (1, true, false));
    assert_eq!(ended("[guard]\nenabled = \"on\"\n", "0110\n"), (1, true, false));
}

#[test]
fn a_group_that_waits_at_its_own_limit_has_no_other_program_stopped() {
    for (current, waits, events, acts) in
        [("1000\n", 1, 1, false), ("500\n", 1, 1, true), ("1000\n", 0, 1, true), ("1000\n", 1, 0, true)]
    {
        let mut machine = Machine::new("");
        machine.kernel.put("sys/fs/cgroup/box/memory.max", "1000\n");
        machine.kernel.put("sys/fs/cgroup/box/memory.current", current);
        machine.polls(1_000, 0.0);
        machine.process(20, 12, "editor", 1000, 300, SESSION);
        for poll in 0..36 {
            let line = format!("avg10=90.00 avg60=90.00 avg300=9.00 total={}", poll * waits * 225_000);
            machine.kernel.put("sys/fs/cgroup/box/memory.pressure", &format!("some {line}\nfull {line}\n"));
            let counts = format!("low 0\nhigh 0\nmax {}\noom 0\n", 9 + poll * events);
            machine.kernel.put("sys/fs/cgroup/box/memory.events.local", &counts);
            machine.polls(250, 0.9);
        }
        assert_eq!(
            !machine.effects().is_empty(),
            acts,
            "{current} {waits} {events}: {:?}",
            machine.effects()
        );
        machine.memory(5);
        machine.polls(1_000, 0.9);
        assert_eq!(machine.guard.shown().ended, 1, "exhausted memory is the machine's");
    }
}

/// What apt started is never ended, and ending everything else would not help.
#[test]
fn beside_a_protected_program_that_grows_one_program_is_ended_and_no_other() {
    let mut machine = Machine::new("");
    machine.process(13, 10, "viewer", 1000, 100, SESSION);
    machine.process(31, 1, "dpkg", 0, 5, "0::/system.slice/apt.service\n");
    machine.process(32, 31, "cc1plus", 0, 50, "0::/system.slice/apt.service\n");
    machine.polls(1_000, 0.0);
    machine.ms += 20_000;
    machine.polls(250, 0.0);
    machine.process(32, 31, "cc1plus", 0, 400, "0::/system.slice/apt.service\n");
    machine.memory(120);
    let said = machine.polls(40_000, 0.9);
    assert!(said.len() == 1 && said[0].contains("process 32 of user 0"), "{said:?}");
    assert_eq!(machine.about, [Some(Program { uid: 0, name: Some("cc1plus".into()) })]);
    assert!(machine.effects().is_empty(), "{:?}", machine.effects());
    machine.process(32, 31, "cc1plus", 0, 600, "0::/system.slice/apt.service\n");
    machine.memory(5);
    machine.polls(1_000, 0.9);
    machine.process(13, 10, "viewer", 1000, 0, SESSION);
    machine.polls(10_000, 0.9);
    let effects = machine.effects();
    assert!(!effects.is_empty() && effects.iter().all(|e| e.contains("proc/13")), "{effects:?}");
}

/// The usual line for `min_ttl_ms` in tmpfiles.d does nothing on Debian, whose kernel has the generations off.
#[test]
fn min_ttl_ms_counts_only_while_the_generations_are_on() {
    for (enabled, acts) in [("0x0000\n", true), ("0x0007\n", false)] {
        let mut machine = Machine::new("");
        machine.kernel.put("sys/kernel/mm/lru_gen/enabled", enabled);
        machine.kernel.put("sys/kernel/mm/lru_gen/min_ttl_ms", "1000\n");
        machine.polls(250, 0.0);
        assert_eq!(machine.guard.shown().off.is_none(), acts, "{enabled}: {:?}", machine.guard.shown().off);
    }
}

/// A user executes `su` through a link that is called `earlyoom`, and `newgrp` through one that is called `dpkg`.
#[test]
fn the_name_of_a_set_user_id_program_is_its_users() {
    // While it waits for a password (also without the right to see its file), and after it has taken root's id for good
    for users in [[1000, 0], [0, 0]] {
        if users == [0, 0] && !rustix::process::geteuid().is_root() {
            return skip("set_user_id", "only root makes files of root");
        }
        let mut machine = Machine::new("");
        for (pid, name) in [(30, "earlyoom"), (31, "dpkg")] {
            machine.process_of(users, (pid, 12), name, 1, SESSION);
            if users == [0, 0] {
                machine.executes(pid, "usr/bin/su", 0o4755);
            }
        }
        machine.process(20, 31, "stressor", 1000, 500, SESSION);
        machine.memory(5);
        machine.polls(2_000, 1.0);
        assert_eq!(machine.guard.shown().off, None, "{users:?}");
        assert!(machine.effects().iter().any(|e| e.contains("proc/20")), "{users:?}");
    }
}

/// By Ctrl-Z, Slurm or a debugger, which let it continue themselves.
#[test]
fn what_others_stopped_stays_stopped() {
    for state in ['T', 't'] {
        let mut machine = Machine::new("");
        machine.polls(1_000, 0.0);
        machine.process(20, 12, "stressor", 1000, 300, SESSION);
        machine.is_stopped(20, state);
        machine.polls(2_500, 0.9);
        machine.polls(3_000, 0.0);
        assert_eq!(machine.effects(), [] as [&str; 0]);
        assert_eq!(machine.guard.shown().stops, 0);
    }
}

/// Its pages are in no process: the next one after the other would be ended for nothing.
#[test]
fn beside_shared_memory_that_grows_one_program_is_ended_and_no_other() {
    let mut machine = Machine::new("");
    for (pid, mib) in [(13, 150), (14, 100)] {
        machine.process(pid, 10, "viewer", 1000, mib, SESSION);
    }
    machine.polls(1_000, 0.0);
    machine.ms += 20_000;
    machine.polls(250, 0.0);
    machine.memory_with(120, 180);
    let said = machine.polls(10_000, 0.9);
    assert!(said.len() == 1 && said[0].contains("no process, grew by 180 MiB"), "{said:?}");
    assert!(machine.effects().is_empty(), "{:?}", machine.effects());
    machine.memory_with(5, 295);
    machine.polls(1_000, 0.9);
    machine.memory_with(5, 445);
    machine.polls(10_000, 0.9);
    let effects = machine.effects();
    assert!(!effects.is_empty() && effects.iter().all(|e| e.contains("proc/13")), "{effects:?}");
}

/// The machine was full before, so all together did not grow: what it took is what the ended ones gave back.
#[test]
fn shared_memory_that_takes_what_an_ended_program_gave_back_ends_no_third_one() {
    let mut machine = Machine::new("");
    for (pid, mib) in [(13, 150), (14, 120), (15, 100)] {
        machine.process(pid, 10, "viewer", 1000, mib, SESSION);
    }
    machine.memory(25);
    machine.polls(1_000, 0.0);
    machine.ms += 20_000;
    machine.polls(250, 0.0);
    for shared_mib in [20, 170, 290] {
        machine.memory_with(5, shared_mib);
        machine.polls(3_000, 0.2);
    }
    let ended = |pid: u32| machine.effects().iter().any(|e| e.contains(&format!("proc/{pid}")));
    assert_eq!([13, 14, 15].map(ended), [true, true, false], "{:?}", machine.effects());
}

/// The kernel counts the pages in the memory of no process, but in `RssShmem` of who maps them.
#[test]
fn who_maps_the_shared_memory_that_grows_is_ended_and_not_the_largest() {
    let mut machine = Machine::new("");
    for (pid, name, mib) in [(13, "viewer", 150), (14, "stressor", 5)] {
        machine.process(pid, 10, name, 1000, mib, SESSION);
    }
    machine.polls(1_000, 0.0);
    machine.ms += 20_000;
    machine.polls(250, 0.0);
    machine.maps(14, 290);
    machine.memory_with(5, 295);
    let said = machine.polls(10_000, 0.9).join("\n");
    let effects = machine.effects();
    assert!(!effects.is_empty() && effects.iter().all(|e| e.contains("proc/14")), "{effects:?}");
    assert!(said.contains("that mapped 290 MiB of new shared memory"), "{said}");
}
