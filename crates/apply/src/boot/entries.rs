//! Loader entries (`loader/entries/*.conf`: systemd-boot, and GRUB where it reads them), and the file from which
//! `kernel-install` writes new ones.

use super::words;
use eke_linux::error::Result;

/// The source of a new kernel's command line for `kernel-install`.
pub const KERNEL_CMDLINE: &str = "etc/kernel/cmdline";

/// An entry's text with our words in its `options`; an entry that starts no Linux is unchanged.
///
/// # Errors
/// An unclosed quotation mark.
pub fn with_words(text: &str, ours: &[String]) -> Result<String> {
    if !text.lines().any(|line| value_of(line, "linux").is_some()) {
        return Ok(text.to_owned());
    }
    let edited = words::in_lines(text, ours, |line| value_of(line, "options"))?;
    Ok(edited.unwrap_or_else(|| super::shell::with_line(text, &format!("options {}", ours.join(" ")))))
}

/// An entry's text without these words in its `options`.
///
/// # Errors
/// An unclosed quotation mark.
pub fn without_words(text: &str, ours: &[String]) -> Result<String> {
    text.split_inclusive('\n').map(|line| without(line, value_of(line, "options"), ours)).collect()
}

/// The text of `/etc/kernel/cmdline` without these words.
///
/// # Errors
/// An unclosed quotation mark.
pub fn cmdline_without_words(text: &str, ours: &[String]) -> Result<String> {
    text.split_inclusive('\n').map(|line| without(line, parameters(line), ours)).collect()
}

fn without(line: &str, from: Option<usize>, ours: &[String]) -> Result<String> {
    let Some(at) = from else { return Ok(line.to_owned()) };
    Ok(format!("{}{}", &line[..at], words::without(&line[at..], ours)?))
}

/// The text of `/etc/kernel/cmdline` with our words; lines that begin with `#` are comments.
///
/// # Errors
/// An unclosed quotation mark.
pub fn cmdline_with_words(text: &str, ours: &[String]) -> Result<String> {
    let edited = words::in_lines(text, ours, parameters)?;
    Ok(edited.unwrap_or_else(|| super::shell::with_line(text, &ours.join(" "))))
}

/// Where a line of `/etc/kernel/cmdline` has parameters.
fn parameters(line: &str) -> Option<usize> {
    (!line.trim().is_empty() && !line.trim_start().starts_with('#')).then_some(0)
}

/// Offset of the value in `key value`.
fn value_of(line: &str, key: &str) -> Option<usize> {
    let rest = line.trim_start().strip_prefix(key)?;
    rest.starts_with(char::is_whitespace).then(|| line.len() - rest.trim_start_matches([' ', '\t']).len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::words::tests::words;

    const OURS: &str = "zswap.enabled=1 zswap.compressor=zstd";

    #[test]
    fn the_last_options_line_gets_them() {
        let text = "title\tA\n# options no\noptions root=x\nlinux /vmlinuz\noptions  $tuned_params ro\n";
        let expected = text.replace("params ro", &format!("params ro {OURS}"));
        assert_eq!(with_words(text, &words()).unwrap(), expected);
        let without = "linux /vmlinuz";
        assert_eq!(with_words(without, &words()).unwrap(), format!("linux /vmlinuz\noptions {OURS}\n"));
        let empty = "linux /v\noptions\n";
        assert_eq!(with_words(empty, &words()).unwrap(), format!("linux /v\noptions {OURS}\n"));
    }

    #[test]
    fn an_entry_without_linux_is_unchanged() {
        let text = "title shell\nefi /shellx64.efi\noptions x\n";
        assert_eq!(with_words(text, &words()).unwrap(), text);
    }

    #[test]
    fn the_next_kernels_line_gets_them() {
        assert_eq!(cmdline_with_words("root=x ro", &words()).unwrap(), format!("root=x ro {OURS}"));
        assert_eq!(
            cmdline_with_words("# c\nroot=x\n\n", &words()).unwrap(),
            format!("# c\nroot=x {OURS}\n\n")
        );
        assert_eq!(cmdline_with_words("", &words()).unwrap(), format!("{OURS}\n"));
    }

    proptest::proptest! {
        #[test]
        fn twice_is_once(text in "((linux |options|title| |\t|\n|\"|a|zswap.enabled|=0|ü|#){0,16})") {
            for edit in [with_words, cmdline_with_words] {
                if let Ok(once) = edit(&text, &words()) {
                    proptest::prop_assert_eq!(edit(&once, &words()).unwrap(), once);
                }
            }
        }
    }
}
