//! The guard on a simulated machine: which signals and settings it sends, in what order, and what a crash leaves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use eke_apply::session::Session;
use eke_apply::{journal, revert};
use eke_guard::{Guard, Poll};
use eke_linux::Root;
use eke_linux::sampler::Sampler;
use eke_model::config::{Settings, Source};
use eke_model::snapshot::Program;
use eke_model::step::{Plan, Reason, Step};
use eke_testkit::fake_kernel::{FakeKernel, Faults};
use eke_testkit::real::skip;

const SESSION: &str = "0::/user.slice/user-1000.slice/session-1.scope\n";
const SERVICE: &str = "0::/system.slice/stressor.service\n";

/// A machine of 1000 MiB with a login session of pid 10 (sshd), 11 (bash) and 12, which is the stressor's parent.
struct Machine {
    kernel: Arc<FakeKernel>,
    root: Root,
    guard: Guard,
    settings: Settings,
    ms: u64,
    stalled_us: u64,
    /// What it said of which programs.
    about: Vec<Option<Program>>,
}

impl Machine {
    fn new(toml: &str) -> Self {
        let kernel = FakeKernel::new();
        let machine = Self {
            root: kernel.root(),
            kernel,
            guard: Guard::default(),
            settings: Settings::from_sources(&[Source { name: "test", text: toml }]).unwrap(),
            ms: 0,
            stalled_us: 0,
            about: Vec::new(),
        };
        machine.process(10, 1, "sshd", 0, 900, SESSION);
        machine.process(12, 10, "editor", 1000, 50, SESSION);
        machine.memory(300);
        machine
    }

    fn process(&self, pid: u32, parent: u32, name: &str, user: u32, mib: u64, group: &str) {
        self.process_of([user; 2], (pid, parent), name, mib, group);
    }

    /// The same with its real and effective user.
    fn process_of(&self, users: [u32; 2], (pid, parent): (u32, u32), name: &str, mib: u64, group: &str) {
        let [real, user] = users;
        let zeros = "0 ".repeat(12);
        let stat = format!("{pid} ({name}) S {parent} {pid} 7 0 -1 0 {zeros}{pid} 0 0\n");
        self.kernel.put(&format!("proc/{pid}/stat"), &stat);
        let status = format!(
            "Name:\t{name}\nState:\tS (sleeping)\nUid:\t{real}\t{user}\t{user}\t{user}\nRssAnon:\t{} kB\nVmSwap:\t0 kB\n",
            mib << 10
        );
        self.kernel.put(&format!("proc/{pid}/status"), &status);
        self.kernel.put(&format!("proc/{pid}/oom_score_adj"), "0\n");
        self.kernel.put(&format!("proc/{pid}/cgroup"), group);
    }

    /// The file that a process executes.
    fn executes(&self, pid: u32, program: &str, mode: u32) {
        let at = |path: &str| self.kernel.dir().join(path);
        self.kernel.put(program, "");
        fs::set_permissions(at(program), fs::Permissions::from_mode(mode)).unwrap();
        symlink(at(program), at(&format!("proc/{pid}/exe"))).unwrap();
    }

    /// Its user, or a debugger, stopped it.
    fn is_stopped(&self, pid: u32, state: char) {
        let status = self.root.read(format!("proc/{pid}/status")).unwrap();
        self.kernel
            .put(&format!("proc/{pid}/status"), &status.replace("State:\tS", &format!("State:\t{state}")));
    }

    fn memory(&self, available_mib: u64) {
        let (all, free, used) = (1_000 << 10, available_mib << 10, (1_000 - available_mib) << 10);
        let text = format!(
            "MemTotal: {all} kB\nMemFree: {free} kB\nMemAvailable: {free} kB\nAnonPages: {used} kB\n"
        );
        self.kernel.put("proc/meminfo", &text);
    }

    /// Polls for so long, four times a second, while all tasks wait for this share of the time.
    fn polls(&mut self, for_ms: u64, stalled: f64) -> Vec<String> {
        let mut said = Vec::new();
        for _ in 0..for_ms / 250 {
            self.ms += 250;
            self.stalled_us += (250_000.0 * stalled) as u64;
            let line = format!("avg10=0.00 avg60=0.00 avg300=0.00 total={}", self.stalled_us);
            self.kernel.put("proc/pressure/memory", &format!("some {line}\nfull {line}\n"));
            // A dead process samples nothing.
            let Ok(now) = Sampler::new(&self.root).brief(self.ms) else { break };
            let poll = Poll { root: &self.root, settings: &self.settings.guard, now };
            for message in self.guard.poll(poll) {
                said.push(message.text);
                self.about.push(message.program);
            }
        }
        said
    }

    /// The signals and settings so far, without the journal's own writes.
    fn effects(&self) -> Vec<String> {
        let own = |line: &String| line.contains("send ") || line.contains("cgroup");
        self.kernel.log().into_iter().filter(own).collect()
    }
}

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
