//! What is seen of a mount whose processes die. Real kernel, real program.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod takeover;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use rustix::io::Errno;
use rustix::process::Signal;

use takeover::load::{Load, content, fill};
use takeover::{Mount, is_gone, kill};

const NEEDS: [&str; 1] = ["/dev/fuse"];

/// `EKE_KILLS` says how often where more time is.
fn kills() -> usize {
    std::env::var("EKE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

fn shows_below(mount: &Mount) -> bool {
    std::fs::read(mount.place.join("small/3")).is_ok_and(|bytes| bytes == content(3, 800))
}

#[test]
fn nobody_notices_that_workers_are_killed() {
    let name = "nobody_notices_that_workers_are_killed";
    if let Some(why) = lacking(&NEEDS) {
        return skip(name, &why);
    }
    let mut mount = Mount::new(fill);
    let load = Load::default();
    load.run(&mount.place, &mount.backing, |load| {
        for _ in 0..kills() {
            let since = load.done();
            wait_for("everybody to go on", || load.all_went_on(&since));
            let worker = mount.worker();
            kill(worker, Signal::KILL);
            wait_for("another worker", || mount.worker() != worker);
        }
        let since = load.done();
        wait_for("everybody to go on", || load.all_went_on(&since));
    });
    mount.umount();
    assert!(mount.ended().success(), "{}", mount.said());
    // Not each death is in the log: its lines are bounded.
    let (said, died) = (mount.said(), "the worker died");
    let deaths: Vec<&str> = said.lines().filter(|line| line.contains(died)).collect();
    assert!((1..=kills()).contains(&deaths.len()), "{said}");
    assert!(deaths.iter().all(|line| line.contains("SIGKILL")), "{said}");
}

/// The sets of capabilities in `status` of proc(5).
const SETS: [&str; 5] = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"];

/// A line of `status` in proc(5).
fn status_of(pid: u32, key: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/status")).unwrap();
    status.lines().find_map(|l| l.strip_prefix(key)).unwrap().trim().to_owned()
}

#[test]
fn a_worker_has_no_capabilities_and_groups_but_those_it_needs() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_worker_has_no_capabilities_and_groups_but_those_it_needs", &why);
    }
    let mut mount = Mount::new(fill);
    kill(mount.worker(), Signal::KILL);
    let kept = eke_cachefs::rights::KEPT.bits();
    assert_eq!(kept.count_ones(), 11);
    let bits = |pid, key: &str| u64::from_str_radix(&status_of(pid, key), 16).unwrap();
    let supervisors = eke_cachefs::rights::SUPERVISORS.bits();
    for key in SETS {
        assert_eq!(bits(mount.supervisor(), key) & !supervisors, 0, "the supervisor's {key}");
    }
    // A worker that has just come up may not have dropped them yet.
    wait_for("a worker with few capabilities", || {
        let more = SETS.map(|key| bits(mount.worker(), key));
        more.iter().all(|set| set & !kept == 0) && status_of(mount.worker(), "Groups:").is_empty()
    });
    mount.umount();
    assert!(mount.ended().success(), "{}", mount.said());
}

/// The place is the directory itself: what a worker needs to come up must not lie behind the mount.
#[test]
fn a_directory_served_over_itself_survives_too() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_directory_served_over_itself_survives_too", &why);
    }
    let mut mount = Mount::with("below", &[], fill);
    let file = File::options().read(true).write(true).open(mount.place.join("small/3")).unwrap();
    kill(mount.worker(), Signal::KILL);
    file.write_all_at(b"new", 0).unwrap();
    drop(file);
    mount.umount();
    assert!(mount.ended().success());
    assert!(std::fs::read(mount.backing.join("small/3")).unwrap().starts_with(b"new"));
}

#[test]
fn without_a_supervisor_the_directory_below_shows() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("without_a_supervisor_the_directory_below_shows", &why);
    }
    let mut mount = Mount::with("below", &[], fill);
    let worker = mount.worker();
    kill(mount.supervisor(), Signal::KILL);
    wait_for("the mount's end", || !mount.is_mounted());
    assert!(shows_below(&mount));
    wait_for("the worker's end", || is_gone(worker));
    assert!(!mount.ended().success());
}

/// Nothing can take the mount away then, but nothing may hang either.
#[test]
fn a_mount_without_any_process_answers() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_mount_without_any_process_answers", &why);
    }
    let mount = Mount::new(fill);
    let open = File::open(mount.place.join("large0")).unwrap();
    let (worker, guard) = (mount.worker(), mount.guard());
    kill(worker, Signal::STOP);
    kill(guard, Signal::KILL);
    kill(mount.supervisor(), Signal::KILL);
    kill(worker, Signal::KILL);
    let errno = |e: std::io::Error| e.raw_os_error();
    wait_for("both to be gone", || is_gone(worker) && is_gone(mount.supervisor()));
    wait_for("the end of the connection", || {
        let seen = std::fs::metadata(&mount.place).err().and_then(errno);
        seen == Some(Errno::NOTCONN.raw_os_error())
    });
    assert!(open.read_at(&mut [0; 8], 1 << 20).is_err());
    assert!(mount.is_mounted());
}

/// What is left takes the mount away: nobody else would.
#[test]
fn the_guard_takes_the_mount_away_when_both_others_are_killed() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("the_guard_takes_the_mount_away_when_both_others_are_killed", &why);
    }
    let mut mount = Mount::with("below", &[], fill);
    let (worker, guard) = (mount.worker(), mount.guard());
    kill(worker, Signal::STOP);
    kill(mount.supervisor(), Signal::KILL);
    kill(worker, Signal::KILL);
    wait_for("the mount's end", || !mount.is_mounted());
    assert!(shows_below(&mount) && !mount.ended().success());
    wait_for("the guard's end", || is_gone(guard));
}

fn is_taken_away(mut mount: Mount, hit: impl Fn(&Mount)) {
    hit(&mount);
    assert!(!mount.ended().success(), "{}", mount.said());
    assert!(!mount.is_mounted() && shows_below(&mount), "{}", mount.said());
}

#[test]
fn workers_that_die_of_their_own_are_given_up() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("workers_that_die_of_their_own_are_given_up", &why);
    }
    is_taken_away(Mount::with("below", &[], fill), |mount| {
        for _ in 0..5 {
            let worker = mount.worker();
            kill(worker, Signal::ABORT);
            wait_for("its end", || is_gone(worker));
        }
    });
}

#[test]
fn a_kernel_that_cannot_send_again_loses_the_mount_and_nothing_else() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_kernel_that_cannot_send_again_loses_the_mount_and_nothing_else", &why);
    }
    let mount = Mount::with("below", &["--no-resend"], fill);
    is_taken_away(mount, |mount| kill(mount.worker(), Signal::KILL));
}

#[test]
fn told_to_end_it_unmounts_and_serves_what_is_open() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("told_to_end_it_unmounts_and_serves_what_is_open", &why);
    }
    let mut mount = Mount::new(fill);
    let open = File::open(mount.place.join("large1")).unwrap();
    kill(mount.supervisor(), Signal::TERM);
    wait_for("the mount's end", || !mount.is_mounted());
    let mut bytes = [0; 4096];
    open.read_exact_at(&mut bytes, 1 << 20).unwrap();
    assert_eq!(bytes, content(1, (1 << 20) + 4096)[1 << 20..]);
    let myself = format!("({})", std::process::id());
    wait_for("word of who holds it", || mount.said().contains(&myself));
    drop(open);
    assert!(mount.ended().success(), "{}", mount.said());
    assert!(!Path::new(&mount.place).join("large1").exists());
}
