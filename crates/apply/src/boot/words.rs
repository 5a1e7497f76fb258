//! The words of a kernel command line. All other words stay byte for byte.

use std::ops::Range;

use eke_linux::error::{Error, Result};

/// `line` with our words: the first word that sets the same parameter is replaced in place, further ones are removed,
/// and missing words are added at the end of the kernel's part (words after ` -- ` are for init).
///
/// # Errors
/// An unclosed quotation mark.
pub fn with_words(line: &str, words: &[String]) -> Result<String> {
    let (line, missing) = replaced(line, words)?;
    appended(&line, &missing)
}

/// Replaces our words where `line` sets their parameters. Returns the line and the missing words.
///
/// # Errors
/// An unclosed quotation mark.
pub fn replaced(line: &str, words: &[String]) -> Result<(String, Vec<String>)> {
    let mut out = String::with_capacity(line.len());
    let mut missing = words.to_vec();
    let mut copied = 0;
    for span in kernel_part(line)? {
        let gap = &line[copied..span.start];
        let there = &line[span.clone()];
        copied = span.end;
        match words.iter().find(|w| key(w) == key(there)) {
            None => out.extend([gap, there]),
            Some(word) => {
                let first = missing.iter().any(|m| m == word);
                missing.retain(|m| m != word);
                out.extend(if first { [gap, word.as_str()] } else { ["", ""] });
            }
        }
    }
    out.push_str(&line[copied..]);
    Ok((out, missing))
}

/// Adds `words` at the end of the kernel's part.
///
/// # Errors
/// An unclosed quotation mark.
pub fn appended(line: &str, words: &[String]) -> Result<String> {
    if words.is_empty() {
        return Ok(line.to_owned());
    }
    let end = kernel_part(line)?.last().map_or(0, |span| span.end);
    let (before, after) = line.split_at(end);
    let space = if before.is_empty() { "" } else { " " };
    let gap = if after.is_empty() || after.starts_with(char::is_whitespace) { "" } else { " " };
    Ok(format!("{before}{space}{}{gap}{after}", words.join(" ")))
}

/// Edits a text in which some lines hold parameters; `start` finds their offset in such a line. The last such line gets
/// the missing words. `None` if there is no such line.
///
/// # Errors
/// An unclosed quotation mark.
pub fn in_lines(
    text: &str,
    words: &[String],
    start: impl Fn(&str) -> Option<usize>,
) -> Result<Option<String>> {
    let mut missing = words.to_vec();
    let mut last = None;
    let mut lines: Vec<String> = Vec::new();
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let Some(at) = start(line) else {
            lines.push(line.to_owned());
            continue;
        };
        let (edited, absent) = replaced(&line[at..], words)?;
        missing.retain(|word| absent.contains(word));
        lines.push(format!("{}{edited}", &line[..at]));
        last = Some((n, at));
    }
    let Some((n, at)) = last else { return Ok(None) };
    let (before, parameters) = lines[n].split_at(at);
    let parameters = appended(parameters, &missing)?;
    let parted =
        before.is_empty() || before.ends_with([' ', '\t']) || parameters.starts_with(char::is_whitespace);
    lines[n] = [before, if parted { "" } else { " " }, &parameters].concat();
    Ok(Some(lines.concat()))
}

/// Whether the line sets a parameter that our words set.
pub fn mentions(line: &str, words: &[String]) -> bool {
    line.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
        .any(|t| words.iter().any(|w| key(w) == key(t)))
}

/// A parameter's name. The kernel does not distinguish `-` and `_` in it.
fn key(word: &str) -> String {
    word.split('=').next().unwrap_or_default().replace('-', "_")
}

/// The ranges of the words before a lone `--`. Blanks inside quotation marks do not separate words.
fn kernel_part(line: &str) -> Result<Vec<Range<usize>>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let (mut start, mut quoted) = (None, false);
    for (n, c) in line.char_indices() {
        if c.is_whitespace() && !quoted {
            spans.extend(start.take().map(|s| s..n));
        } else {
            start.get_or_insert(n);
            quoted ^= c == '"';
        }
    }
    if quoted {
        return Err(Error::Refused(format!(
            "a quotation mark is not closed in the kernel command line `{}`",
            line.trim()
        )));
    }
    spans.extend(start.map(|s| s..line.len()));
    let end = spans.iter().position(|s| &line[s.clone()] == "--").unwrap_or(spans.len());
    spans.truncate(end);
    Ok(spans)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn words() -> Vec<String> {
        ["zswap.enabled=1", "zswap.compressor=zstd"].map(str::to_owned).into()
    }

    fn merged(line: &str) -> String {
        with_words(line, &words()).unwrap()
    }

    #[test]
    fn missing_words_come_last_and_present_ones_change_in_place() {
        assert_eq!(merged(""), "zswap.enabled=1 zswap.compressor=zstd");
        assert_eq!(merged("ro  quiet\n"), "ro  quiet zswap.enabled=1 zswap.compressor=zstd\n");
        assert_eq!(merged("zswap.enabled=0 ro"), "zswap.enabled=1 ro zswap.compressor=zstd");
        assert_eq!(
            merged("ro zswap.enabled zswap.enabled=N x"),
            "ro zswap.enabled=1 x zswap.compressor=zstd"
        );
        assert_eq!(merged("zswap.enabled_x=1"), "zswap.enabled_x=1 zswap.enabled=1 zswap.compressor=zstd");
    }

    #[test]
    fn words_for_init_and_quoted_words_are_unchanged() {
        assert_eq!(
            merged("ro -- zswap.enabled=0"),
            "ro zswap.enabled=1 zswap.compressor=zstd -- zswap.enabled=0"
        );
        assert_eq!(merged("-- 3"), "zswap.enabled=1 zswap.compressor=zstd -- 3");
        let quoted = "dyndbg=\"file a zswap.enabled=0 +p\"";
        assert!(merged(quoted).starts_with(&format!("{quoted} zswap.enabled=1")));
        assert!(with_words("x=\"y", &words()).is_err());
    }

    #[test]
    fn a_hyphen_is_an_underscore() {
        let words = ["zswap.max_pool_percent=40".to_owned()];
        assert_eq!(with_words("zswap.max-pool-percent=20", &words).unwrap(), "zswap.max_pool_percent=40");
    }

    proptest! {
        #[test]
        fn twice_is_once_and_other_words_stay(
            line in prop::collection::vec("[ a-z\"=-]{0,6}|zswap\\.(enabled|compressor)(=[a-z]{0,3})?|ü", 0..8),
            gap in "[ \t\n]{1,2}",
        ) {
            let line = line.join(&gap);
            let Ok(once) = with_words(&line, &words()) else { return Ok(()) };
            prop_assert_eq!(&with_words(&once, &words()).unwrap(), &once);
            let others = |l: &str| kernel_part(l).unwrap().into_iter().map(|s| l[s].to_owned())
                .filter(|t| !words().iter().any(|w| key(w) == key(t))).collect::<Vec<_>>();
            prop_assert_eq!(others(&line), others(&once));
            prop_assert!(kernel_part(&once).unwrap().len() == others(&line).len() + words().len());
        }
    }
}
