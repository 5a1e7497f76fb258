//! Replaces what is private in text: names, paths, addresses, identifiers. Pure.
//!
//! A path that is not known to be eke's, the kernel's or a plain device's is replaced with the rest of its line, because
//! it may contain blanks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use eke_model::text::one_line;
use serde_json::Value;

/// Files and directories whose names say nothing about a user. One that ends with `/` stands for all below it.
const PUBLIC_PATHS: [&str; 24] = [
    "/proc/sys/",
    "/proc/swaps",
    "/proc/pressure",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/crypto",
    "/proc/config.gz",
    "/proc/modules",
    "/proc/self/oom_score_adj",
    "/etc/fuse.conf",
    "/sys/kernel/",
    "/sys/module/",
    "/sys/class/zram-control",
    "/run/eke",
    "/run/eke/agent.sock",
    "/run/eke/agent-root.sock",
    "/run/eke/journal.jsonl",
    "/run/eke/agent.log",
    "/run/systemd/system",
    "/var/lib/eke",
    "/var/lib/eke/files.jsonl",
    "/etc/eke/eke.toml",
    "/etc/fstab",
    "/sbin/init",
];
/// Keys whose values identify a disk or a machine.
const IDENTIFIERS: [&str; 5] = ["uuid", "partuuid", "label", "partlabel", "serial"];
/// Units with a slash.
const UNITS: [&str; 13] = [
    "B/s", "kB/s", "KiB/s", "MB/s", "MiB/s", "GB/s", "GiB/s", "MiB/day", "pages/s", "s/s", "ms/s", "and/or",
    "I/O",
];
const USER: &str = "<user>";
const HOST: &str = "<host>";
const ADDRESS: &str = "<address>";
const IDENTIFIER: &str = "<identifier>";

/// What belongs to this machine and its users.
#[derive(Debug, Clone, Default)]
pub struct Private {
    /// The machine's name, short and long.
    pub hosts: Vec<String>,
    /// Names of users, and parts of their full names.
    pub users: Vec<String>,
    /// Paths that are replaced wherever they occur: mount points, swap files. `/` is not one.
    pub paths: Vec<String>,
    /// Names of control groups.
    pub groups: Vec<String>,
    /// Files of known programs, which are the same on every machine.
    pub public: Vec<String>,
}

/// Replaces private text, each path by the same number.
#[derive(Debug, Default)]
pub struct Scrubber {
    private: Private,
    paths: Vec<String>,
    /// How often each kind was replaced.
    pub replaced: BTreeMap<&'static str, usize>,
}

impl Scrubber {
    /// Replaces what `private` lists, and what looks private.
    pub fn new(mut private: Private) -> Self {
        // A longer path may contain a shorter one.
        for names in [&mut private.paths, &mut private.groups] {
            names.retain(|name| name.trim_matches('/').len() > 1 && !is_public(name));
            names.sort_by_key(|name| std::cmp::Reverse(name.len()));
            names.dedup();
        }
        Self { private, ..Self::default() }
    }

    /// Every string of a document; its keys are eke's.
    pub fn document(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(all) => all.into_iter().map(|value| self.document(value)).collect(),
            Value::Object(all) => all.into_iter().map(|(key, value)| (key, self.document(value))).collect(),
            other => other,
        }
    }

    /// Some lines.
    pub fn text(&mut self, text: &str) -> String {
        let lines: Vec<String> = text.lines().map(|line| self.line(line)).collect();
        lines.join("\n")
    }

    fn line(&mut self, line: &str) -> String {
        let mut line = one_line(line).into_owned();
        for path in self.private.paths.clone() {
            line = self.without(&line, &path);
        }
        for group in self.private.groups.clone() {
            if has_word(&line, &group) {
                self.count("control groups");
                line = replace_word(&line, &group, "<group>");
            }
        }
        let mut shown = String::new();
        for (n, token) in line.split(' ').enumerate() {
            if n > 0 {
                shown.push(' ');
            }
            let core = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
            let known = self.private.public.iter().any(|path| path == core);
            if let Some(start) = private_path(token).filter(|_| !known) {
                shown += &token[..start];
                shown += &self.number(&token[start..]);
                shown += &kernels_answer(&line);
                return shown;
            }
            shown += &self.token(token);
        }
        shown
    }

    /// A known path, wherever it stands alone.
    fn without(&mut self, line: &str, path: &str) -> String {
        if !has_word(line, path) {
            return line.to_owned();
        }
        let number = self.number(path);
        replace_word(line, path, &number)
    }

    fn number(&mut self, path: &str) -> String {
        self.count("paths");
        let known = self.paths.iter().position(|p| p == path).unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.paths.len() - 1
        });
        format!("<path {}>", known + 1)
    }

    fn token(&mut self, token: &str) -> String {
        let core = token.trim_matches(|c: char| !c.is_alphanumeric() && c != ':');
        let (key, value) = core.rsplit_once('=').unwrap_or(("", core));
        if is_address(value) {
            self.count("addresses");
            return token.replace(core, ADDRESS);
        }
        if is_identifier(key, value) {
            self.count("identifiers");
            return token.replace(core, IDENTIFIER);
        }
        self.names(token)
    }

    fn names(&mut self, token: &str) -> String {
        let mut shown = token.to_owned();
        for (names, instead) in [(self.private.hosts.clone(), HOST), (self.private.users.clone(), USER)] {
            for name in names.iter().filter(|name| !name.is_empty()) {
                if has_word(&shown, name) {
                    self.count("names");
                    shown = replace_word(&shown, name, instead);
                }
            }
        }
        shown
    }

    fn count(&mut self, what: &'static str) {
        *self.replaced.entry(what).or_default() += 1;
    }
}

/// Whether nobody's name is in this path: eke's own, the kernel's, or a device with the kernel's name.
pub fn is_public(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !path.chars().all(plain) || path.contains("/..") {
        return false;
    }
    let listed = |public: &str| path == public || (public.ends_with('/') && path.starts_with(public));
    let program = ["/usr/bin/", "/usr/local/bin/"].iter().find_map(|dir| path.strip_prefix(dir));
    PUBLIC_PATHS.iter().any(|public| listed(public))
        || path.strip_prefix("/dev/").is_some_and(is_kernels_name)
        || path.strip_prefix("/sys/block/").is_some_and(|rest| is_kernels_name(first_part(rest)))
        || program.is_some_and(|name| name.starts_with("eke") && !name.contains('/'))
}

fn first_part(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// `sda2`, `nvme0n1p3`, `zram0`, `fuse`: no names that an administrator gave.
fn is_kernels_name(name: &str) -> bool {
    const DISKS: [&str; 14] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "zram", "loop", "dm-", "md", "mtdblock", "nbd", "fuse",
        "sr",
    ];
    let short =
        name.len() <= 12 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    short && DISKS.iter().any(|disk| name.starts_with(disk))
}

/// Where a path begins in a token that is neither public nor a unit.
fn private_path(token: &str) -> Option<usize> {
    // `~5 %` is no home directory.
    let home = |(at, _): &(usize, &str)| {
        let next = token[at + 1..].chars().next();
        next.is_some_and(|c| c == '/' || c.is_alphabetic())
    };
    let home = token.match_indices('~').find(home).map(|(at, _)| at);
    let begin = token.find('/').into_iter().chain(home).min()?;
    let path = token[begin..].trim_end_matches(|c: char| !c.is_alphanumeric() && c != '/');
    let core = token.trim_matches(|c: char| !c.is_alphanumeric());
    if UNITS.contains(&core) || is_ratio(core) || path.len() < 2 || is_public(path) {
        return None;
    }
    // Also what stands before the slash of a relative path.
    let relative = token[..begin].rfind(|c: char| "(\"'`<[={,:".contains(c)).map_or(0, |at| at + 1);
    Some(if relative < begin { relative } else { begin })
}

fn is_ratio(token: &str) -> bool {
    token.split('/').all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// ` ... (os error 2)` at the end of a line says nothing private.
fn kernels_answer(line: &str) -> String {
    let answer = line.rfind("(os error ").map(|at| &line[at..]);
    let number = answer.and_then(|a| a.strip_prefix("(os error ")?.split(')').next()?.parse::<u32>().ok());
    number.map_or_else(|| " ...".to_owned(), |n| format!(" ... (os error {n})"))
}

fn is_address(text: &str) -> bool {
    let bare = text.trim_matches(|c| c == '[' || c == ']');
    let host = bare.split('/').next().unwrap_or_default();
    let before_port = host.rsplit_once(':').map_or(host, |(before, _)| before);
    if text.contains('@') || before_port.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let colons = host.matches(':').count();
    let is_hex = |part: &str| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
    let mac = [':', '-'].iter().any(|sign| host.split(*sign).count() == 6 && host.split(*sign).all(is_hex));
    mac || (colons >= 2 && host.parse::<Ipv6Addr>().is_ok())
}

fn is_identifier(key: &str, value: &str) -> bool {
    let key = key.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    if IDENTIFIERS.contains(&key.as_str()) {
        return true;
    }
    let parts = || value.split(|c: char| !c.is_alphanumeric());
    let is_hex = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
    // A UUID, a checksum, a WWN; a long decimal number is a size.
    let long_hex = |part: &str| {
        let hex = part.trim_start_matches("0x");
        hex.len() >= 12 && is_hex(hex) && hex.chars().any(|c| c.is_ascii_alphabetic())
    };
    let lengths: Vec<usize> = parts().filter(|p| is_hex(p)).map(str::len).collect();
    let uuid = lengths.windows(5).any(|w| w == [8, 4, 4, 4, 12]);
    let serial = |part: &str| {
        part.len() >= 10
            && part.chars().any(|c| c.is_ascii_digit())
            && part.chars().any(|c| c.is_ascii_uppercase())
            && part.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
    };
    uuid || parts().any(|part| long_hex(part) || serial(part))
}

fn is_border(c: Option<char>) -> bool {
    c.is_none_or(|c| !c.is_alphanumeric())
}

/// The places of a word, with any case, and with no letter or digit beside it.
fn places(text: &str, word: &str) -> Vec<usize> {
    // Only ASCII changes its case here, so that places are those of the text.
    let (lower, word) = (text.to_ascii_lowercase(), word.to_ascii_lowercase());
    let alone = |at: &usize| {
        is_border(lower[..*at].chars().next_back()) && is_border(lower[at + word.len()..].chars().next())
    };
    lower.match_indices(&word).map(|(at, _)| at).filter(alone).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    !places(text, word).is_empty()
}

fn replace_word(text: &str, word: &str, instead: &str) -> String {
    let mut shown = text.to_owned();
    for at in places(text, word).into_iter().rev() {
        shown.replace_range(at..at + word.len(), instead);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubber() -> Scrubber {
        let own = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        Scrubber::new(Private {
            hosts: own(&["lab7.example.org", "lab7"]),
            users: own(&["anna", "Müller"]),
            paths: own(&["/", "/srv", "/srv/www", "/dev/sda2", "/swap file"]),
            groups: own(&["secret.slice"]),
            public: own(&["/etc/default/zramswap"]),
        })
    }

    fn scrubbed(text: &str) -> String {
        scrubber().text(text)
    }

    #[test]
    fn what_says_nothing_about_a_person_stays() {
        for text in [
            "set vm.swappiness to 180",
            "zram: 4.0 GiB, 1.5 KiB/s, ratio 3.1 (and/or 12/4), 2026-11-23T04:40:38.123Z INFO 12:34:56",
            "no /sys/class/zram-control (modprobe zram)",
            "/dev/sda2: 0 B used of 2.0 GiB, priority -2; /dev/nvme0n1p3 and /sys/block/zram0/disksize",
            "zram-tools (/etc/default/zramswap, not started)",
            "/usr/bin/eke-agent answers on /run/eke/agent.sock",
            "no recomp_algorithm (Linux 6.2, CONFIG_ZRAM_MULTI_COMP), CAP_SYS_ADMIN, 104857600000 bytes",
        ] {
            assert_eq!(scrubbed(text), text);
        }
    }

    #[test]
    fn names_are_replaced_in_any_case_and_only_as_words() {
        assert_eq!(
            scrubbed("LAB7.example.org, lab7: Anna's disk, hannah"),
            "<host>, <host>: <user>'s disk, hannah"
        );
        assert_eq!(scrubbed("6.1.0-anna Müller"), "6.1.0-<user> <user>");
    }

    #[test]
    fn known_paths_keep_their_sentence_and_others_end_their_line() {
        assert_eq!(
            scrubbed("/srv/www on /srv, and /swap file full"),
            "<path 2> on <path 3>, and <path 1> full"
        );
        assert_eq!(
            scrubbed("cannot open /home/anna/My Diary.txt: No such file (os error 2)"),
            "cannot open <path 1> ... (os error 2)"
        );
        assert_eq!(scrubbed("read \"diary/2026.txt\" twice"), "read \"<path 1> ...");
        assert_eq!(scrubbed("in ~/x y"), "in <path 1> ...");
        assert_eq!(scrubbed("/proc/sys/../../home/x"), "<path 1> ...");
        assert_eq!(scrubbed("/dev/mapper/lab-swap, /dev/disk"), "<path 1> ...");
        assert_eq!(scrubbed("group secret.slice waits"), "group <group> waits");
    }

    #[test]
    fn addresses_and_identifiers_are_replaced() {
        for text in [
            "192.168.1.7",
            "10.0.0.1:22",
            "fe80::1",
            "2001:db8:0:1:2:3:4:5",
            "52:54:00:12:34:56",
            "52-54-00-12-34-56",
            "anna@lab7",
        ] {
            assert_eq!(scrubbed(&format!("from {text}, then")), format!("from {ADDRESS}, then"), "{text}");
        }
        for text in [
            "UUID=0a1b",
            "root=LABEL=diary",
            "resume=UUID=7f3c9a52-0d1e-4b6f-8a77-1c2d3e4f5a6b",
            "7f3c9a52-0d1e-4b6f-8a77-1c2d3e4f5a6b",
            "0x5000c500a1b2c3d4",
            "S3Z9NB0K1234",
            "wwn-0x5002538e40a1b2c3",
        ] {
            assert!(scrubbed(text).contains(IDENTIFIER), "{text}: {}", scrubbed(text));
        }
    }

    #[test]
    fn the_replaced_are_counted() {
        let mut scrubber = scrubber();
        scrubber.document(serde_json::json!({ "a": ["anna on lab7", "/srv"], "b": { "c": "10.0.0.1" } }));
        let counted: Vec<_> = scrubber.replaced.into_iter().collect();
        assert_eq!(counted, [("addresses", 1), ("names", 2), ("paths", 1)]);
    }
}
