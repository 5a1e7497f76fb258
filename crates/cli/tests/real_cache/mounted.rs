//! A mount from start to end, its visibility, and the leftovers of a kill.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use eke_testkit::program::{end_of, first_line, output, output_of, ran, text_of};
use eke_testkit::real::{no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::process::Signal;

use super::environment::{Environment, NOBODY, no_fuse, put, signal};
use crate::common::{Ran, eke, is_root};

/// A mount from start to end, as the user of `environment`.
fn from_start_to_end(environment: &Environment) {
    let data = environment.text("data");
    let mounted = environment.cache(&["mount", &data, "--memory", "64M", "--json"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    assert_eq!(mounted.json()["place"], data.as_str());
    let pid = mounted.json()["pid"].as_u64().unwrap();
    assert!(environment.is_mounted(&data));
    again_is_refused(environment, &data);
    let read = environment.read("data/file");
    assert_eq!(read.len(), 900_000);

    let status = environment.cache(&["status", &data, "--json"]);
    let cache = &status.json()["caches"][0];
    assert_eq!(status.status, Some(0), "{}", status.shown());
    assert_eq!((cache["state"].as_str(), cache["pid"].as_u64()), (Some("serving"), Some(pid)));
    assert!(
        cache["worker_pid"].as_u64().unwrap() != pid && cache["details"]["worker"].is_object(),
        "{cache}"
    );
    let text = environment.cache(&["status"]).stdout;
    assert!(text.contains(&format!("{data} (over itself)\n  process    {pid}, worker ")), "{text}");

    busy_is_explained(environment, &data);
    let umount = environment.cache(&["umount", &data]);
    insta::assert_snapshot!("umount", environment.shown(&umount));
    assert!(!environment.is_mounted(&data));
    wait_for("the supervisor to end", || !Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(environment.read("data/file"), read);
    assert_eq!(environment.sockets(), Vec::<String>::new());
}

fn again_is_refused(environment: &Environment, data: &str) {
    insta::assert_snapshot!("again", environment.shown(&environment.cache(&["mount", data])));
}

fn busy_is_explained(environment: &Environment, data: &str) {
    let mut program = environment.program();
    let holds = program.args(["sh", "-c", "cd \"$0\" && echo there && exec sleep 600", data]);
    let mut holds = holds.stdout(Stdio::piped()).spawn().unwrap();
    first_line(holds.stdout.take().unwrap());
    let refused = environment.shown(&environment.cache(&["umount", data]));
    let is_mounted = environment.is_mounted(data);
    // before anything may fail: the mount would last as long as this process
    holds.kill().unwrap();
    holds.wait().unwrap();
    insta::assert_snapshot!("busy", refused);
    assert!(is_mounted);
}

#[test]
fn root_mounts_looks_and_unmounts() {
    if let Some(why) = no_fuse() {
        return skip("root_mounts", &why);
    }
    from_start_to_end(&Environment::real(false));
}

#[test]
fn of_mounts_of_one_directory_at_once_one_succeeds() {
    if let Some(why) = no_fuse() {
        return skip("of_mounts_of_one_directory_at_once", &why);
    }
    let environment = Environment::real(false);
    let data = environment.text("data");
    let started: Vec<_> = (0..4)
        .map(|_| {
            environment.command(&["mount", &data, "--memory", "64M"]).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let ended: Vec<_> = started.into_iter().map(|eke| output_of(eke).status.success()).collect();
    assert_eq!(ended.iter().filter(|ok| **ok).count(), 1, "{ended:?}");
    assert_eq!(environment.read("data/file").len(), 900_000);
    let umount = environment.cache(&["umount", &data]);
    assert!(umount.status == Some(0) && !environment.is_mounted(&data), "{}", umount.shown());
}

#[test]
fn files_are_read_into_memory_on_request() {
    if let Some(why) = no_fuse() {
        return skip("files_are_read_into_memory", &why);
    }
    let environment = Environment::real(false);
    let (data, fast) = (environment.text("data"), environment.text("fast"));
    let mounted = environment.cache(&["mount", &data, &fast, "--memory", "64M"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    let warmed = environment.cache(&["warm", &format!("{fast}/file"), &format!("{fast}/sub"), "--json"]);
    assert_eq!(warmed.status, Some(0), "{}", warmed.shown());
    let [file, sub] = [0, 1].map(|n| warmed.json()["paths"][n].clone());
    assert_eq!(
        (file["kept"].as_u64(), file["place"].as_str()),
        (Some(900_000), Some(fast.as_str())),
        "{file}"
    );
    assert_eq!((sub["files"].as_u64(), sub["full"].as_bool()), (Some(0), Some(false)), "{sub}");
    assert_eq!(environment.read("fast/file").len(), 900_000);
    let status = environment.cache(&["status", &fast, "--json"]).json();
    assert_eq!(status["caches"][0]["details"]["worker"]["tier"]["from_backing"], 0, "{status}");
    let elsewhere = environment.cache(&["warm", &data]);
    assert!(elsewhere.status == Some(1) && elsewhere.stderr.contains("is not in a compressed page cache"));
    assert_eq!(environment.cache(&["warm", &format!("{fast}/none")]).status, Some(2));
    let umount = environment.cache(&["umount", &fast]);
    assert_eq!(umount.status, Some(0), "{}", umount.shown());
}

#[test]
fn a_user_mounts_looks_and_unmounts() {
    let needs = || no_program(&["fusermount3", "unshare", "nsenter", "setpriv"]);
    if let Some(why) = no_fuse().or_else(needs) {
        return skip("a_user_mounts", &why);
    }
    from_start_to_end(&Environment::real(true).with_open_device());
}

#[test]
fn others_see_a_users_mount_and_no_details() {
    if let Some(why) = no_fuse().or_else(|| no_program(&["fusermount3"])) {
        return skip("others_see", &why);
    }
    let environment = Environment::real(false);
    let fast = environment.text("fast");
    let mounted = environment.cache(&["mount", &environment.text("data"), &fast, "--memory", "64M"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    let as_nobody = |args: &[&str]| -> Ran { ran(environment.command(args).uid(NOBODY).gid(NOBODY)) };
    insta::assert_snapshot!("not_yours", environment.shown(&as_nobody(&["status", &fast])));
    let cache = as_nobody(&["status", &fast, "--json"]).json()["caches"][0].clone();
    assert!(cache["details"].is_null() && cache["pid"].is_null() && cache["uid"] == 0, "{cache}");
    insta::assert_snapshot!("not_yours_umount", environment.shown(&as_nobody(&["umount", &fast])));
    let umount = environment.cache(&["umount", &fast]);
    assert_eq!(umount.status, Some(0), "{}", umount.shown());
}

/// The guard of this supervisor's mount, which is in its process group.
fn guard(supervisor: u64) -> u64 {
    let group = format!(" {supervisor} ");
    let is_it = |stat: &str| {
        let (head, tail) = stat.rsplit_once(')').unwrap_or_default();
        // state, parent, group
        head.ends_with("(eke-cache-guard")
            && tail.splitn(4, ' ').nth(3).is_some_and(|t| format!(" {t}").starts_with(&group))
    };
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    let mut guards = pids
        .filter(|pid: &u64| is_it(&std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default()));
    guards.next().expect("a guard")
}

fn mounted(environment: &Environment, data: &str) -> Ran {
    let mounted = environment.cache(&["mount", data, "--memory", "64M", "--json"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    mounted
}

fn kill_all(mounted: &Ran) {
    // A stopped worker cannot unmount when its supervisor is gone; killed with the guard, no process can.
    signal(guard(mounted.json()["pid"].as_u64().unwrap()), Signal::KILL);
    let [pid, worker] = ["pid", "worker_pid"].map(|k| mounted.json()[k].as_u64().unwrap());
    signal(worker, Signal::STOP);
    signal(pid, Signal::KILL);
    signal(worker, Signal::KILL);
    wait_for("both to end", || has_ended(pid) && has_ended(worker));
}

/// Gone, or a zombie of one thread: all its descriptors are closed then.
fn has_ended(pid: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    let is_zombie = stat.rsplit_once(')').is_some_and(|(_, tail)| tail.trim_start().starts_with('Z'));
    is_zombie && std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() == 1)
}

/// All three are killed: the mount shows as dead, and can be unmounted.
#[test]
fn what_a_kill_leaves_is_seen_and_taken_away() {
    if let Some(why) = no_fuse() {
        return skip("what_a_kill_leaves", &why);
    }
    let environment = Environment::real(false);
    let data = environment.text("data");
    kill_all(&mounted(&environment, &data));
    assert!(environment.is_mounted(&data));
    insta::assert_snapshot!("dead_status", environment.shown(&environment.cache(&["status", &data])));
    assert_eq!(environment.cache(&["status", &data, "--json"]).json()["caches"][0]["state"], "dead");
    insta::assert_snapshot!("dead_umount", environment.shown(&environment.cache(&["umount", &data])));
    assert!(!environment.is_mounted(&data));
    assert_eq!(environment.read("data/file").len(), 900_000);
}

/// A unit that restarts after a kill has this before it.
#[test]
fn a_dead_mount_makes_room_for_the_next() {
    if let Some(why) = no_fuse() {
        return skip("a_dead_mount_makes_room", &why);
    }
    let environment = Environment::real(false);
    let data = environment.text("data");
    let first = mounted(&environment, &data);
    // It keeps the dead mount busy, and the kernel keeps attributes of a watched one.
    let open = std::fs::File::open(environment.path("data/file")).unwrap();
    kill_all(&first);
    let again = mounted(&environment, &data);
    assert!(
        again.stderr.contains(&format!("the mount at {data} was dead and is removed")),
        "{}",
        again.shown()
    );
    assert_eq!(environment.read("data/file").len(), 900_000);
    again_is_refused(&environment, &data);
    drop(open);
    assert_eq!(environment.cache(&["umount", &data]).status, Some(0));
    assert!(!environment.is_mounted(&data));
}

#[test]
fn in_the_foreground_ctrl_c_ends_it() {
    if let Some(why) = no_fuse() {
        return skip("in_the_foreground", &why);
    }
    let environment = Environment::real(false);
    let data = environment.text("data");
    let mut command = environment.command(&["mount", &data, "--memory", "64M", "--foreground"]);
    let mut eke = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = first_line(eke.stdout.take().unwrap());
    assert!(first.contains("is served over itself"), "{first}");
    assert!(environment.is_mounted(&data));
    // An open file keeps it busy; Ctrl-C ends it nevertheless.
    let open = std::fs::File::open(environment.path("data/file")).unwrap();
    signal(eke.id().into(), Signal::INT);
    let status = end_of(&mut eke);
    assert!(!environment.is_mounted(&data));
    drop(open);
    // The supervisor also writes there until it ends.
    let errors = text_of(eke.stderr.take().unwrap());
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(errors.contains("files are open there"), "{errors}");
}

#[test]
fn status_of_all_names_the_caches() {
    if let Some(why) = no_fuse() {
        return skip("status_of_all", &why);
    }
    let environment = Environment::real(false);
    let data = environment.text("data");
    let mounted = environment.cache(&["mount", &data, "--memory", "64M", "--json"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    let status = eke(&["status", "--json"]).json();
    let caches = status["caches"].as_array().unwrap();
    let cache = caches.iter().find(|c| c["place"] == data.as_str()).unwrap();
    assert_eq!(cache["pid"], mounted.json()["pid"]);
    let text = eke(&[]).stdout;
    assert!(text.contains(&format!("cache       {data}: ")), "{text}");
    assert_eq!(environment.cache(&["umount", &data]).status, Some(0));
    assert!(is_root());
}

#[test]
fn a_line_of_fstab_mounts_and_umount_unmounts() {
    if let Some(why) = no_fuse().or_else(|| no_program(&["mount.fuse3"])) {
        return skip("a_line_of_fstab_mounts", &why);
    }
    let environment = Environment::real(false).with_installed_programs();
    let [data, fast, fstab] = ["data", "fast", "fstab"].map(|name| environment.text(name));
    let mount = |options: &str| -> Ran {
        let line = format!("{data} {fast} fuse.eke-cache {options},nofail,x-systemd.automount 0 0\n");
        put(Path::new(&fstab), line.as_bytes());
        ran(environment.program().args(["mount", "--fstab", &fstab, &fast]))
    };
    let refused = mount("memory=64M,ro");
    assert!(
        refused.status != Some(0) && refused.stderr.contains("cannot be mounted ro"),
        "{}",
        refused.shown()
    );
    assert!(!environment.is_mounted(&fast));

    let mounted = mount("memory=64M,no_watch,no_remember");
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    let status = environment.cache(&["status", &fast, "--json"]);
    let cache = &status.json()["caches"][0];
    assert_eq!(cache["details"]["settings"]["watch"], false, "{cache}");
    assert_eq!(environment.read("fast/file").len(), 900_000);
    let umount = output(environment.program().args(["umount", &fast]));
    assert!(umount.status.success(), "{umount:?}");
    let pid = cache["pid"].as_u64().unwrap();
    wait_for("the supervisor to end", || !Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(environment.sockets(), Vec::<String>::new());
}
