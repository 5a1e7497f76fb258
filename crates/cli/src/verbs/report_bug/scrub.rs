//! Replaces what is private in text: names, paths, addresses, identifiers. Pure.
//!
//! A path that is not known to be eke's, the kernel's or a plain device's is replaced with the rest of its line, because
//! it may contain blanks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

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
/// What stands between two words of a token: `10.0.0.1,10.0.0.2`.
const SEPARATORS: [char; 12] = [',', ';', '(', ')', '<', '>', '"', '\'', '`', '|', '{', '}'];
/// Ends of names of machines. With any end, files and settings would be such names: `eke.toml`.
pub(super) const DOMAINS: [&str; 14] = [
    "com",
    "org",
    "net",
    "edu",
    "gov",
    "local",
    "localdomain",
    "lan",
    "home",
    "box",
    "internal",
    "intranet",
    "corp",
    "arpa",
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
        let mut line = one_line(&line.replace('\t', " ")).into_owned();
        for path in self.private.paths.clone() {
            line = self.without(&line, &path);
        }
        for group in self.private.groups.clone() {
            if has_word(&line, &group) {
                self.count("control groups");
                line = replace_word(&line, &group, "<group>");
            }
        }
        self.tokens(&line)
    }

    /// A line without known paths and groups. A path that is not known may contain blanks, so it ends the line; so does a value in quotes.
    fn tokens(&mut self, line: &str) -> String {
        let (mut shown, mut before) = (String::new(), "");
        for (n, token) in line.split(' ').enumerate() {
            if n > 0 {
                shown.push(' ');
            }
            let core = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
            let known = self.private.public.iter().any(|path| path == core);
            if let Some(start) = private_path(token).filter(|_| !known) {
                shown += &self.token(&token[..start], before);
                shown += &self.number(&token[start..]);
                return shown + &kernels_answer(line);
            }
            if let Some((key, _)) = open_value(token) {
                self.count("identifiers");
                return format!("{shown}{key}={IDENTIFIER}{}", kernels_answer(line));
            }
            shown += &self.token(token, before);
            before = token;
        }
        shown
    }

    /// A known path, wherever it stands alone.
    fn without(&mut self, line: &str, path: &str) -> String {
        let at = places_of_path(line, path);
        if at.is_empty() {
            return line.to_owned();
        }
        let number = self.number(path);
        replace_at(line, at, &number)
    }

    fn number(&mut self, path: &str) -> String {
        self.count("paths");
        let known = self.paths.iter().position(|p| p == path).unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.paths.len() - 1
        });
        format!("<path {}>", known + 1)
    }

    /// A word and what stands around it; `before` is the word before, which may say what it is (`serial: 2038471293`).
    fn token(&mut self, token: &str, before: &str) -> String {
        let said = before.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
        let is_value = before.ends_with(':') || token.contains(|c: char| c.is_ascii_digit() || c == '"');
        if IDENTIFIERS.contains(&said.as_str()) && is_value {
            self.count("identifiers");
            return IDENTIFIER.to_owned();
        }
        let mut shown = String::new();
        for part in token.split_inclusive(SEPARATORS) {
            let sign = part.chars().next_back().filter(|c| SEPARATORS.contains(c));
            let bare = sign.map_or(part, |sign| part.strip_suffix(sign).unwrap_or(part));
            shown += &self.part(bare);
            shown.extend(sign);
        }
        self.names(&shown)
    }

    /// What stands between two separators.
    fn part(&mut self, part: &str) -> String {
        let core = part.trim_matches(|c: char| !c.is_alphanumeric() && !"[]:".contains(c));
        let core = core.strip_suffix(':').filter(|bare| !bare.ends_with(':')).unwrap_or(core);
        let (key, value) = core.rsplit_once('=').unwrap_or(("", core));
        let (what, instead) = if is_address(value) {
            ("addresses", ADDRESS)
        } else if is_identifier(key, value) {
            ("identifiers", IDENTIFIER)
        } else if is_host(value) {
            ("names", HOST)
        } else if is_group(value) {
            ("control groups", "<group>")
        } else {
            return part.to_owned();
        };
        self.count(what);
        part.replace(core, instead)
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
    // Also what stands before the slash of a relative path, and the machine before `:/`.
    let relative = token[..begin].rfind(|c: char| "(\"'`<={,".contains(c)).map_or(0, |at| at + 1);
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

/// `LABEL="my disk"`, of which the token has the first word: the key, and the rest.
fn open_value(token: &str) -> Option<(&str, &str)> {
    let (key, value) = token.split_once('=')?;
    let word = key.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    let sign = value.chars().next().filter(|c| ['"', '\''].contains(c))?;
    (IDENTIFIERS.contains(&word.as_str()) && value.matches(sign).count() == 1).then_some((key, value))
}

fn is_address(text: &str) -> bool {
    text.contains('@')
        || is_hardware_address(text)
        || is_ip(text)
        || text.split('-').any(|part| part.parse::<Ipv4Addr>().is_ok())
}

/// With a port, a prefix's length or a zone, too.
fn is_ip(text: &str) -> bool {
    let host = text.split(['/', '%']).next().unwrap_or_default();
    let in_brackets = host.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(host);
    let before_port = host.rsplit_once(':').map_or(host, |(before, _)| before);
    let is_v6 = |text: &str| text.matches(':').count() >= 2 && text.parse::<Ipv6Addr>().is_ok();
    before_port.parse::<Ipv4Addr>().is_ok() || is_v6(in_brackets)
}

/// Six bytes or more (Ethernet, InfiniBand), or as switches write it: `5254.0012.3456`.
fn is_hardware_address(text: &str) -> bool {
    let are_hex = |sign: char, digits: usize| {
        text.split(sign).all(|part| part.len() == digits && part.chars().all(|c| c.is_ascii_hexdigit()))
    };
    let bytes = [':', '-'].iter().any(|sign| text.split(*sign).count() >= 6 && are_hex(*sign, 2));
    bytes || (text.split('.').count() == 3 && are_hex('.', 4))
}

/// A machine's long name.
fn is_host(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
    name.split('.').all(is_label) && name.rsplit_once('.').is_some_and(|(_, end)| DOMAINS.contains(&end))
}

/// A unit of systemd's that a user or a program names.
fn is_group(text: &str) -> bool {
    let usual = ["system.slice", "user.slice", "machine.slice", "init.scope"];
    [".slice", ".scope"].iter().any(|end| text.len() > end.len() && text.ends_with(end))
        && !usual.contains(&text)
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
    uuid || parts().any(|part| long_hex(part) || serial(part) || is_base64(part))
}

/// A key, or its fingerprint.
fn is_base64(part: &str) -> bool {
    let has = |is: fn(&char) -> bool| part.chars().any(|c| is(&c));
    part.len() >= 20
        && has(char::is_ascii_digit)
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
}

fn is_border(c: Option<char>) -> bool {
    c.is_none_or(|c| !c.is_alphanumeric())
}

/// The places of a word, with any case, and with no letter or digit beside it.
fn places(text: &str, word: &str) -> Vec<Range<usize>> {
    let all = text.char_indices().filter_map(|(at, _)| Some(at..at + length_of(&text[at..], word)?));
    let alone = |place: &Range<usize>| {
        is_border(text[..place.start].chars().next_back()) && is_border(text[place.end..].chars().next())
    };
    all.filter(alone).collect()
}

/// How long the word is at the begin of the text, in its case there.
fn length_of(text: &str, word: &str) -> Option<usize> {
    let mut rest = text.chars();
    let is_it =
        |c: char| rest.next().is_some_and(|here| here == c || here.to_lowercase().eq(c.to_lowercase()));
    (!word.is_empty() && word.chars().all(is_it)).then(|| text.len() - rest.as_str().len())
}

/// The places of a path that is not a part of another one: neither `nas:/srv` nor `/srv-of-anna` is `/srv`.
fn places_of_path(text: &str, path: &str) -> Vec<Range<usize>> {
    let joins = |c: char| c.is_alphanumeric() || "-_+~%#@/".contains(c);
    let goes_on = |rest: &str| {
        let mut next = rest.chars();
        let first = next.next();
        first.is_some_and(joins) || (matches!(first, Some('.' | ':')) && next.next().is_some_and(joins))
    };
    let begins = |before: &str| !before.ends_with(|c: char| joins(c) || c == '.' || c == ':');
    let mut all = places(text, path);
    all.retain(|place| begins(&text[..place.start]) && !goes_on(&text[place.end..]));
    all
}

fn has_word(text: &str, word: &str) -> bool {
    !places(text, word).is_empty()
}

fn replace_word(text: &str, word: &str, instead: &str) -> String {
    replace_at(text, places(text, word), instead)
}

fn replace_at(text: &str, places: Vec<Range<usize>>, instead: &str) -> String {
    let mut shown = text.to_owned();
    places.into_iter().rev().for_each(|place| shown.replace_range(place, instead));
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
    fn what_stands_beside_a_path_is_not_shown() {
        for (text, shown) in [
            ("no answer of nas:/export/x now", "no answer of <path 1> ..."),
            ("copy anna@lab7:/srv/x", "copy <path 1> ..."),
            ("from 10.0.0.1:/srv", "from <path 1> ..."),
            ("a,10.0.0.1,lab7,/home/x", "a,<address>,<host>,<path 1> ..."),
            ("/srv/www-of-telemachus is", "<path 1> ..."),
            ("/swap file.laertes x", "<path 1> ..."),
            ("in /srv/www/loom, and", "in <path 1> ..."),
            ("on /srv: full, on /srv.", "on <path 1>: full, on <path 1>."),
        ] {
            assert_eq!(scrubbed(text), shown, "{text}");
        }
    }

    #[test]
    fn addresses_and_names_are_found_in_any_company() {
        for (text, shown) in [
            ("a\t10.0.0.1\tb", "a <address> b"),
            ("10.0.0.1,10.0.0.2;lab7", "<address>,<address>;<host>"),
            ("[2001:db8::7]:22 [fe80::1] fe80::1%eth0", "<address> <address> <address>"),
            ("(10.0.0.1)->(10.0.0.2): 10.0.0.1-10.0.0.9", "(<address>)->(<address>): <address>"),
            ("5254.0012.3456, 80:00:02:08:fe:80:00:00", "<address>, <address>"),
            ("host=nas.home.arpa: db.corp.example.com:5432.", "<host>: <host>."),
            ("MÜLLER müller", "<user> <user>"),
            ("serial 2038471293, UUID: a1b2-c3d4", "serial <identifier> UUID: <identifier>"),
            ("LABEL=\"Anna's disk\" is", "LABEL=<identifier> ..."),
            ("SHA256:AbCdEfGh1jKlMnOpQrStUvWxYz", "<identifier>"),
            ("app-firefox-77.scope in user.slice", "<group> in user.slice"),
        ] {
            assert_eq!(scrubbed(text), shown, "{text}");
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
