//! What the mount namespaces show of a directory that a mount covers, or will cover when it returns. Pure.
//!
//! A mount may move if each namespace that sees the directory sees it at one place, on a mount that follows the directory's own
//! (mount_namespaces(7), shared subtrees) and permits no more than that; and there our mount alone while it serves, with the flags of
//! what it covers, else none. Then our mount comes and goes there as here. Otherwise programs would use files by both ways at once, or a
//! sandbox (`ReadOnlyPaths=` of systemd) would win or lose rights. No other mount may lead to the directory, to a part of it, or lie inside.
//!
//! A mount that comes has the flags that it has here also in a sandbox that shows everything read-only (`ProtectSystem=strict`), as every
//! new mount (systemd.exec(5), `ReadOnlyPaths=`). [`loose`] finds these, and [`super::sandboxes`] makes them as strict as what they cover.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use eke_cache_mounts::{Device, mounts};
use eke_linux::parse::escape::unescape;
use eke_linux::parse::mountinfo::{Mount, mount_of};

use super::backing_dir::BackingDir;

/// The mounts of a mount namespace.
#[derive(Debug)]
pub(super) struct View {
    /// The number of a process in it.
    pub pid: u32,
    /// A program in it, for messages; `None`: this process.
    pub of: Option<String>,
    /// Its mounts.
    pub mounts: Vec<Mount>,
}

/// Why the mount of the file system `cache` may not move, as a sentence. `serves`: it covers `dir`; else it stands aside.
pub(super) fn hindrance(views: &[View], dir: &BackingDir, cache: Device, serves: bool) -> Option<String> {
    let all = || views.iter().flat_map(|view| &view.mounts);
    let Some(home) = all().find(|m| m.id == dir.mount) else {
        return Some("the mount of the directory is not found".to_owned());
    };
    let (groups, cache) = (followers(home, all), Cache::of(cache));
    views.iter().find_map(|view| {
        let rule = Rule { mounts: &view.mounts, dir, home, groups: &groups, cache: &cache, serves };
        let why = rule.hindrance()?;
        Some(view.of.as_ref().map_or(why.clone(), |of| format!("in the mount namespace of {of}, {why}")))
    })
}

/// Our mounts that permit more than what they cover, one of each namespace.
pub(super) fn loose(views: &[View], dir: &BackingDir, cache: Device) -> Vec<Loose> {
    let all = || views.iter().flat_map(|view| &view.mounts);
    let Some(home) = all().find(|m| m.id == dir.mount) else { return Vec::new() };
    let (groups, cache) = (followers(home, all), Cache::of(cache));
    let mut found = Vec::new();
    for view in views {
        let rule = Rule { mounts: &view.mounts, dir, home, groups: &groups, cache: &cache, serves: true };
        found.extend(rule.loose().map(|(place, should)| Loose { pid: view.pid, place, should }));
    }
    found
}

/// A mount of ours that permits more than what it covers.
#[derive(Debug, PartialEq)]
pub(super) struct Loose {
    /// A process in its namespace.
    pub pid: u32,
    /// Where it is there.
    pub place: PathBuf,
    /// What it should not permit, by the names of mount(8).
    pub should: Vec<&'static str>,
}

/// The peer groups to which changes of a mount propagate: its own, those that follow it, and those that follow these.
fn followers<'a, M: Iterator<Item = &'a Mount>>(home: &Mount, all: impl Fn() -> M) -> HashSet<u64> {
    let mut groups: HashSet<u64> = home.peers.into_iter().collect();
    let next = |groups: &HashSet<u64>| {
        let follows = |m: &&Mount| m.master.is_some_and(|master| groups.contains(&master));
        all().filter(follows).filter_map(|m| m.peers).find(|group| !groups.contains(group))
    };
    while let Some(group) = next(&groups) {
        groups.insert(group);
    }
    groups
}

/// Our file system.
struct Cache {
    device: String,
    /// Where it stands aside, as the end of a path: a container may have all of the machine's tree inside its own.
    aside: PathBuf,
}

impl Cache {
    fn of(device: Device) -> Self {
        let aside = mounts::aside(device);
        let aside = aside.strip_prefix("/").unwrap_or(&aside).to_owned();
        Self { device: device.to_string(), aside }
    }
}

/// The rule, for one namespace.
struct Rule<'a> {
    mounts: &'a [Mount],
    dir: &'a BackingDir,
    home: &'a Mount,
    groups: &'a HashSet<u64>,
    cache: &'a Cache,
    serves: bool,
}

/// A mount with the directory, and where that is.
type Seen<'a> = (&'a Mount, PathBuf);

impl Rule<'_> {
    fn hindrance(&self) -> Option<String> {
        let all = self.mounts.iter().filter_map(|m| Some((m, self.dir.place_on(m)?)));
        let seen: Vec<Seen<'_>> = all.filter(|seen| self.on_top(seen).is_some()).collect();
        let is_home = |m: &Mount| m.id == self.home.id;
        if self.mounts.iter().any(is_home) && !seen.iter().any(|(m, _)| is_home(m)) {
            return Some(format!("another mount covers {}", self.dir.path.display()));
        }
        let other = self.mounts.iter().find_map(|m| self.of_mount(m, &seen));
        let twice = || Some(format!("the directory is mounted at {}, too", seen.get(1)?.1.display()));
        other.or_else(|| seen.iter().find_map(|seen| self.of_seen(seen))).or_else(twice)
    }

    /// The mount that programs meet at the place of the directory: its own one, or ours on it. `None`: another covers it.
    fn on_top(&self, (below, place): &Seen<'_>) -> Option<&Mount> {
        let is_ours = |m: &&Mount| self.is_ours(m) && m.parent == below.id;
        mount_of(place, self.mounts).filter(|m| m.id == below.id || is_ours(m))
    }

    /// Is it a mount of our file system, and not aside?
    fn is_ours(&self, mount: &Mount) -> bool {
        mount.device == self.cache.device && !mount.place.ends_with(&self.cache.aside)
    }

    fn of_seen(&self, seen: &Seen<'_>) -> Option<String> {
        let (below, place) = (seen.0, seen.1.display());
        if self.serves && self.on_top(seen)?.id == below.id {
            return Some(format!("{place} shows the directory without the cache"));
        }
        if !self.follows(below) {
            return Some(format!("{place} is of a mount that does not change as this one does"));
        }
        let [flags, home] = [below, self.home].map(restrictions);
        let is_idmapped = |flags: &[&str]| flags.contains(&"idmapped");
        let is_as_strict =
            home.iter().all(|flag| flags.contains(flag)) && is_idmapped(&flags) == is_idmapped(&home);
        (!is_as_strict).then(|| format!("{place} has other flags: {flags:?} instead of {home:?}"))
    }

    fn of_mount(&self, mount: &Mount, seen: &[Seen<'_>]) -> Option<String> {
        let at = mount.place.display();
        if self.is_ours(mount) {
            return match self.below(mount) {
                Some(below) if self.serves => (restrictions(below) != restrictions(mount))
                    .then(|| format!("the cache at {at} has other flags than the directory")),
                _ => Some(format!("it is mounted at {at}, too")),
            };
        }
        if self.dir.has_part(mount) {
            return Some(format!("a part of the directory is mounted at {at}"));
        }
        let places = || seen.iter().map(|(_, place)| place.as_path()).chain([self.dir.path.as_path()]);
        if seen.iter().any(|(_, place)| mount.place != *place && mount.place.starts_with(place)) {
            return Some(format!("another file system is mounted inside, at {at}"));
        }
        let uses = |layer: PathBuf| places().any(|place| layer.starts_with(place));
        layers(mount).into_iter().any(uses).then(|| format!("the overlay at {at} has its files there"))
    }

    /// The mount with the directory that one of ours covers, and goes with.
    fn below(&self, ours: &Mount) -> Option<&Mount> {
        let below = self.mounts.iter().find(|m| m.id == ours.parent && self.follows(m))?;
        (ours.top == Path::new("/") && self.dir.place_on(below)? == ours.place).then_some(below)
    }

    /// The place of our mount, and the flags that it should have, if it lacks one of what it covers.
    fn loose(&self) -> Option<(PathBuf, Vec<&'static str>)> {
        self.mounts.iter().filter(|m| self.is_ours(m)).find_map(|ours| {
            let (has, below) = (restrictions(ours), restrictions(self.below(ours)?));
            let lacks: Vec<_> = below.into_iter().filter(|flag| !has.contains(flag)).collect();
            (!lacks.is_empty()).then(|| (ours.place.clone(), [has, lacks].concat()))
        })
    }

    fn follows(&self, mount: &Mount) -> bool {
        let groups = [mount.peers, mount.master];
        mount.id == self.home.id || groups.iter().flatten().any(|group| self.groups.contains(group))
    }
}

/// What a mount does not permit, or shows otherwise.
fn restrictions(mount: &Mount) -> Vec<&'static str> {
    const ALL: [&str; 6] = ["ro", "nosuid", "nodev", "noexec", "nosymfollow", "idmapped"];
    let has = |flag: &&str| mount.flags.split(',').any(|has| has == *flag);
    ALL.into_iter().filter(has).collect()
}

/// The directories that an overlay shows, as they were named to mount(2).
fn layers(mount: &Mount) -> Vec<PathBuf> {
    let options = mount.options.split(',').filter(|_| mount.kind == "overlay");
    let dirs = options.filter_map(|option| option.split_once("dir=").or_else(|| option.split_once("dir+=")));
    let paths = dirs.flat_map(|(_, paths)| paths.split(':'));
    paths.map(|path| OsString::from_vec(unescape(path.as_bytes())).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_linux::parse::mountinfo::parse;

    const CACHE: Device = Device { major: 0, minor: 57 };
    /// The mounts here: the root, and our mount over /srv/data.
    const ROOT: &str = "1 0 8:1 / / rw,relatime shared:1 - ext4 a rw\n";
    const OURS: &str = "9 1 0:57 / /srv/data rw,relatime shared:9 - fuse.eke-cache /srv/data rw,user_id=0\n";
    const ASIDE: &str = "9 5 0:57 / /run/eke/caches/aside/0-57 rw - fuse.eke-cache /srv/data rw,user_id=0\n";

    /// Why the mount may not move, with these mounts here and in another namespace.
    fn why(here: &str, there: &str, serves: bool) -> Option<String> {
        let here = parse(here.as_bytes());
        let dir = BackingDir::new("/srv/data".into(), 1, &here);
        let views = [View { pid: 1, of: None, mounts: here }, other(there)];
        hindrance(&views, &dir, CACHE, serves)
    }

    fn other(mounts: &str) -> View {
        View { pid: 7, of: Some("x (7)".into()), mounts: parse(mounts.as_bytes()) }
    }

    /// Checks the reason with these mounts in the other namespace; an empty one: it may move.
    fn check_there(what: &str, there: &str, serves: bool, reason: &str) {
        let here = format!("{ROOT}{}", if serves { OURS } else { ASIDE });
        let found = why(&here, there, serves).unwrap_or_default();
        let is_right = if reason.is_empty() { found.is_empty() } else { found.contains(reason) };
        assert!(is_right && (found.is_empty() || found.contains("of x (7), ")), "{what}: {found:?}");
    }

    /// The other namespace's root, which follows ours, and our mount there.
    const SLAVE: &str = "21 20 8:1 / / rw master:1 - ext4 a rw\n";
    const COPY: &str = "29 21 0:57 / /srv/data rw master:9 - fuse.eke-cache x rw,user_id=0\n";
    const OTHER_ROOT: &str = "21 20 0:8 / / rw - overlay o rw\n";

    #[test]
    fn while_it_serves_each_namespace_has_it_alone() {
        let with = |more: &str| format!("{SLAVE}{COPY}{more}");
        let in_other = |more: &str| format!("{OTHER_ROOT}{more}");
        let host = SLAVE.replace("21 20", "22 21").replace("/ / rw", "/ /host rw");
        let on_host = COPY.replace("29 21", "29 22").replace("/srv", "/host/srv");
        let bind = "30 21 8:1 /srv/data /x rw master:1 - ext4 a rw\n";
        let part = bind.replace("/data", "/data/in");
        for (what, there, reason) in [
            ("it follows", with(""), ""),
            ("nothing of it", in_other(""), ""),
            ("a follower at another place", in_other(&format!("{host}{on_host}")), ""),
            ("hidden", with("30 29 0:8 / /srv/data ro - tmpfs t rw\n"), ""),
            ("hidden above", format!("{SLAVE}30 21 0:8 / /srv ro - tmpfs t rw\n"), ""),
            ("never covered", SLAVE.to_owned(), "without the cache"),
            ("private", with("").replace("master:1", ""), "it is mounted at /srv/data, too"),
            ("a container's", in_other(&COPY.replace("/srv", "")), "it is mounted at /data, too"),
            ("a part of ours", with("").replace("0:57 /", "0:57 /in"), "/srv/data, too"),
            ("a bind", with(bind), "/x shows the directory without"),
            ("a part", with(&part), "a part of the directory"),
            ("inside", with("30 29 0:8 / /srv/data/in rw - tmpfs t rw\n"), "inside, at /srv/data/in"),
        ] {
            check_there(what, &there, true, reason);
        }
    }

    #[test]
    fn while_it_is_aside_each_namespace_would_get_it() {
        let with = |more: &str| format!("{SLAVE}{more}");
        let bind = "30 21 8:1 /srv/data /srv/data rw - ext4 a rw\n";
        let overlay = "30 21 0:9 / /m rw - overlay o rw,lowerdir=/l:/srv/data/low,upperdir=/u\n";
        for (what, there, reason) in [
            ("it follows", with(ASIDE), ""),
            ("it follows a follower", SLAVE.replace("master:1", "shared:5 master:1"), ""),
            ("a copy is left", with(COPY), "it is mounted at /srv/data, too"),
            ("private", SLAVE.replace("master:1", "shared:7"), "does not change as this one does"),
            (
                "a container's",
                format!("{OTHER_ROOT}{}", bind.replace(" /srv/data rw", " /data rw")),
                "/data is of",
            ),
            ("ReadWritePaths=", with(bind), "/srv/data is of a mount"),
            ("two places", with("30 21 8:1 /srv /x rw master:1 - ext4 a rw\n"), "at /x/data, too"),
            ("a lower directory", with(overlay), "the overlay at /m"),
            ("other layers", with(&overlay.replace("/srv/data", "/srv/datax")), ""),
        ] {
            check_there(what, &there, false, reason);
        }
        let far = "31 20 8:1 /srv /x rw master:5 - ext4 a rw\n";
        check_there(
            "two groups away",
            &format!("{}{far}", SLAVE.replace("master:1", "shared:5 master:1")),
            false,
            "too",
        );
        check_there("of nobody's", &format!("{SLAVE}{far}"), false, "/x/data is of a mount");
    }

    #[test]
    fn a_sandbox_would_win_or_lose_rights() {
        let read_only = |text: &str| text.replace(" rw master", " ro,relatime master");
        for (what, there, serves, reason) in [
            ("ReadOnlyPaths=", format!("{SLAVE}{}", read_only(COPY)), true, "other flags than the directory"),
            (
                "ReadWritePaths=",
                format!("{}{COPY}", read_only(SLAVE)),
                true,
                "other flags than the directory",
            ),
            ("ProtectSystem=strict", read_only(&format!("{SLAVE}{COPY}")), true, ""),
            ("the same, aside", read_only(SLAVE), false, ""),
            ("other users' numbers", SLAVE.replace("rw master", "rw,idmapped master"), false, "idmapped"),
            ("only times", SLAVE.replace("rw master", "rw,noatime master"), false, ""),
        ] {
            check_there(what, &there, serves, reason);
        }
        let strict_here = ROOT.replace(" rw,", " ro,");
        let why = why(&format!("{strict_here}{ASIDE}"), SLAVE, false).unwrap();
        assert!(why.contains("[] instead of [\"ro\"]"), "it permits more there: {why}");
    }

    #[test]
    fn what_comes_into_a_sandbox_should_be_as_strict_as_what_it_covers() {
        let here = parse(format!("{ROOT}{OURS}").as_bytes());
        let dir = BackingDir::new("/srv/data".into(), 1, &here);
        let strict = SLAVE.replace(" rw master", " ro,nosuid master");
        let found = |there: &str| {
            let views =
                [View { pid: 1, of: None, mounts: parse(format!("{ROOT}{OURS}").as_bytes()) }, other(there)];
            let loose = loose(&views, &dir, CACHE);
            loose.iter().map(|l| (l.pid, l.should.join(","))).collect::<Vec<_>>()
        };
        assert_eq!(found(&format!("{strict}{COPY}")), [(7, "ro,nosuid".to_owned())]);
        assert_eq!(found(&format!("{strict}{}", COPY.replace(" rw master", " ro,nosuid master"))), []);
        assert_eq!(found(&format!("{SLAVE}{COPY}")), []);
        assert_eq!(found(&format!("{SLAVE}{}", COPY.replace(" rw master", " ro master"))), [], "stricter");
        assert_eq!(found(&format!("{strict}{}", COPY.replace("master:9", ""))).len(), 1);
        assert_eq!(found(&format!("{OTHER_ROOT}{COPY}")), [], "not on the directory");
    }

    #[test]
    fn mounts_of_this_namespace_count_too() {
        let with = |more: &str| why(&format!("{ROOT}{OURS}{more}"), "", true).unwrap_or_default();
        assert_eq!(with(""), "");
        assert_eq!(
            with("30 1 0:57 / /x rw shared:9 - fuse.eke-cache x rw,user_id=0\n"),
            "it is mounted at /x, too"
        );
        assert!(with("30 1 8:1 /srv /x rw shared:1 - ext4 a rw\n").contains("/x/data shows"));
        assert_eq!(with("30 9 0:8 / /srv/data rw - tmpfs t rw\n"), "another mount covers /srv/data");
        let private = ROOT.replace("shared:1", "");
        assert_eq!(why(&format!("{private}{OURS}"), "", true), None, "nobody else sees it");
        assert!(why(&format!("{private}{OURS}"), &private.replace("1 0 8:1", "2 0 8:1"), false).is_some());
        assert!(why(OURS, "", true).unwrap().contains("not found"));
    }

    proptest::proptest! {
        #[test]
        fn any_mounts_have_an_answer(ids in proptest::collection::vec((0..6_u64, 0..6_u64, 0..4_usize, 0..4_usize, 0..3_u64), 0..8)) {
            let places = ["/", "/srv", "/srv/data", "/srv/data/in"];
            let lines: String = ids.iter().map(|(id, parent, top, place, group)| {
                let device = if group % 2 == 0 { "8:1" } else { "0:57" };
                format!("{id} {parent} {device} {} {} rw shared:{group} master:{parent} - ext4 a rw\n", places[*top], places[*place])
            }).collect();
            let _ = (why(&lines, &lines, true), why(&lines, "", false));
        }
    }
}
