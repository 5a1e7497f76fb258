//! `/etc/rc.local`: a block between two comments, before a last `exit 0`.

/// First line of a new file.
const SHEBANG: &str = "#!/bin/sh\n";
const BEGIN: &str = "# eke begin";
const END: &str = "# eke end";

/// The script with `block` instead of its previous block, else before its last `exit 0`, else at its end.
pub fn with_block(text: Option<&str>, block: &str) -> String {
    let text = text.unwrap_or(SHEBANG);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (from, to) = present(&lines).unwrap_or_else(|| {
        let at = last_exit(&lines).unwrap_or(lines.len());
        (at, at)
    });
    let before = lines[..from].concat();
    let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    [&before, newline, block, &lines[to..].concat()].concat()
}

/// The line range of the previous block: a beginning and the next end, without another beginning between them.
fn present(lines: &[&str]) -> Option<(usize, usize)> {
    let mut from = None;
    for (n, line) in lines.iter().enumerate() {
        if line.starts_with(BEGIN) {
            from = Some(n);
        } else if let (Some(from), true) = (from, line.starts_with(END)) {
            return Some((from, n + 1));
        }
    }
    None
}

/// The last command, if it is `exit 0`.
fn last_exit(lines: &[&str]) -> Option<usize> {
    let does = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let last = lines.iter().rposition(does)?;
    (lines[last].trim() == "exit 0").then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "# eke begin: x\nrun &\n# eke end\n";

    #[test]
    fn the_block_comes_before_the_end() {
        for (before, after) in [
            (None, format!("#!/bin/sh\n{BLOCK}")),
            (Some("#!/bin/sh -e\na\nexit 0\n"), format!("#!/bin/sh -e\na\n{BLOCK}exit 0\n")),
            (Some("a\n  exit 0 \n\n# end"), format!("a\n{BLOCK}  exit 0 \n\n# end")),
            (Some("exit 0\na"), format!("exit 0\na\n{BLOCK}")),
            (Some("a\n# eke begin: old\nb\n# eke end\nc\n"), format!("a\n{BLOCK}c\n")),
        ] {
            assert_eq!(with_block(before, BLOCK), after, "{before:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn twice_is_once(text in "((# eke begin|# eke end|exit 0|a| |\n|#|ü){0,12})") {
            let once = with_block(Some(&text), BLOCK);
            proptest::prop_assert_eq!(with_block(Some(&once), BLOCK), once);
        }
    }
}
