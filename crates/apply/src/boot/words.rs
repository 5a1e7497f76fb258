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
                // the word brought its own separator, which is gone with it
                out.push_str(if there.ends_with(ends_a_word) { " " } else { "" });
            }
        }
    }
    out.push_str(&line[copied..]);
    Ok((out, missing))
}

/// `line` without these words, each as it is written there, and without the blank before it.
///
/// # Errors
/// An unclosed quotation mark.
pub fn without(line: &str, words: &[String]) -> Result<String> {
    let mut out = String::with_capacity(line.len());
    let mut copied = 0;
    for span in kernel_part(line)? {
        if words.iter().any(|word| *word == line[span.clone()]) {
            let gap = &line[copied..span.start];
            out.push_str(gap.strip_suffix(is_space).unwrap_or(gap));
            copied = span.end;
        }
    }
    Ok(out + &line[copied..])
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
    let gap = if after.is_empty() || after.starts_with(is_space) { "" } else { " " };
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
    let parted = before.is_empty() || before.ends_with([' ', '\t']) || parameters.starts_with(is_space);
    lines[n] = [before, if parted { "" } else { " " }, &parameters].concat();
    Ok(Some(lines.concat()))
}

/// Whether the line sets a parameter that our words set.
pub fn mentions(line: &str, words: &[String]) -> bool {
    line.split(|c: char| is_space(c) || ends_a_word(c) || matches!(c, '"' | '\''))
        .any(|t| words.iter().any(|w| key(w) == key(t)))
}

/// A parameter's name. The kernel does not distinguish `-` and `_` in it, and drops quotation marks around the word.
fn key(word: &str) -> String {
    unquoted(word).split('=').next().unwrap_or_default().replace('-', "_")
}

fn unquoted(word: &str) -> &str {
    word.strip_prefix('"').map_or(word, |inner| inner.strip_suffix('"').unwrap_or(inner))
}

/// The kernel separates words at the blanks of ASCII (`isspace` of lib/ctype.c), not at those of Unicode.
fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}

/// The kernel's table of blanks has Latin-1's byte A0 too: it ends a word within a character of UTF-8 that ends with that byte (`à`).
fn ends_a_word(c: char) -> bool {
    c.encode_utf8(&mut [0; 4]).as_bytes().last() == Some(&0xa0)
}

/// The ranges of the words before a lone `--`, as `next_arg` of lib/cmdline.c finds them. Blanks inside quotation marks do not separate words.
fn kernel_part(line: &str) -> Result<Vec<Range<usize>>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let (mut start, mut quoted) = (None, false);
    for (n, c) in line.char_indices() {
        if is_space(c) && !quoted {
            spans.extend(start.take().map(|s| s..n));
            continue;
        }
        let first = *start.get_or_insert(n);
        quoted ^= c == '"';
        if ends_a_word(c) && !quoted {
            spans.push(first..n + c.len_utf8());
            start = None;
        }
    }
    if quoted {
        return Err(Error::Refused(format!(
            "a quotation mark is not closed in the kernel command line `{}`",
            line.trim()
        )));
    }
    spans.extend(start.map(|s| s..line.len()));
    let end = spans.iter().position(|s| unquoted(&line[s.clone()]) == "--").unwrap_or(spans.len());
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
    fn only_the_very_words_go() {
        let ours = words();
        let rest = |line: &str| without(line, &ours).unwrap();
        assert_eq!(rest("root=x  ro zswap.enabled=1 zswap.compressor=zstd\n"), "root=x  ro\n");
        assert_eq!(rest("zswap.enabled=1 ro"), " ro");
        let others = "zswap.enabled=0 zswap.compressor=zstd1 x=\"a zswap.enabled=1\" -- zswap.enabled=1";
        assert_eq!(rest(others), others);
        assert!(without("x=\"y", &ours).is_err());
    }

    #[test]
    fn a_hyphen_is_an_underscore() {
        let words = ["zswap.max_pool_percent=40".to_owned()];
        assert_eq!(with_words("zswap.max-pool-percent=20", &words).unwrap(), "zswap.max_pool_percent=40");
    }

    #[test]
    fn words_are_the_kernels() {
        let one_word = "x=a\u{2003}zswap.enabled=0\u{3000}b\u{85}c";
        assert_eq!(merged(one_word), format!("{one_word} zswap.enabled=1 zswap.compressor=zstd"));
        assert!(!mentions(one_word, &words()));
        for blank in ['\t', '\u{b}', '\u{c}', '\r', '\u{a0}', 'à'] {
            assert_eq!(
                merged(&format!("ro{blank}zswap.enabled=0 x")),
                format!("ro{blank}zswap.enabled=1 x zswap.compressor=zstd"),
                "{blank:?}"
            );
        }
    }

    #[test]
    fn a_word_that_goes_leaves_the_next_one_alone() {
        assert_eq!(merged("zswap.enabled=àx"), "zswap.enabled=1 x zswap.compressor=zstd");
        assert_eq!(
            merged("a zswap.enabled=0 b zswap.enabled=àx"),
            "a zswap.enabled=1 b x zswap.compressor=zstd"
        );
    }

    #[test]
    fn quotation_marks_around_a_word_are_not_part_of_it() {
        assert_eq!(merged("ro \"zswap.enabled=0 y\" x"), "ro zswap.enabled=1 x zswap.compressor=zstd");
        assert_eq!(merged("zswap.enabled=\"0 y\" x"), "zswap.enabled=1 x zswap.compressor=zstd");
        assert_eq!(
            merged("ro \"--\" zswap.enabled=0"),
            "ro zswap.enabled=1 zswap.compressor=zstd \"--\" zswap.enabled=0"
        );
    }

    proptest! {
        #[test]
        fn twice_is_once_and_other_words_stay(
            line in prop::collection::vec("[ a-z\"=-]{0,6}|zswap\\.(enabled|compressor)(=[a-z]{0,3})?|[üà\u{a0}\u{2003}]", 0..8),
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
