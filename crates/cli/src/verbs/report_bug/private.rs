//! Finds what belongs to this machine and its users, so that it can be replaced.

use eke_apply::{knob, state};
use eke_linux::Root;
use eke_linux::cgroup::limit;
use eke_linux::parse::mountinfo;
use eke_linux::read;
use eke_model::applied::Applied;
use eke_model::config::SwapSettings;
use eke_model::step::Step;
use eke_swap::facts::Facts;

use super::scrub::{DOMAINS, Private};

/// Uids of people: Debian's and systemd's range begins here, and 65534 is nobody.
const PEOPLE: std::ops::Range<u32> = 1000..65534;
/// Mount points that every machine has. Replaced in `/proc/sys/vm` they would hide the setting.
const USUAL: [&str; 11] =
    ["/proc", "/sys", "/dev", "/run", "/boot", "/home", "/usr", "/var", "/tmp", "/opt", "/etc"];

/// Names that say nothing, and that replaced would hide settings: `vm.swappiness`.
const SAY_NOTHING: [&str; 17] = [
    "root",
    "lost+found",
    "localhost",
    "localhost.localdomain",
    "localdomain",
    "(none)",
    "eke",
    "swap",
    "vm",
    "zram",
    "zswap",
    "memory",
    "linux",
    "debian",
    "ubuntu",
    "raspberrypi",
    "user",
];

/// All of it that can be found; `facts` are absent if the machine cannot be probed.
pub fn find(root: &Root, facts: Option<&Facts>, settings: &SwapSettings) -> Private {
    let mut paths = mount_points(root);
    paths.extend(read::swaps(root).unwrap_or_default().into_iter().map(|area| area.path));
    paths.extend([settings.writeback_device.clone(), settings.writeback_directory.clone()]);
    if let Some(facts) = facts {
        paths.extend(facts.areas.iter().map(|area| area.path.clone()));
        paths.extend(facts.hibernation.iter().map(|h| h.resume.clone()));
    }
    let public = facts.iter().flat_map(|f| &f.managers).flat_map(|m| m.found.clone()).collect();
    Private { hosts: hosts(root), users: users(root), paths, groups: groups(root, facts), public }
}

/// The groups that exist, and those that existed when the plan was applied.
fn groups(root: &Root, facts: Option<&Facts>) -> Vec<String> {
    let applied = state::load::<Applied>(root, state::APPLIED).unwrap_or_default();
    let steps = applied.plans.iter().flat_map(|plan| &plan.steps);
    let mut groups = limit::with_memory(root);
    groups.extend(steps.filter_map(|planned| group_of(&planned.step)));
    groups.extend(facts.iter().flat_map(|f| &f.memory_groups_v1).map(|g| g.group.clone()));
    groups.retain(|group| !SAY_NOTHING.contains(&group.as_str()));
    groups
}

/// The group whose setting a step changes.
fn group_of(step: &Step) -> Option<String> {
    let Step::Set { knob, target, .. } = step else { return None };
    let of_groups = knob::find(knob).is_some_and(|knob| knob.path.starts_with("sys/fs/cgroup"));
    (of_groups && !target.is_empty()).then(|| target.clone())
}

fn hosts(root: &Root) -> Vec<String> {
    let files = ["proc/sys/kernel/hostname", "proc/sys/kernel/domainname", "etc/hostname", "etc/mailname"];
    let names = files.iter().filter_map(|file| root.read(file).ok());
    let mut hosts: Vec<String> = names.flat_map(|name| with_parts(name.trim())).collect();
    let others = neighbours(root).into_iter().flat_map(|name| with_parts(&name));
    // The last part alone is a word: `lan`, `local`.
    hosts.extend(others.filter(|name| !DOMAINS.contains(&name.as_str())));
    hosts.retain(|name| name.len() > 1 && !SAY_NOTHING.contains(&name.as_str()));
    longest_first(hosts)
}

/// Names in `/etc/hosts`, and servers whose directories are mounted: `nas:/srv`, `//nas/srv`.
fn neighbours(root: &Root) -> Vec<String> {
    let hosts = root.read("etc/hosts").unwrap_or_default();
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let named = lines.flat_map(|line| line.split_ascii_whitespace().skip(1));
    let mut names: Vec<String> = named.filter(|name| !name.starts_with("ip6-")).map(str::to_owned).collect();
    let mounts = mountinfo::parse(&root.read_bytes("proc/self/mountinfo").unwrap_or_default());
    names.extend(mounts.iter().filter_map(|mount| server(&mount.source.to_string_lossy())));
    names
}

fn server(source: &str) -> Option<String> {
    let of_share = source.strip_prefix("//").and_then(|rest| rest.split('/').next());
    let host = of_share.or_else(|| Some(source.split_once(":/")?.0))?;
    let name = host.rsplit('@').next().unwrap_or(host);
    name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)).then(|| name.to_owned())
}

/// `lab7.example.org`, `lab7` and `example.org`.
fn with_parts(name: &str) -> Vec<String> {
    let parts = name.split_once('.').map(|(host, domain)| [host.to_owned(), domain.to_owned()]);
    std::iter::once(name.to_owned()).chain(parts.into_iter().flatten()).collect()
}

fn users(root: &Root) -> Vec<String> {
    let passwd = root.read("etc/passwd").unwrap_or_default();
    let mut names: Vec<String> = passwd.lines().filter_map(person).flatten().collect();
    let group = root.read("etc/group").unwrap_or_default();
    names.extend(group.lines().filter_map(group_of_people));
    names.extend(root.list("home").unwrap_or_default());
    if root.is_host() {
        names.extend(["SUDO_USER", "USER", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok()));
    }
    names.retain(|name| name.chars().count() > 1 && !SAY_NOTHING.contains(&name.as_str()));
    longest_first(names)
}

/// The names in a line of passwd(5): login, words of the full name, home directory.
fn person(line: &str) -> Option<Vec<String>> {
    let fields: Vec<&str> = line.split(':').collect();
    let [login, _, uid, _, full, home, ..] = fields[..] else { return None };
    PEOPLE.contains(&uid.parse().ok()?).then(|| {
        let mut names = vec![login.to_owned()];
        names.extend(full.split([' ', ',']).filter(|word| word.chars().count() > 2).map(str::to_owned));
        names.extend(home.rsplit('/').next().map(str::to_owned));
        names
    })
}

/// The name in a line of group(5).
fn group_of_people(line: &str) -> Option<String> {
    let [name, _, gid, ..] = line.split(':').collect::<Vec<_>>()[..] else { return None };
    PEOPLE.contains(&gid.parse().ok()?).then(|| name.to_owned())
}

fn longest_first(mut names: Vec<String>) -> Vec<String> {
    names.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

fn mount_points(root: &Root) -> Vec<String> {
    let text = root.read_bytes("proc/self/mountinfo").unwrap_or_default();
    let mounts = mountinfo::parse(&text);
    let both = mounts.iter().flat_map(|mount| [&mount.place, &mount.source]);
    let paths = both.map(|path| path.to_string_lossy().into_owned()).filter(|path| path.starts_with('/'));
    let below = |path: &str| ["/proc/", "/sys/", "/dev/"].iter().any(|dir| path.starts_with(dir));
    paths.filter(|path| !USUAL.contains(&path.as_str()) && !below(path)).collect()
}
