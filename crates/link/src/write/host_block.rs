//! A marked `Host` block in a file of `ssh_config.d`. Everything else in that file is kept.

use super::Setting;

const BEGIN: &str = "# eke link: begin ";

/// The host's name in ssh's configuration: without the user, the scheme and the port.
pub fn pattern(host: &str) -> &str {
    let host = host.strip_prefix("ssh://").map_or(host, |url| {
        let url = url.split('/').next().unwrap_or(url);
        match url.rsplit_once(':') {
            Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
            _ => url,
        }
    });
    host.rsplit_once('@').map_or(host, |(_, name)| name)
}

/// ssh takes the first list that it reads, and this file's before the distribution's.
const AFTER: &str =
    "after a change of the crypto policy or of FIPS mode: `sudo eke link --undo`, or measure again";

/// The block alone, with its marks.
pub fn block(host: &str, setting: &Setting<'_>) -> String {
    let (begin, end) = marks(host);
    let mut text = format!(
        "{begin}\nHost {}\n    # {}\n    # {AFTER}\n    Ciphers {}\n",
        pattern(host),
        setting.comment(),
        setting.ciphers.join(",")
    );
    if !setting.macs.is_empty() {
        text += &format!("    MACs {}\n", setting.macs.join(","));
    }
    if let Some(is_advised) = setting.compression {
        text += if is_advised { "    Compression yes\n" } else { "    Compression no\n" };
    }
    text + &end + "\n"
}

/// `text` with the block for this host, in place of eke's older one or at the end.
///
/// # Errors
/// `Host` would take the name for several hosts, a pattern or none; or somebody has broken the marks apart, by their line.
pub fn with_block(text: &str, host: &str, setting: &Setting<'_>) -> Result<String, String> {
    if !is_one_host(pattern(host)) {
        return Err(format!("{:?} is not the name of one host for Host in ssh_config", pattern(host)));
    }
    let block = block(host, setting);
    let (begin, end) = marks(host);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let find = |mark: &str| lines.iter().position(|l| l.trim() == mark);
    match (find(&begin), find(&end)) {
        (None, None) => {
            let mut whole = text.to_owned();
            if !whole.is_empty() && !whole.ends_with('\n') {
                whole.push('\n');
            }
            if !whole.is_empty() {
                whole.push('\n');
            }
            Ok(whole + &block)
        }
        (Some(from), Some(to)) if from < to => {
            Ok(lines[..from].concat() + &block + &lines[to + 1..].concat())
        }
        (from, to) => {
            let line = from.or(to).unwrap_or(0) + 1;
            Err(format!(
                "line {line}: eke's marks \"{begin}\" and \"{end}\" do not belong together any more: remove that block by hand"
            ))
        }
    }
}

/// The list of ciphers of eke's own block for this host.
pub fn own_ciphers(text: &str, host: &str) -> Option<Vec<String>> {
    own_list(text, host, "Ciphers ")
}

/// The list of MACs of eke's own block for this host.
pub fn own_macs(text: &str, host: &str) -> Option<Vec<String>> {
    own_list(text, host, "MACs ")
}

fn own_list(text: &str, host: &str, keyword: &str) -> Option<Vec<String>> {
    let (begin, end) = marks(host);
    let block = text.lines().skip_while(|l| l.trim() != begin).take_while(|l| l.trim() != end);
    let list = block.filter_map(|l| l.trim().strip_prefix(keyword)).next();
    list.map(|list| list.split(',').map(|name| name.trim().to_owned()).collect())
}

/// The hosts of eke's own blocks.
pub fn hosts(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.trim().strip_prefix(BEGIN)).collect()
}

/// Is it a literal name (ssh_config(5), "PATTERNS")?
fn is_one_host(name: &str) -> bool {
    let is_special = |c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '*' | '?' | '!' | ',' | '"' | '\'' | '#' | '\\')
    };
    !name.is_empty() && !name.contains(is_special)
}

fn marks(host: &str) -> (String, String) {
    let host = pattern(host);
    (format!("{BEGIN}{host}"), format!("# eke link: end {host}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::ssh_config::ciphers_set;
    use crate::write::tests::with;

    const NEW: &str = "\
# eke link: begin web1
Host web1
    # chacha20-poly1305, 61 MB/s limit: one thread of that CPU
    # after a change of the crypto policy or of FIPS mode: `sudo eke link --undo`, or measure again
    Ciphers chacha20-poly1305@openssh.com,aes128-ctr
    MACs umac-128-etm@openssh.com
# eke link: end web1
";

    #[test]
    fn a_block_is_added_and_replaced_and_the_rest_is_kept() {
        let first = with(|s| with_block("", "root@web1", s)).unwrap();
        assert_eq!(first, NEW);
        let second = with(|s| with_block("Host x\n  Port 7", "web1", s)).unwrap();
        assert_eq!(second, format!("Host x\n  Port 7\n\n{NEW}"));
        let other = with(|s| with_block(&second, "web2", s)).unwrap();
        let old = other.replace("61 MB/s", "30 MB/s").replace("aes128-ctr", "aes256-ctr");
        assert_eq!(with(|s| with_block(&with_block(&old, "web1", s).unwrap(), "web2", s)).unwrap(), other);
        assert!(ciphers_set(&other, "web2").unwrap().1.starts_with("chacha20"));
        let own = own_ciphers(&other, "root@web2").unwrap();
        assert_eq!(own, ["chacha20-poly1305@openssh.com", "aes128-ctr"]);
        assert_eq!(own_macs(&other, "web2").unwrap(), ["umac-128-etm@openssh.com"]);
        assert_eq!(hosts(&other), ["web1", "web2"]);
        let of_others = "Host web3\n  Ciphers aes256-ctr\n";
        assert_eq!(own_ciphers(&format!("{other}{of_others}"), "web3"), None);
    }

    #[test]
    fn compression_is_written_if_it_was_decided() {
        with(|s| {
            let compressed = block("web1", &Setting { compression: Some(true), ..s.clone() });
            assert!(compressed.contains("\n    Compression yes\n# eke link: end"), "{compressed}");
            assert!(
                block("web1", &Setting { compression: Some(false), ..s.clone() }).contains("Compression no")
            );
            assert!(!block("web1", s).contains("Compression"));
        });
    }

    #[test]
    fn broken_marks_are_reported() {
        let broken = NEW.replace("# eke link: end web1\n", "");
        let error = with(|s| with_block(&broken, "web1", s)).unwrap_err();
        assert!(error.starts_with("line 1: "), "{error}");
    }

    #[test]
    fn a_name_that_means_none_or_several_hosts_is_refused() {
        for host in ["", "a@", "ssh://:22", "a b", "*", "web?", "!web1", "a\nHost b", "a#b", "\"a\""] {
            assert!(
                with(|s| with_block("", host, s)).unwrap_err().contains("not the name of one host"),
                "{host:?}"
            );
        }
    }

    #[test]
    fn the_pattern_is_the_name_that_ssh_compares() {
        for (host, name) in [
            ("web1", "web1"),
            ("a@web1", "web1"),
            ("ssh://a@web1:2222", "web1"),
            ("ssh://web1/", "web1"),
            ("::1", "::1"),
        ] {
            assert_eq!(pattern(host), name, "{host}");
        }
    }
}
