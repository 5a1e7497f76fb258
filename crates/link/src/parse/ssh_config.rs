//! The blocks of `ssh_config(5)`: their lines and settings. Evaluates host patterns alone.

/// A `Host` or `Match` block, or the part before the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line of its head, from 1.
    pub line: usize,
    /// The patterns of `Host`; `None` for `Match`, whose conditions are not read.
    pub patterns: Option<Vec<String>>,
    /// Keywords in lower case, with their values.
    pub settings: Vec<(String, String)>,
}

impl Block {
    /// Does it apply to this host? `false` for any `Match` block.
    pub fn applies_to(&self, host: &str) -> bool {
        let Some(patterns) = &self.patterns else { return false };
        let matches = |p: &String| glob(p.as_bytes(), host.as_bytes());
        let (not, yes): (Vec<&String>, Vec<&String>) = patterns.iter().partition(|p| p.starts_with('!'));
        !not.iter().any(|p| glob(&p.as_bytes()[1..], host.as_bytes())) && yes.into_iter().any(matches)
    }

    /// The value of a keyword.
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.settings.iter().find(|(key, _)| key == keyword).map(|(_, value)| value.as_str())
    }
}

/// All blocks, the nameless one at the start first.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = vec![Block { line: 1, patterns: Some(vec!["*".to_owned()]), settings: Vec::new() }];
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = keyword(line);
        let patterns = match key.as_str() {
            "host" => Some(value.split_whitespace().map(|p| p.trim_matches('"').to_owned()).collect()),
            "match" => None,
            _ => {
                if let Some(block) = blocks.last_mut() {
                    block.settings.push((key, value));
                }
                continue;
            }
        };
        blocks.push(Block { line: n + 1, patterns, settings: Vec::new() });
    }
    blocks
}

/// `Key value`, `Key=value`, `Key = "value"`.
fn keyword(line: &str) -> (String, String) {
    let end = line.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(line.len());
    let (key, value) = line.split_at(end);
    let value = value.trim_start().strip_prefix('=').unwrap_or(value).trim();
    (key.to_ascii_lowercase(), value.trim_matches('"').to_owned())
}

/// Matches `*` and `?` as ssh does (match.c): they match any character.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || c.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                (p, t) = (at + 1, from + 1);
                star = Some((at, from + 1));
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Does a system-wide configuration read the files of `ssh_config.d`?
pub fn includes_drop_ins(text: &str) -> bool {
    // an Include in a block applies to its hosts alone
    blocks(text).iter().take(1).any(|b| {
        b.settings.iter().any(|(key, value)| key == "include" && value.split_whitespace().any(is_drop_ins))
    })
}

/// ssh reads it before the system's; a missing file is no error.
const USERS: &str = "Include ~/.ssh/config\nMatch all\n";

/// A system-wide configuration as a text of its own that leaves one drop-in out: where it includes the directory of drop-ins, it names the
/// `others` alone. The user's configuration comes first, as without `-F`.
pub fn without_drop_in(text: &str, others: &[String]) -> String {
    let others: Vec<String> = others.iter().map(|path| format!("\"{path}\"")).collect();
    let include = |value: &str| {
        let words = value.split_whitespace().flat_map(|word| match word {
            word if is_drop_ins(word) => others.clone(),
            word if word.trim_matches('"').starts_with('/') => vec![word.to_owned()],
            // ssh reads such a name in another directory for a file of `-F`
            word => vec![format!("/etc/ssh/{word}")],
        });
        let words: Vec<String> = words.collect();
        if words.is_empty() { String::new() } else { format!("Include {}\n", words.join(" ")) }
    };
    let line = |line: &str| match keyword(line.trim()) {
        (key, value) if key == "include" => include(&value),
        _ => format!("{line}\n"),
    };
    format!("{USERS}{}", text.lines().map(line).collect::<String>())
}

/// Not those of a vendor, as openSUSE's in `/usr/etc`.
fn is_drop_ins(word: &str) -> bool {
    let word = word.trim_matches('"');
    word.strip_prefix("/etc/ssh/").unwrap_or(word).starts_with("ssh_config.d/*")
}

/// The line of the block that sets ciphers for this host, and their list.
pub fn ciphers_set(text: &str, host: &str) -> Option<(usize, String)> {
    blocks(text)
        .into_iter()
        .filter(|b| b.applies_to(host))
        .find_map(|b| b.get("ciphers").map(|value| (b.line, value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Include /etc/ssh/ssh_config.d/*.conf
# Ciphers none
Host web? !web9
  Ciphers=aes256-ctr
Match exec true
  Ciphers aes128-cbc
Host *
    SendEnv LANG LC_*
    ciphers \"aes128-ctr,aes192-ctr\"
";

    #[test]
    fn the_first_block_for_a_host_counts() {
        assert_eq!(ciphers_set(TEXT, "web1"), Some((3, "aes256-ctr".into())));
        assert_eq!(ciphers_set(TEXT, "web9"), Some((7, "aes128-ctr,aes192-ctr".into())));
        assert_eq!(ciphers_set("", "web9"), None);
        assert!(
            includes_drop_ins(TEXT) && !includes_drop_ins("Host a\nInclude /etc/ssh/ssh_config.d/*.conf\n")
        );
    }

    #[test]
    fn one_drop_in_is_left_out_and_the_others_are_named() {
        let others = ["/etc/ssh/ssh_config.d/60-hardening.conf".to_owned()];
        let rest =
            without_drop_in("Include own.conf /etc/ssh/ssh_config.d/*.conf\nHost *\n  Port 7\n", &others);
        let named =
            "Include /etc/ssh/own.conf \"/etc/ssh/ssh_config.d/60-hardening.conf\"\nHost *\n  Port 7\n";
        assert_eq!(rest, format!("{USERS}{named}"));
        let vendors = "Include /usr/etc/ssh/ssh_config.d/*.conf\n";
        assert!(!includes_drop_ins(vendors));
        assert_eq!(without_drop_in(vendors, &others), format!("{USERS}{vendors}"));
        assert_eq!(without_drop_in("Include ssh_config.d/*.conf\nPort 7\n", &[]), format!("{USERS}Port 7\n"));
    }

    #[test]
    fn patterns_are_those_of_ssh() {
        for (pattern, text, matches) in [
            ("*", "a", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("?", "", false),
            ("10.0.*.1", "10.0.7.1", true),
            ("A", "a", true),
            ("a**", "a", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), matches, "{pattern} {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text: String, host: String) {
            let _ = ciphers_set(&text, &host);
        }
    }
}
