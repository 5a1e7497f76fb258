//! `SSH_OPTIONS` in a client's section of `ltsp.conf`. Everything else in the section and the file is kept.
//!
//! LTSP's pamltsp gives these options to the ssh of a login and to the sshfs of the home directory. A client's own section overrides
//! `[clients]` and `[common]`, so their options are copied into it. Of the sections that match a client's hardware address LTSP reads the first
//! one alone, so a new section stands before a pattern that matches too, and includes that one.

use super::Setting;
use eke_ltsp_conf::sections::{self, Who, alternative, body, called, pattern};
use eke_ltsp_conf::{Entry, EntryKind, ParseError, entries, plain};

const NAME: &str = "SSH_OPTIONS";
const MARK: &str = "# eke link: ";

/// `text` with the setting in the section of the client with this hardware address.
///
/// # Errors
/// The line that does not parse, or options that the shell would evaluate.
pub fn with_options(text: &str, mac: &str, setting: &Setting<'_>) -> Result<String, ParseError> {
    let mut all = entries(text)?;
    let own = body(&all, mac);
    let value = options(&before(&all, mac, own.clone())?.unwrap_or_default(), setting);
    let lines = format!("{MARK}{}\n{NAME}={}\n", setting.comment(), quoted(&value));
    let entry = Entry { line: 0, text: lines, kind: EntryKind::Nothing };
    close(&mut all);
    match own {
        None => add(&mut all, mac, entry),
        Some(range) => put(&mut all, range, entry),
    }
    Ok(all.iter().map(|e| e.text.as_str()).collect())
}

/// Why the client does not get the options of its own section, by the line that wins; `None` if it gets them, or the text does not parse.
pub fn overruled(text: &str, mac: &str, ip: Option<String>) -> Option<String> {
    let all = entries(text).ok()?;
    let first = &all[called(&all, mac)?];
    let wins = pattern(first)?;
    if wins != mac {
        let (line, head, include) = (first.line, first.text.trim(), alternative(&wins, mac)?);
        return Some(format!(
            "line {line}, {head}, matches {mac} too and comes first: move [{mac}] above it, with INCLUDE={include}"
        ));
    }
    let (at, _) = assignment(&all, &body(&all, mac)?, NAME)?;
    let effective = sections::assigned(&all, &Who { mac: Some(mac.to_owned()), ip, name: None });
    let line = effective.get(NAME)?.line;
    (line != all[at].line)
        .then(|| format!("line {line} sets {NAME} too, in a section that LTSP reads after [{mac}]"))
}

type Range = std::ops::Range<usize>;

fn assignment(all: &[Entry], range: &Range, of: &str) -> Option<(usize, String)> {
    let value = |n: usize| match &all[n].kind {
        EntryKind::Assignment { name, raw } if name == of => Some((n, raw.clone())),
        _ => None,
    };
    range.clone().rev().find_map(value)
}

/// The client's options until now: those of its own section, or those that it inherits.
fn before(all: &[Entry], mac: &str, own: Option<Range>) -> Result<Option<String>, ParseError> {
    let own = own.and_then(|range| assignment(all, &range, NAME)).map(|(at, raw)| (all[at].line, raw));
    let inherited = || {
        let found = sections::assigned(all, &Who { mac: Some(mac.to_owned()), ..Who::default() });
        found.get(NAME).map(|value| (value.line, value.raw.clone()))
    };
    let Some((line, raw)) = own.or_else(inherited) else { return Ok(None) };
    let broken = |why| ParseError {
        line,
        why: format!("{NAME}={raw} cannot be changed, since {why}: add the ciphers there by hand"),
    };
    plain(&raw).map(Some).map_err(broken)
}

/// A new section: before the first one that matches the address too, which it includes; otherwise at the end.
fn add(all: &mut Vec<Entry>, mac: &str, entry: Entry) {
    let other = |text: String| Entry { line: 0, text, kind: EntryKind::Nothing };
    let Some(first) = called(all, mac) else {
        let gap = if all.is_empty() { "" } else { "\n" };
        all.extend([other(format!("{gap}[{mac}]\n")), entry]);
        return;
    };
    let wins = pattern(&all[first]).unwrap_or_default();
    let include = alternative(&wins, mac).unwrap_or_default();
    let at = above_comment(all, first);
    let head = other(format!("[{mac}]\nINCLUDE={include}\n"));
    all.splice(at..at, [head, entry, other("\n".to_owned())]);
}

/// The begin of the comment that belongs to a section, if an empty line is before it.
fn above_comment(all: &[Entry], head: usize) -> usize {
    let is_comment = |n: &usize| all[*n].text.trim_start().starts_with('#');
    let at = (0..head).rev().take_while(is_comment).last().unwrap_or(head);
    let is_apart = at == 0 || all[at - 1].text.trim().is_empty();
    if is_apart { at } else { head }
}

/// The options without their ciphers and MACs, then those of eke.
fn options(before: &str, setting: &Setting<'_>) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut words = before.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_ours = |text: &str| {
            let text = text.to_ascii_lowercase();
            text.starts_with("ciphers=")
                || text.starts_with("macs=")
                || (setting.compression.is_some() && text.starts_with("compression="))
        };
        match word {
            "-c" | "-m" => drop(words.next()),
            "-C" if setting.compression.is_some() => {}
            "-o" if words.peek().is_some_and(|next| is_ours(next)) => drop(words.next()),
            w if w.strip_prefix("-o").is_some_and(is_ours) => {}
            w => kept.push(w),
        }
    }
    let ciphers = format!("-oCiphers={}", setting.ciphers.join(","));
    let macs = format!("-oMACs={}", setting.macs.join(","));
    kept.push(&ciphers);
    if !setting.macs.is_empty() {
        kept.push(&macs);
    }
    kept.extend(
        setting
            .compression
            .map(|is_advised| if is_advised { "-oCompression=yes" } else { "-oCompression=no" }),
    );
    kept.join(" ")
}

/// Quotes a value for the shell. [`plain`] accepts characters that are special to the shell in single quotes alone, so the value has no single
/// quote then.
fn quoted(value: &str) -> String {
    let quote = if value.contains(['"', '$', '`', '\\']) { '\'' } else { '"' };
    format!("{quote}{value}{quote}")
}

/// Replaces the present options and eke's comment above them, or inserts after the section's last line that is not empty.
fn put(all: &mut Vec<Entry>, range: Range, entry: Entry) {
    if let Some((at, _)) = assignment(all, &range, NAME) {
        let is_marked = at > range.start && all[at - 1].text.starts_with(MARK);
        all.splice(at - usize::from(is_marked)..=at, [entry]);
        return;
    }
    let is_filled = |n: &usize| !all[*n].text.trim().is_empty();
    let at = range.clone().rev().find(is_filled).map_or(range.start, |n| n + 1);
    all.insert(at, entry);
}

/// Ends the last line.
fn close(all: &mut [Entry]) {
    if let Some(last) = all.last_mut().filter(|e| !e.text.ends_with('\n')) {
        last.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::tests::with;

    const MAC: &str = "52:54:00:aa:bb:cc";
    const OURS: &str = "# eke link: chacha20-poly1305, 61 MB/s limit: one thread of that CPU\nSSH_OPTIONS=\"-oCiphers=chacha20-poly1305@openssh.com,aes128-ctr -oMACs=umac-128-etm@openssh.com\"\n";

    fn written(text: &str) -> Result<String, ParseError> {
        with(|s| with_options(text, MAC, s))
    }

    #[test]
    fn a_new_section_is_added_and_the_rest_is_kept() {
        let text = "[server]\nNAT=1\n[clients]\nFSTAB_x=\"a\nb\"";
        assert_eq!(written(text).unwrap(), format!("{text}\n\n[{MAC}]\n{OURS}"));
        assert_eq!(written("").unwrap(), format!("[{MAC}]\n{OURS}"));
    }

    #[test]
    fn once_more_is_the_same() {
        let once = written("[clients]\nA=1\n").unwrap();
        assert_eq!(written(&once).unwrap(), once);
    }

    #[test]
    fn other_options_are_kept_and_inherited() {
        let own = format!(
            "[{}]\nHOSTNAME=pc1\nSSH_OPTIONS='-p 2222 -o Ciphers=3des-cbc -c x -oMacs=y -C'\n\n[z]\nA=1\n",
            MAC.to_uppercase()
        );
        let new = written(&own).unwrap();
        assert!(
            new.contains("SSH_OPTIONS=\"-p 2222 -C -oCiphers=chacha") && new.ends_with("\n\n[z]\nA=1\n"),
            "{new}"
        );
        let inherited =
            format!("[common]\nSSH_OPTIONS=\"-p 7\"\n[clients]\nSSH_OPTIONS=-6\n[{MAC}]\nHOSTNAME=pc1\n");
        let new = written(&inherited).unwrap();
        assert!(new.contains("HOSTNAME=pc1\n# eke link") && new.contains("\"-p 7 -oCiphers="), "{new}");
        let included = format!("[lab]\nSSH_OPTIONS=-4\n[{MAC}]\nINCLUDE=lab\n[clients]\nSSH_OPTIONS=-6\n");
        assert!(written(&included).unwrap().contains("\"-4 -oCiphers="));
    }

    /// LTSP's own ltsp.conf has such a pattern.
    #[test]
    fn a_new_section_stands_before_a_pattern_that_matches_too_and_keeps_its_options() {
        let text =
            "[clients]\n# A=1\n\n# All of 52:54\n[02:*|52:54:*]\nSSH_OPTIONS='-p 7'\nHOSTNAME=pc1\n\n[z]\n";
        let new = written(text).unwrap();
        let ours = OURS.replace("=\"-oC", "=\"-p 7 -oC");
        let (before, after) = text.split_at(text.find("# All").unwrap());
        assert_eq!(new, format!("{before}[{MAC}]\nINCLUDE=52:54:*\n{ours}\n{after}"));
        assert_eq!(overruled(&new, MAC, None), None);
        assert_eq!(written(&new).unwrap(), new);
        let close = "[clients]\n# A=1\n[52:54:*]\nB=1\n";
        assert!(
            written(close).unwrap().starts_with(&format!("[clients]\n# A=1\n[{MAC}]\nINCLUDE=52:54:*\n#"))
        );
    }

    #[test]
    fn the_line_that_wins_over_a_section_is_named() {
        let late = written(&format!("[52:54:*]\nA=1\n[{MAC}]\nB=1\n")).unwrap();
        let why = overruled(&late, MAC, None).unwrap();
        assert!(why.starts_with("line 1, [52:54:*], matches 52:54:00:aa:bb:cc too"), "{why}");
        assert!(why.ends_with("with INCLUDE=52:54:*"), "{why}");
        let by_name = "[pc*]\nSSH_OPTIONS=-4\n[clients]\nHOSTNAME=pc1\n[10.0.0.?]\nSSH_OPTIONS=-6\n";
        let new = written(by_name).unwrap();
        let of = |ip: Option<&str>| overruled(&new, MAC, ip.map(str::to_owned)).unwrap_or_default();
        assert!(of(None).starts_with("line 2 sets SSH_OPTIONS too"), "{}", of(None));
        let new = by_name.replace("HOSTNAME", "X");
        let new = written(&new).unwrap();
        assert_eq!(overruled(&new, MAC, None), None);
        assert!(overruled(&new, MAC, Some("10.0.0.5".into())).unwrap().starts_with("line 6 sets"));
    }

    #[test]
    fn decided_compression_replaces_the_present_one() {
        let text = format!("[{MAC}]\nSSH_OPTIONS=\"-C -p 7 -oCompression=yes\"\n");
        let decided = |is_advised| {
            with(|s| with_options(&text, MAC, &Setting { compression: is_advised, ..s.clone() })).unwrap()
        };
        let no = decided(Some(false));
        assert!(no.contains("\"-p 7 -oCiphers=") && no.contains(" -oCompression=no\""), "{no}");
        assert!(decided(None).contains("\"-C -p 7 -oCompression=yes -oCiphers="));
    }

    #[test]
    fn values_in_single_quotes_stay_literal() {
        for own in ["\"", "-oProxyCommand=\"$(reboot)\"", "`x`", "a\\b"] {
            let new = written(&format!("[{MAC}]\nSSH_OPTIONS='{own}'\n")).unwrap();
            assert!(new.contains(&format!("\nSSH_OPTIONS='{own} -oCiphers=")), "{new}");
            assert_eq!(written(&new).unwrap(), new);
        }
    }

    #[test]
    fn options_that_cannot_be_changed_are_reported_with_their_line() {
        let error = written(&format!("[{MAC}]\nA=1\nSSH_OPTIONS=\"$X -C\"\n")).unwrap_err();
        assert!(error.line == 3 && error.why.contains("by hand"), "{error}");
        assert_eq!(written("[clients]\nA=\"what is this\n").unwrap_err().line, 2);
    }
}
