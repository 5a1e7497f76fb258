//! `SSH_OPTIONS` in a client's section of `ltsp.conf`. Everything else in the section and the file is kept.
//!
//! LTSP's pamltsp gives these options to the ssh of a login and to the sshfs of the home directory. A client's own section overrides
//! `[clients]` and `[common]`, so their options are copied into it.

use super::Setting;
use eke_ltsp_conf::{Entry, EntryKind, ParseError, entries, plain};

const NAME: &str = "SSH_OPTIONS";
const MARK: &str = "# eke link: ";

/// `text` with the setting in the section of the client with this hardware address.
///
/// # Errors
/// The line that does not parse, or options that the shell would evaluate.
pub fn with_options(text: &str, mac: &str, setting: &Setting<'_>) -> Result<String, ParseError> {
    let mut all = entries(text)?;
    let own = section(&all, mac);
    let before = value(&all, own.clone())?.map_or_else(|| inherited(&all, own.clone()), |v| Ok(Some(v)))?;
    let value = options(before.as_deref().unwrap_or_default(), setting);
    let lines = format!("{MARK}{}\n{NAME}={}\n", setting.comment(), quoted(&value));
    let entry = Entry { line: 0, text: lines, kind: EntryKind::Nothing };
    close(&mut all);
    match own {
        None => {
            let gap = if all.is_empty() { "" } else { "\n" };
            let head =
                Entry { line: 0, text: format!("{gap}[{mac}]\n"), kind: EntryKind::Section(mac.to_owned()) };
            all.extend([head, entry]);
        }
        Some(range) => put(&mut all, range, entry),
    }
    Ok(all.iter().map(|e| e.text.as_str()).collect())
}

type Range = std::ops::Range<usize>;

/// The entries of a section, without its head. Of several, the last one: it is the one that counts.
fn section(all: &[Entry], name: &str) -> Option<Range> {
    let is_it = |e: &Entry| matches!(&e.kind, EntryKind::Section(n) if n.eq_ignore_ascii_case(name));
    let head = all.iter().rposition(is_it)?;
    let rest = all[head + 1..].iter().position(|e| matches!(e.kind, EntryKind::Section(_)));
    Some(head + 1..rest.map_or(all.len(), |n| head + 1 + n))
}

fn assignment(all: &[Entry], range: &Range, of: &str) -> Option<(usize, String)> {
    let value = |n: usize| match &all[n].kind {
        EntryKind::Assignment { name, raw } if name == of => Some((n, raw.clone())),
        _ => None,
    };
    range.clone().rev().find_map(value)
}

fn value(all: &[Entry], range: Option<Range>) -> Result<Option<String>, ParseError> {
    let Some((at, raw)) = range.and_then(|r| assignment(all, &r, NAME)) else { return Ok(None) };
    let broken = |why| ParseError {
        line: all[at].line,
        why: format!("{NAME}={raw} cannot be changed, since {why}: add the ciphers there by hand"),
    };
    plain(&raw).map(Some).map_err(broken)
}

/// The options of the section that this one includes, of `[clients]`, or of `[common]`.
fn inherited(all: &[Entry], own: Option<Range>) -> Result<Option<String>, ParseError> {
    let included = own.and_then(|r| assignment(all, &r, "INCLUDE")).and_then(|(_, raw)| plain(&raw).ok());
    for name in [included.as_deref(), Some("clients"), Some("common")].into_iter().flatten() {
        if let Some(found) = value(all, section(all, name))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
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
            format!("[common]\nSSH_OPTIONS=-6\n[clients]\nSSH_OPTIONS=\"-p 7\"\n[{MAC}]\nHOSTNAME=pc1\n");
        let new = written(&inherited).unwrap();
        assert!(new.contains("HOSTNAME=pc1\n# eke link") && new.contains("\"-p 7 -oCiphers="), "{new}");
        let included = format!("[lab]\nSSH_OPTIONS=-4\n[{MAC}]\nINCLUDE=lab\n[clients]\nSSH_OPTIONS=-6\n");
        assert!(written(&included).unwrap().contains("\"-4 -oCiphers="));
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
        assert_eq!(written("[clients]\nwhat is this\n").unwrap_err().line, 2);
    }
}
