//! The choice of what to end.

use super::*;
use crate::growth::History;
use crate::growth::tests::grown;
use crate::process::tests::process;
use crate::shortage::InUse;
use crate::unit::units;

const RAM: Bytes = Bytes::mib(1024);

fn chosen_after(history: &History, processes: &[Process]) -> Option<(String, Vec<u32>)> {
    let growth = grown(history, processes, 20_000);
    let units = units(processes, &BTreeSet::new(), &growth, least(RAM));
    let target = choose(&units, &growth, &BTreeSet::new(), RAM)?;
    let mut pids: Vec<u32> = target.processes.iter().map(|p| p.pid).collect();
    pids.sort_unstable();
    Some((target.name, pids))
}

fn chosen(processes: &[Process]) -> Option<(String, Vec<u32>)> {
    chosen_after(&History::default(), processes)
}

#[test]
fn the_unit_most_to_blame_is_chosen_if_it_gives_something_back() {
    let all = [process(5, "editor", 40), process(6, "stressor", 400), process(8, "small", 1)];
    assert_eq!(chosen(&all), Some(("stressor".into(), vec![6])));
    assert_eq!(chosen(&all[2..]), None);
}

#[test]
fn of_a_job_those_with_the_memory_are_chosen() {
    let member = |pid, name, mib| Process { group: 5, ..process(pid, name, mib) };
    let script = member(5, "sh", 1);
    assert_eq!(chosen(&[script.clone(), member(6, "stressor", 400)]), Some(("stressor".into(), vec![6])));
    let mut build = vec![script, member(6, "make", 2)];
    build.extend((10..14).map(|pid| member(pid, "cc1plus", 100)));
    assert_eq!(chosen(&build), Some(("cc1plus".into(), vec![10, 11, 12, 13])));
}

#[test]
fn a_target_says_how_much_of_it_is_new() {
    let mut history = History::default();
    history.push(0, &[process(6, "stressor", 300)], InUse::default());
    let now = [process(6, "stressor", 400)];
    let growth = grown(&history, &now, 10_000);
    let units = units(&now, &BTreeSet::new(), &growth, least(RAM));
    let target = choose(&units, &growth, &BTreeSet::new(), RAM).unwrap();
    assert_eq!((target.size, target.grown), (Bytes::mib(400), Bytes::mib(100)));
}

#[test]
fn a_tab_goes_before_its_browser() {
    let tab = |pid, mib| Process { oom_score_adj: 300, group: 5, ..process(pid, "tab", mib) };
    let all = [process(5, "browser", 150), tab(6, 100), tab(7, 300)];
    assert_eq!(chosen(&all), Some(("tab".into(), vec![7])));
}

#[test]
fn many_small_ones_of_a_program_go_together() {
    let mut all: Vec<Process> = (10..60).map(|pid| process(pid, "bomb", 10)).collect();
    all.push(process(5, "editor", 25));
    assert_eq!(chosen(&all).unwrap().1.len(), 50);
    let two: Vec<Process> = (10..12).map(|pid| process(pid, "stressor", 100)).collect();
    assert_eq!(chosen(&two).unwrap().1.len(), 1, "two are no crowd");
}

#[test]
fn what_a_fork_bomb_forks_while_it_is_ended_goes_with_it() {
    let known: Vec<Process> = (10..13).map(|pid| process(pid, "bomb", 100)).collect();
    let growth = grown(&History::default(), &known, 0);
    let units = units(&known, &BTreeSet::new(), &growth, least(RAM));
    let target = choose(&units, &growth, &BTreeSet::new(), RAM).unwrap();
    let elsewhere = Process { session: 9, ..process(22, "bomb", 1) };
    let of_another = Process { user: 1001, ..process(23, "bomb", 1) };
    let mut now = known.clone();
    now.extend([
        process(20, "bomb", 1),
        process(21, "bash", 1),
        elsewhere,
        of_another,
        process(24, "bomb", 1),
    ]);
    let pids = |target: &Target| {
        let found = newborn(target, &known, &now, &BTreeSet::from([24]));
        found.into_iter().map(|id| id.pid).collect::<Vec<_>>()
    };
    assert_eq!(pids(&target), [20]);
    let group = Target { group: Some(known[0].control_group.clone()), ..target.clone() };
    assert_eq!(pids(&group), [20, 21, 22, 23]);
    assert!(may_fork(&target) && !may_fork(&Target { processes: vec![known[0].id], ..target }));
}

#[test]
fn what_grows_now_comes_before_what_is_new() {
    let mut history = History::default();
    history.push(0, &[], InUse::default());
    history.push(5_000, &[process(5, "editor", 300)], InUse::default());
    history.push(10_000, &[process(5, "editor", 300)], InUse::default());
    let crowd = (10..20).map(|pid| process(pid, "crowd", 10));
    let all: Vec<Process> = crowd.chain([process(5, "editor", 300)]).collect();
    assert_eq!(chosen_after(&history, &all).unwrap().0, "crowd");
    assert_eq!(chosen_after(&history, &all[10..]).unwrap().0, "editor", "nothing grows");
}

#[test]
fn what_a_user_does_in_a_protected_program_ends_nothing_of_another_user() {
    let shell = |user, mib| Process { user, session: 5, ..process(5, "bash", mib) };
    let victim = Process { user: 1002, ..process(6, "victim", 40) };
    let is_spared = |shell: Process| {
        let all = [shell, victim.clone()];
        let protected = BTreeSet::from([5]);
        let growth = grown(&History::default(), &all, 0);
        let units = units(&all, &protected, &growth, least(RAM));
        let target = choose(&units, &growth, &BTreeSet::new(), RAM).unwrap();
        assert_eq!(target.name, "victim");
        is_anothers_fault(&target, &units, &all, &protected, &growth, RAM)
    };
    assert!(is_spared(shell(1001, 300)));
    assert!(!is_spared(shell(1002, 300)), "of the same user");
    assert!(!is_spared(shell(1001, 35)), "the target took more");
    assert!(!is_spared(Process { is_roots: true, ..shell(0, 300) }));
}

/// Pieces of a memory stressor of user 1001, each in a session of its own with a name of its own.
fn pieces(count: u32, mib: u64) -> impl Iterator<Item = Process> {
    (100..100 + count).map(move |pid| {
        let group = format!("user.slice/user-1001.slice/run-{pid}.scope");
        Process { user: 1001, session: pid, control_group: group, ..process(pid, &format!("n{pid}"), mib) }
    })
}

#[test]
fn a_stressor_in_many_pieces_is_ended_and_not_another_users_program() {
    let mut history = History::default();
    let victim = process(5, "victim", 100);
    history.push(0, std::slice::from_ref(&victim), InUse::default());
    let all: Vec<Process> = std::iter::once(victim).chain(pieces(40, 20)).collect();
    assert_eq!(chosen_after(&history, &all).unwrap().1, (100..140).collect::<Vec<_>>());
}

#[test]
fn pieces_that_no_longer_grow_end_nothing_of_another_user() {
    let mut history = History::default();
    let victim = process(5, "victim", 100);
    history.push(0, std::slice::from_ref(&victim), InUse::default());
    let all: Vec<Process> = std::iter::once(victim).chain(pieces(40, 20)).collect();
    history.push(300_000, &all, InUse::default());
    let (none, growth) = (BTreeSet::new(), grown(&history, &all, 360_000));
    let units = units(&all, &none, &growth, least(RAM));
    let target = choose(&units, &growth, &none, RAM).unwrap();
    assert_eq!(target.name, "victim");
    assert!(is_anothers_fault(&target, &units, &all, &none, &growth, RAM));
}

#[test]
fn pieces_with_a_subordinate_uid_each_are_those_of_their_user() {
    let apart = || pieces(40, 20).map(|p| Process { user: 100_000 + p.id.pid, ..p });
    let mut history = History::default();
    let victim = process(5, "victim", 100);
    history.push(0, std::slice::from_ref(&victim), InUse::default());
    let all: Vec<Process> = std::iter::once(victim).chain(apart()).collect();
    assert_eq!(chosen_after(&history, &all).unwrap().1, (100..140).collect::<Vec<_>>());
    history.push(300_000, &all, InUse::default());
    let (none, growth) = (BTreeSet::new(), grown(&history, &all, 360_000));
    let units = units(&all, &none, &growth, least(RAM));
    let target = choose(&units, &growth, &none, RAM).unwrap();
    assert!(target.name == "victim" && is_anothers_fault(&target, &units, &all, &none, &growth, RAM));
}

#[test]
fn a_few_small_programs_that_grow_are_no_swarm() {
    let all: Vec<Process> = pieces(7, 20).chain([process(5, "editor", 100)]).collect();
    assert_eq!(chosen(&all), Some(("editor".into(), vec![5])));
}

fn of_browser(pid: u32, mib: u64, oom_score_adj: i32) -> Process {
    Process {
        parent: if oom_score_adj == 0 { 1 } else { 5 },
        oom_score_adj,
        control_group: "app.slice/browser.scope".into(),
        ..process(pid, "browser", mib)
    }
}

#[test]
fn a_browser_that_grows_in_new_tabs_is_not_spared_for_its_old_tab() {
    let old = [of_browser(5, 100, 0), of_browser(6, 300, 300)];
    let mut history = History::default();
    history.push(0, &old, InUse::default());
    let mut all = old.to_vec();
    all.extend((10..14).map(|pid| of_browser(pid, 200, 300)));
    all.push(Process { user: 1001, session: 20, ..process(20, "gnome-shell", 40) });
    let (protected, growth) = (BTreeSet::from([20]), grown(&history, &all, 600_000));
    let units = units(&all, &protected, &growth, least(RAM));
    let target = choose(&units, &growth, &BTreeSet::new(), RAM).unwrap();
    assert!(target.processes.len() == 1 && target.processes[0].pid >= 10, "the old tab is larger");
    assert!(!is_anothers_fault(&target, &units, &all, &protected, &growth, RAM));
}

/// A browser with the values of Firefox: itself, the tab in front, two in the background, and one for the next tab.
fn firefox(sizes: [u64; 5]) -> Vec<Process> {
    let values = [0, 100, 167, 167, 233];
    (5..).zip(sizes.into_iter().zip(values)).map(|(pid, (mib, value))| of_browser(pid, mib, value)).collect()
}

#[test]
fn of_firefox_the_tab_that_grows_goes_and_not_the_browser() {
    let after = |now: [u64; 5]| {
        let mut history = History::default();
        history.push(0, &firefox([200, 150, 300, 100, 20]), InUse::default());
        history.push(10_000, &firefox([200, 150, 300, 100, 20]), InUse::default());
        chosen_after(&history, &firefox(now)).unwrap().1
    };
    assert_eq!(after([200, 250, 300, 100, 20]), [6], "the one in front");
    assert_eq!(after([200, 151, 302, 200, 20]), [8]);
    assert_eq!(after([200, 151, 151, 101, 20]), [7], "nothing grows: one in the background");
    assert_eq!(after([400, 150, 300, 150, 20]), [5, 6, 7, 8, 9], "the browser itself grows");
}

/// A program of a user that has 600 MiB, and what is chosen after ten seconds beside a smaller editor of user 1000: it has `mib` by then.
fn beside_editor(user: u32, program: &str, mib: u64) -> String {
    let machine = |mib| Process {
        user,
        is_roots: user == 0,
        trusted_program: Some(program.into()),
        ..process(5, &program[..program.len().min(15)], mib)
    };
    let mut history = History::default();
    history.push(0, &[machine(600), process(6, "editor", 100)], InUse::default());
    history.push(10_000, &[machine(600), process(6, "editor", 100)], InUse::default());
    chosen_after(&history, &[machine(mib), process(6, "editor", 100)]).unwrap().0
}

#[test]
fn a_virtual_machine_goes_last_unless_it_grows() {
    for user in [0, 107, 64_055, 1000] {
        let name = |mib| beside_editor(user, "qemu-system-x86_64", mib);
        assert_eq!([name(600), name(700)], ["editor", "qemu-system-x86"], "of user {user}");
    }
    for program in ["qemu-kvm", "cloud-hypervisor", "firecracker", "VBoxHeadless"] {
        assert_eq!(beside_editor(107, program, 600), "editor", "{program}");
    }
    let alone = process(5, "qemu-system-arm", 600);
    assert_eq!(chosen(&[alone]).unwrap().0, "qemu-system-arm", "there is no other");
}

#[test]
fn a_virtual_machine_in_a_container_goes_last_too() {
    let chosen = |contained: Option<&str>| {
        let contained_program = contained.map(str::to_owned);
        let machine =
            Process { user: 107, trusted_program: None, contained_program, ..process(5, "qemu-kvm", 600) };
        let all = [machine, process(6, "editor", 100)];
        let mut history = History::default();
        history.push(0, &all, InUse::default());
        history.push(10_000, &all, InUse::default());
        chosen_after(&history, &all).unwrap().0
    };
    assert_eq!(chosen(None), "qemu-kvm");
    assert_eq!(chosen(Some("qemu-kvm")), "editor");
}

#[test]
fn a_user_has_no_program_spared_as_a_virtual_machine() {
    assert_eq!(beside_editor(1001, "qemu-system-x86_64", 600), "qemu-system-x86", "of a login's user");
    for program in ["qemu-x86_64", "qemu-img", "python3.13"] {
        assert_eq!(beside_editor(107, program, 600), program, "no virtual machine");
    }
    let mut history = History::default();
    let named = Process { user: 107, trusted_program: None, ..process(5, "qemu-kvm", 600) };
    history.push(0, &[named.clone(), process(6, "editor", 100)], InUse::default());
    assert_eq!(chosen_after(&history, &[named, process(6, "editor", 100)]).unwrap().0, "qemu-kvm");
    let to_root = Process { user: 0, ..process(5, "VBoxHeadless", 600) };
    history.push(10_000, &[to_root.clone(), process(6, "editor", 100)], InUse::default());
    let name = chosen_after(&history, &[to_root, process(6, "editor", 100)]).unwrap().0;
    assert_eq!(name, "VBoxHeadless", "a set-user-id program");
}

#[test]
fn what_a_spared_virtual_machine_took_ends_nothing_of_another_user() {
    let fault = |then: u64| {
        let machine = |mib| Process { user: 107, ..process(5, "qemu-kvm", mib) };
        let editor = process(6, "editor", 100);
        let mut history = History::default();
        history.push(0, &[machine(then), editor.clone()], InUse::default());
        let all = [machine(600), editor];
        history.push(300_000, &all, InUse::default());
        let (none, growth) = (BTreeSet::new(), grown(&history, &all, 360_000));
        let units = units(&all, &none, &growth, least(RAM));
        let target = choose(&units, &growth, &none, RAM).unwrap();
        assert_eq!(target.name, "editor");
        is_anothers_fault(&target, &units, &all, &none, &growth, RAM)
    };
    assert_eq!([fault(200), fault(590)], [true, false]);
}

#[test]
fn a_machine_with_much_ram_blames_what_one_with_64_gib_blames() {
    let gib = |n: u64| Bytes(n << 30);
    assert_eq!(least(gib(1024)), least(gib(64)));
    assert!(least(gib(32)) < least(gib(64)));
}

/// What is ended after shared memory grew by `taken` MiB within half a minute, while these processes mapped and touched so much of it.
fn mapper_of(taken: u64, mapped: &[(u32, u32, u64)]) -> Option<(Vec<u32>, Bytes)> {
    let all = |is_now: bool| -> Vec<Process> {
        let of = |&(pid, user, mib): &(u32, u32, u64)| {
            let shared = Bytes::mib(if is_now { mib } else { 0 });
            Process { user, shared, ..process(pid, "program", 5) }
        };
        mapped.iter().map(of).collect()
    };
    let mut history = History::default();
    history.push(0, &all(false), InUse::default());
    let now = all(true);
    let growth = history.growth(&now, InUse { shared: Bytes::mib(taken), ..InUse::default() }, 30_000);
    let units = units(&now, &BTreeSet::new(), &growth, least(RAM));
    let target = mapper(&units, &growth, &BTreeSet::new(), RAM)?;
    Some((target.processes.iter().map(|id| id.pid).collect(), target.mapped))
}

#[test]
fn who_maps_the_shared_memory_that_grew_is_to_blame_for_it() {
    assert_eq!(mapper_of(400, &[(5, 1000, 0), (6, 1000, 390)]), Some((vec![6], Bytes::mib(390))));
    assert_eq!(mapper_of(400, &[(6, 1000, 100)]), None, "most was only written to files of tmpfs");
    assert_eq!(mapper_of(20, &[(6, 1000, 20)]), None, "less than counts");
    assert_eq!(mapper_of(0, &[(6, 1000, 400)]), None, "it was there before");
    assert_eq!(
        mapper_of(400, &[(6, 1000, 400), (7, 1001, 300)]),
        None,
        "of two users nobody knows whose it is"
    );
    assert_eq!(mapper_of(400, &[(6, 1000, 300), (7, 1000, 400)]), Some((vec![7], Bytes::mib(400))));
}
