//! The compressed page cache by the built programs: what it says when it cannot, and a mount from start to end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Ran, build_cache, is_root};
use eke_testkit::real::{lacking, no_program, skip};
use rustix::process::{Pid, Signal, kill_process};

/// Nobody (and nogroup), which only root can become.
const NOBODY: u32 = 65534;

/// A directory with `eke`, an `eke-cache` beside it, and a directory `data` with files, of the user who is to mount.
struct Ground {
    dir: tempfile::TempDir,
    nobody: bool,
    /// A process with mounts of its own, where all is run.
    inside: Option<Child>,
}

impl Ground {
    /// With an `eke-cache` that is this script.
    fn with_fake(script: &str) -> Self {
        let ground = Self::new(false);
        let fake = ground.path("bin/eke-cache");
        put(&fake, format!("#!/bin/sh\n{script}\n").as_bytes());
        std::fs::set_permissions(&fake, Permissions::from_mode(0o755)).unwrap();
        ground
    }

    /// With the real one, for root or for nobody.
    fn real(nobody: bool) -> Self {
        let beside = build_cache();
        let ground = Self::new(nobody);
        copy(&beside, &ground.path("bin/eke-cache"));
        ground
    }

    fn new(nobody: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ground = Self { dir, nobody, inside: None };
        for name in ["bin", "run", "data", "data/sub", "fast"] {
            std::fs::create_dir(ground.path(name)).unwrap();
        }
        copy(Path::new(env!("CARGO_BIN_EXE_eke")), &ground.path("bin/eke"));
        put(&ground.path("data/file"), "eke out. ".repeat(100_000).as_bytes());
        std::fs::set_permissions(ground.dir.path(), Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(ground.path("run"), Permissions::from_mode(0o700)).unwrap();
        if nobody {
            for name in ["run", "data", "data/sub", "data/file", "fast"] {
                std::os::unix::fs::chown(ground.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program();
        command.arg(self.path("bin/eke")).arg("cache").args(args);
        command
    }

    /// Runs what its arguments say, as the user and among the mounts of this ground.
    fn program(&self) -> Command {
        let mut command = Command::new(if self.inside.is_some() { "nsenter" } else { "env" });
        if let Some(inside) = &self.inside {
            command.args(["-t", &inside.id().to_string(), "-m", "--"]);
        }
        if self.nobody {
            command.args(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        command.stdin(Stdio::null()).current_dir("/");
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("LC_ALL", "C");
        command
    }

    /// Among mounts of its own, where anybody may open /dev/fuse, as udev has it.
    fn with_open_device(mut self) -> Self {
        let script =
            "mknod -m 666 \"$0\" c 10 229 && mount --bind \"$0\" /dev/fuse && echo ready && exec sleep 600";
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "--propagation", "private", "sh", "-c", script]).arg(self.path("device"));
        let mut inside = unshare.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(inside.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        self.inside = Some(inside);
        assert_eq!(ready, "ready\n");
        self
    }

    fn is_mounted(&self, place: &str) -> bool {
        let whose = self.inside.as_ref().map_or("self".to_owned(), |c| c.id().to_string());
        let list = std::fs::read_to_string(format!("/proc/{whose}/mountinfo")).unwrap();
        list.lines().any(|l| l.split(' ').nth(4) == Some(place))
    }

    /// `eke cache ...`.
    fn cache(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("eke starts").into()
    }

    /// All that was said, with what differs from run to run replaced.
    fn shown(&self, ran: &Ran) -> String {
        let mut text = ran.shown().replace(self.dir.path().to_str().unwrap(), "GROUND");
        for word in ["process", "worker", "in use:"] {
            text = without_numbers(&text, word);
        }
        text
    }

    /// In a mount namespace of its own where `hidden` is `/dev/null`.
    fn cache_without(&self, hidden: &str, args: &[&str]) -> Ran {
        let script = format!("mount --bind /dev/null {hidden} && exec \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", &script, "sh"]);
        if self.nobody {
            command.args(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        command.arg(self.path("bin/eke")).arg("cache").args(args).stdin(Stdio::null()).current_dir("/");
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("LC_ALL", "C");
        command.output().expect("unshare starts").into()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(inside) = &mut self.inside {
            // Its mounts go with it.
            let _ = inside.kill();
            let _ = inside.wait();
        }
        for name in ["data", "fast"] {
            for _ in 0..3 {
                let _ = rustix::mount::unmount(self.path(name), rustix::mount::UnmountFlags::DETACH);
            }
        }
    }
}

/// The number that follows a word, and everything up to the end of a line for a list of processes.
fn without_numbers(text: &str, word: &str) -> String {
    let line = |line: &str| match line.split_once(word) {
        Some((before, after)) => {
            let number = |c: char| c.is_ascii_digit();
            let at = after.find(number).unwrap_or(after.len());
            let end = at + after[at..].find(|c| !number(c)).unwrap_or(after.len() - at);
            format!("{before}{word}{}N{}", &after[..at], &after[end..])
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn put(path: &Path, bytes: &[u8]) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// A hard link where that can be had: the programs are large.
fn copy(from: &Path, to: &Path) {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).unwrap();
    }
}

fn signal(pid: u64, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !done() {
        assert!(std::time::Instant::now() < until, "waited 30 s for {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Root with FUSE, or the reason.
fn no_fuse() -> Option<String> {
    lacking(&["/dev/fuse"])
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    let cache = |args: &[&str]| common::eke(&[&["cache"], args].concat()).shown();
    insta::assert_snapshot!("no_verb", cache(&["mount"]));
    insta::assert_snapshot!("memory_zero", cache(&["mount", "/", "--memory", "0"]));
    insta::assert_snapshot!("memory_90_percent", cache(&["mount", "/", "--memory", "90%"]));
    insta::assert_snapshot!("memory_lots", cache(&["mount", "/", "--memory", "lots"]));
    insta::assert_snapshot!("compress_unknown", cache(&["mount", "/", "--compress", "later"]));
    insta::assert_snapshot!("umount_without_place", cache(&["umount"]));
    let much = common::eke(&["cache", "mount", "/tmp", "--memory", "900T"]);
    assert_eq!(much.status, Some(2), "{}", much.shown());
    assert!(much.stderr.contains("is more than 85 % of this machine's"), "{}", much.stderr);
    let root = common::eke(&["cache", "status", "--root", "/nonexistent"]);
    assert_eq!(root.status, Some(2), "{}", root.shown());
}

#[test]
fn every_verb_has_an_example() {
    for verb in ["mount", "umount", "status"] {
        let help = common::eke(&["cache", verb, "--help"]);
        assert!(help.status == Some(0) && help.stdout.contains("Example:"), "{}", help.shown());
    }
}

#[test]
fn what_is_no_directory_is_named() {
    let ground = Ground::with_fake("echo started >&2; exit 1");
    let [data, file, none] = ["data", "data/file", "none"].map(|n| ground.text(n));
    insta::assert_snapshot!("not_there", ground.shown(&ground.cache(&["mount", &none])));
    insta::assert_snapshot!("a_file", ground.shown(&ground.cache(&["mount", &file])));
    insta::assert_snapshot!("place_not_there", ground.shown(&ground.cache(&["mount", &data, &none])));
    insta::assert_snapshot!("nothing_mounted", ground.shown(&ground.cache(&["umount", &data])));
    insta::assert_snapshot!("no_status", ground.shown(&ground.cache(&["status", &data])));
}

/// What `eke-cache` may say or not say when it is started.
#[test]
fn a_start_that_fails_says_what_became_of_it() {
    if let Some(why) = no_fuse() {
        return skip("a_start_that_fails", &why);
    }
    for (name, script, status) in [
        ("says_failed", r#"cat >/dev/null; echo '{"error":{"what":"the disk is gone","kind":"failed"}}'"#, 1),
        ("says_usage", r#"cat >/dev/null; echo '{"error":{"what":"it makes no sense","kind":"usage"}}'"#, 2),
        (
            "says_not_permitted",
            r#"cat >/dev/null; echo '{"error":{"what":"you may not","kind":"not_permitted"}}'"#,
            4,
        ),
        ("says_nonsense", "cat >/dev/null; echo 'GET / HTTP/1.1'; exec sleep 60", 1),
        ("dies", "cat >/dev/null; echo 'first words' >&2; echo 'out of luck' >&2; exit 3", 1),
        ("dies_deaf", "exit 7", 1),
    ] {
        let ground = Ground::with_fake(script);
        let ran = ground.cache(&["mount", &ground.text("data")]);
        assert_eq!(ran.status, Some(status), "{name}: {}", ran.shown());
        if name != "dies_deaf" {
            insta::assert_snapshot!(format!("start_{name}"), ground.shown(&ran));
        }
    }
}

#[test]
fn what_is_asked_for_is_what_is_passed_on() {
    if let Some(why) = no_fuse() {
        return skip("what_is_asked_for", &why);
    }
    let ready =
        r#"{"ready":{"place":"/p","dir":"/d","pid":1,"worker_pid":2,"memory":1048576,"notes":["a note"]}}"#;
    let ground = Ground::with_fake(&format!("cat >\"$0.settings\"; echo '{ready}'"));
    let [data, fast] = ["data", "fast"].map(|n| ground.text(n));
    let asked = |args: &[&str]| -> serde_json::Value {
        let ran = ground.cache(&[&["mount"], args].concat());
        assert_eq!(ran.status, Some(0), "{}", ran.shown());
        serde_json::from_slice(&std::fs::read(ground.path("bin/eke-cache.settings")).unwrap()).unwrap()
    };
    let link = ground.path("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    let usual = asked(&[link.to_str().unwrap()]);
    assert_eq!(
        usual,
        serde_json::json!({
            "dir": data, "place": data, "memory": {"percent": 25}, "compress": "async", "others": true,
            "straight": "auto", "watch": true
        })
    );
    let options = ["--memory", "64M", "--compress", "sync", "--straight", "never", "--no-watch"];
    let all = asked(&[&[data.as_str(), fast.as_str(), "--no-allow-other"][..], &options].concat());
    assert_eq!(
        all,
        serde_json::json!({
            "dir": data, "place": fast, "memory": {"bytes": 64 << 20}, "compress": "sync", "others": false,
            "straight": "never", "watch": false
        })
    );
    let ran = ground.cache(&["mount", &data, "--json"]);
    assert_eq!(ran.json()["pid"], 1);
    insta::assert_snapshot!("ready", ground.shown(&ground.cache(&["mount", &data])));
}

/// Ctrl-C while it starts: the process is ended, and waited for.
#[test]
fn ctrl_c_during_the_start_leaves_nothing() {
    if let Some(why) = no_fuse() {
        return skip("ctrl_c_during_the_start", &why);
    }
    let ground = Ground::with_fake("cat >/dev/null; echo $$ >\"$0.pid\"; exec sleep 600");
    let mut eke = ground.command(&["mount", &ground.text("data")]);
    let eke = eke.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = || std::fs::read_to_string(ground.path("bin/eke-cache.pid")).ok()?.trim().parse::<u32>().ok();
    wait_for("the start", || pid().is_some());
    signal(eke.id().into(), Signal::INT);
    let ran = Ran::from(eke.wait_with_output().unwrap());
    insta::assert_snapshot!("interrupted", ground.shown(&ran));
    assert!(!Path::new(&format!("/proc/{}", pid().unwrap())).exists(), "it lives");
}

#[test]
fn without_fuse_it_says_so() {
    if let Some(why) = no_fuse().or_else(|| no_program(&["unshare", "mount", "setpriv"])) {
        return skip("without_fuse", &why);
    }
    let ground = Ground::with_fake("exit 1");
    let ran = ground.cache_without("/dev/fuse", &["mount", &ground.text("data")]);
    insta::assert_snapshot!("without_fuse", ground.shown(&ran));
}

/// A user's directory is no place for another's cache, and root's none for a user's.
#[test]
fn without_permission_it_says_so() {
    if let Some(why) = no_fuse() {
        return skip("without_permission", &why);
    }
    let ground = Ground::new(true);
    put(&ground.path("bin/eke-cache"), b"#!/bin/sh\nexit 1\n");
    std::os::unix::fs::chown(ground.path("data"), Some(0), Some(0)).unwrap();
    insta::assert_snapshot!("no_write", ground.shown(&ground.cache(&["mount", &ground.text("data")])));
    std::fs::set_permissions(ground.path("data"), Permissions::from_mode(0o700)).unwrap();
    insta::assert_snapshot!("no_read", ground.shown(&ground.cache(&["mount", &ground.text("data")])));
}

#[test]
fn without_fusermount_it_says_so() {
    let needs = || no_program(&["unshare", "mount", "setpriv", "fusermount3"]);
    if let Some(why) = no_fuse().or_else(needs) {
        return skip("without_fusermount", &why);
    }
    let ground = Ground::real(true);
    let ran = ground.cache_without("/usr/bin/fusermount3", &["mount", &ground.text("data")]);
    assert_eq!(ran.status, Some(1), "{}", ran.shown());
    assert!(ran.stderr.contains("fusermount3 is missing"), "{}", ran.stderr);
}

/// A mount from start to end, by whoever `ground` is for.
fn from_start_to_end(ground: &Ground) {
    let data = ground.text("data");
    let mounted = ground.cache(&["mount", &data, "--memory", "64M", "--json"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    assert_eq!(mounted.json()["place"], data.as_str());
    let pid = mounted.json()["pid"].as_u64().unwrap();
    assert!(ground.is_mounted(&data));
    again_is_refused(ground, &data);
    let read = ground.read("data/file");
    assert_eq!(read.len(), 900_000);

    let status = ground.cache(&["status", &data, "--json"]);
    let cache = &status.json()["caches"][0];
    assert_eq!(status.status, Some(0), "{}", status.shown());
    assert_eq!((cache["state"].as_str(), cache["pid"].as_u64()), (Some("serving"), Some(pid)));
    assert!(
        cache["worker_pid"].as_u64().unwrap() != pid && cache["details"]["worker"].is_object(),
        "{cache}"
    );
    let text = ground.cache(&["status"]).stdout;
    assert!(text.contains(&format!("{data} (over itself)\n  process    {pid}, worker ")), "{text}");

    busy_is_explained(ground, &data);
    let umount = ground.cache(&["umount", &data]);
    insta::assert_snapshot!("umount", ground.shown(&umount));
    assert!(!ground.is_mounted(&data));
    wait_for("the supervisor to end", || !Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(ground.read("data/file"), read);
    assert_eq!(ground.sockets(), Vec::<String>::new());
}

fn again_is_refused(ground: &Ground, data: &str) {
    insta::assert_snapshot!("again", ground.shown(&ground.cache(&["mount", data])));
}

fn busy_is_explained(ground: &Ground, data: &str) {
    let mut program = ground.program();
    let holds = program.args(["sh", "-c", "cd \"$0\" && echo there && exec sleep 600", data]);
    let mut holds = holds.stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(holds.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    insta::assert_snapshot!("busy", ground.shown(&ground.cache(&["umount", data])));
    assert!(ground.is_mounted(data));
    holds.kill().unwrap();
    holds.wait().unwrap();
}

impl Ground {
    /// As the user who mounts: without allow_other the mount is that one's alone.
    fn read(&self, name: &str) -> Vec<u8> {
        self.program().arg("cat").arg(self.path(name)).output().unwrap().stdout
    }

    /// What is left of sockets; root's lie where they do for all.
    fn sockets(&self) -> Vec<String> {
        let dir = self.path("run/eke/caches");
        let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
        names.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n != "log").collect()
    }
}

#[test]
fn root_mounts_looks_and_unmounts() {
    if let Some(why) = no_fuse() {
        return skip("root_mounts", &why);
    }
    from_start_to_end(&Ground::real(false));
}

#[test]
fn a_user_mounts_looks_and_unmounts() {
    let needs = || no_program(&["fusermount3", "unshare", "nsenter", "setpriv"]);
    if let Some(why) = no_fuse().or_else(needs) {
        return skip("a_user_mounts", &why);
    }
    from_start_to_end(&Ground::real(true).with_open_device());
}

#[test]
fn others_see_a_users_mount_and_no_details() {
    if let Some(why) = no_fuse().or_else(|| no_program(&["fusermount3"])) {
        return skip("others_see", &why);
    }
    let ground = Ground::real(false);
    let fast = ground.text("fast");
    let mounted = ground.cache(&["mount", &ground.text("data"), &fast, "--memory", "64M"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    let as_nobody = |args: &[&str]| -> Ran {
        ground.command(args).uid(NOBODY).gid(NOBODY).output().expect("eke starts").into()
    };
    insta::assert_snapshot!("not_yours", ground.shown(&as_nobody(&["status", &fast])));
    let cache = as_nobody(&["status", &fast, "--json"]).json()["caches"][0].clone();
    assert!(cache["details"].is_null() && cache["pid"].is_null() && cache["uid"] == 0, "{cache}");
    insta::assert_snapshot!("not_yours_umount", ground.shown(&as_nobody(&["umount", &fast])));
    let umount = ground.cache(&["umount", &fast]);
    assert_eq!(umount.status, Some(0), "{}", umount.shown());
}

/// The guard of the mount that this supervisor serves: it is in its process group.
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

/// All three are killed: what is left is seen, and goes.
#[test]
fn what_a_kill_leaves_is_seen_and_taken_away() {
    if let Some(why) = no_fuse() {
        return skip("what_a_kill_leaves", &why);
    }
    let ground = Ground::real(false);
    let data = ground.text("data");
    let mounted = ground.cache(&["mount", &data, "--memory", "64M", "--json"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    // Stopped, a worker cannot unmount when its supervisor is gone; killed with the guard, nothing is left that could.
    signal(guard(mounted.json()["pid"].as_u64().unwrap()), Signal::KILL);
    let [pid, worker] = ["pid", "worker_pid"].map(|k| mounted.json()[k].as_u64().unwrap());
    signal(worker, Signal::STOP);
    signal(pid, Signal::KILL);
    signal(worker, Signal::KILL);
    wait_for("both to end", || [pid, worker].iter().all(|p| !Path::new(&format!("/proc/{p}/fd/0")).exists()));
    assert!(ground.is_mounted(&data));
    insta::assert_snapshot!("dead_status", ground.shown(&ground.cache(&["status", &data])));
    assert_eq!(ground.cache(&["status", &data, "--json"]).json()["caches"][0]["state"], "dead");
    insta::assert_snapshot!("dead_mount", ground.shown(&ground.cache(&["mount", &data])));
    insta::assert_snapshot!("dead_umount", ground.shown(&ground.cache(&["umount", &data])));
    assert!(!ground.is_mounted(&data));
    assert_eq!(ground.read("data/file").len(), 900_000);
}

#[test]
fn in_the_foreground_ctrl_c_ends_it() {
    if let Some(why) = no_fuse() {
        return skip("in_the_foreground", &why);
    }
    let ground = Ground::real(false);
    let data = ground.text("data");
    let mut command = ground.command(&["mount", &data, "--memory", "64M", "--foreground"]);
    let mut eke = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(eke.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.contains("is served over itself"), "{first}");
    assert!(ground.is_mounted(&data));
    // Kept open, so that it is busy: Ctrl-C ends it all the same.
    let open = std::fs::File::open(ground.path("data/file")).unwrap();
    signal(eke.id().into(), Signal::INT);
    let status = eke.wait().unwrap();
    assert!(!ground.is_mounted(&data));
    drop(open);
    // The supervisor writes there, too, until it ends.
    let mut errors = String::new();
    eke.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(errors.contains("files are open there"), "{errors}");
}

#[test]
fn status_of_all_names_the_caches() {
    if let Some(why) = no_fuse() {
        return skip("status_of_all", &why);
    }
    let ground = Ground::real(false);
    let data = ground.text("data");
    let mounted = ground.cache(&["mount", &data, "--memory", "64M", "--json"]);
    assert_eq!(mounted.status, Some(0), "{}", mounted.shown());
    let status = common::eke(&["status", "--json"]).json();
    let caches = status["caches"].as_array().unwrap();
    let cache = caches.iter().find(|c| c["place"] == data.as_str()).unwrap();
    assert_eq!(cache["pid"], mounted.json()["pid"]);
    let text = common::eke(&[]).stdout;
    assert!(text.contains(&format!("cache       {data}: ")), "{text}");
    assert_eq!(ground.cache(&["umount", &data]).status, Some(0));
    assert!(is_root());
}
