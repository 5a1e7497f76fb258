//! What is private: paths, addresses, names of machines, identifiers. Pure.

use std::net::{Ipv4Addr, Ipv6Addr};

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
pub(super) const IDENTIFIERS: [&str; 5] = ["uuid", "partuuid", "label", "partlabel", "serial"];
/// Units with a slash.
const UNITS: [&str; 13] = [
    "B/s", "kB/s", "KiB/s", "MB/s", "MiB/s", "GB/s", "GiB/s", "MiB/day", "pages/s", "s/s", "ms/s", "and/or",
    "I/O",
];
/// Ends of names of machines. With any end, files and settings would be such names: `eke.toml`.
pub const DOMAINS: [&str; 14] = [
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
pub(super) fn private_path(token: &str) -> Option<usize> {
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

/// `LABEL="my disk"`, of which the token has the first word: the key, and the rest.
pub(super) fn open_value(token: &str) -> Option<(&str, &str)> {
    let (key, value) = token.split_once('=')?;
    let word = key.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    let sign = value.chars().next().filter(|c| ['"', '\''].contains(c))?;
    (IDENTIFIERS.contains(&word.as_str()) && value.matches(sign).count() == 1).then_some((key, value))
}

pub(super) fn is_address(text: &str) -> bool {
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
pub(super) fn is_host(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
    name.split('.').all(is_label) && name.rsplit_once('.').is_some_and(|(_, end)| DOMAINS.contains(&end))
}

/// A unit of systemd's that a user or a program names.
pub(super) fn is_group(text: &str) -> bool {
    let usual = ["system.slice", "user.slice", "machine.slice", "init.scope"];
    [".slice", ".scope"].iter().any(|end| text.len() > end.len() && text.ends_with(end))
        && !usual.contains(&text)
}

pub(super) fn is_identifier(key: &str, value: &str) -> bool {
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
