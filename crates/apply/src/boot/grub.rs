//! GRUB: `/etc/default/grub` and the drop-ins of Debian's `grub-mkconfig`.

use super::shell;
use eke_linux::error::Result;

/// The file that every `grub-mkconfig` reads.
pub const FILE: &str = "etc/default/grub";
/// The directory that Debian's `grub-mkconfig` reads next: `*.cfg` in the order of their names.
pub const DROP_INS: &str = "etc/default/grub.d";
/// Our drop-in.
pub const DROP_IN: &str = "etc/default/grub.d/50-eke.cfg";

const DEFAULT: &str = "GRUB_CMDLINE_LINUX_DEFAULT";
const BOTH: [&str; 2] = ["GRUB_CMDLINE_LINUX", DEFAULT];

/// The text of `/etc/default/grub` with our words in `GRUB_CMDLINE_LINUX_DEFAULT`, or in `GRUB_CMDLINE_LINUX` if they
/// are there already.
///
/// # Errors
/// A value that only a shell can evaluate.
pub fn with_words(text: &str, words: &[String]) -> Result<String> {
    let (text, missing) = replaced(text, words)?;
    shell::appended(&text, DEFAULT, &missing, "")
}

/// Replaces our words where the text sets them. Returns the new text and the words that it does not set.
///
/// # Errors
/// A value that only a shell can evaluate.
pub fn replaced(text: &str, words: &[String]) -> Result<(String, Vec<String>)> {
    shell::replaced(text, &BOTH, words)
}

/// A drop-in that adds the words.
pub fn drop_in(words: &[String]) -> String {
    let words = words.join(" ");
    format!(
        "# Written by `eke swap boot-config`; `eke swap boot-config --undo` removes it.\n{DEFAULT}=\"${DEFAULT} {words}\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::words::tests::words;

    const DEBIAN: &str = "# If you change this file\nGRUB_DEFAULT=0\nGRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\nGRUB_CMDLINE_LINUX=\"\"\n";

    #[test]
    fn debians_file_gets_them_by_default() {
        let expected = DEBIAN.replace("quiet splash", "quiet splash zswap.enabled=1 zswap.compressor=zstd");
        assert_eq!(with_words(DEBIAN, &words()).unwrap(), expected);
    }

    #[test]
    fn a_word_in_the_other_variable_is_replaced_there() {
        let text = "GRUB_CMDLINE_LINUX=\"zswap.enabled=0\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n";
        let expected = "GRUB_CMDLINE_LINUX=\"zswap.enabled=1\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet zswap.compressor=zstd\"\n";
        assert_eq!(with_words(text, &words()).unwrap(), expected);
    }

    #[test]
    fn the_drop_in_is_one_that_we_can_read() {
        let (_, missing) = replaced(&drop_in(&words()), &words()).unwrap();
        assert_eq!(missing, Vec::<String>::new());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_edited_once_or_refused(text in "(?s)(GRUB_CMDLINE_LINUX(_DEFAULT)?=|.|\n|\"|zswap.enabled=0){0,20}") {
            if let Ok(once) = with_words(&text, &words()) {
                proptest::prop_assert_eq!(with_words(&once, &words()).unwrap(), once);
            }
        }
    }
}
