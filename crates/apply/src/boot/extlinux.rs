//! U-Boot's `extlinux.conf`, its source in Debian's `u-boot-menu`, and the Raspberry Pi's `cmdline.txt`.

use super::{shell, words};
use eke_linux::error::{Error, Result};

/// The file that U-Boot reads.
pub const FILE: &str = "boot/extlinux/extlinux.conf";
/// The file from which `u-boot-update` writes it.
pub const DEFAULTS: &str = "etc/default/u-boot";
/// The default of `u-boot-update`.
const DEFAULT_PARAMETERS: &str = "ro quiet";
const VARIABLE: &str = "U_BOOT_PARAMETERS";

/// `extlinux.conf` with our words in every `append` line.
///
/// # Errors
/// There is no such line, or one has an unclosed quotation mark.
pub fn with_words(text: &str, ours: &[String]) -> Result<String> {
    let mut found = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let at = append_start(line);
        found |= at.is_some();
        match at {
            Some(at) => out.extend([&line[..at], &words::with_words(&line[at..], ours)?]),
            None => out.push_str(line),
        }
    }
    if found { Ok(out) } else { Err(Error::Refused("it has no `append` line".into())) }
}

/// Offset of the value in an `append` line; the keyword may be in upper or lower case.
fn append_start(line: &str) -> Option<usize> {
    const KEY: &str = "append";
    let body = line.trim_start();
    let rest = body.get(..KEY.len()).filter(|k| k.eq_ignore_ascii_case(KEY)).map(|_| &body[KEY.len()..])?;
    rest.starts_with([' ', '\t']).then(|| line.len() - rest.trim_start_matches([' ', '\t']).len())
}

/// `/etc/default/u-boot` with our words in `U_BOOT_PARAMETERS`.
///
/// # Errors
/// A value that only a shell can evaluate.
pub fn defaults_with_words(text: &str, ours: &[String]) -> Result<String> {
    let (text, missing) = shell::replaced(text, &[VARIABLE], ours)?;
    shell::appended(&text, VARIABLE, &missing, DEFAULT_PARAMETERS)
}

/// The Raspberry Pi's `cmdline.txt` with our words. The firmware reads only its first line.
///
/// # Errors
/// The first line is empty, or has an unclosed quotation mark.
pub fn firmware_with_words(text: &str, ours: &[String]) -> Result<String> {
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    if first.trim().is_empty() {
        return Err(Error::Refused("its first line is empty".into()));
    }
    Ok(words::with_words(first, ours)? + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::words::tests::words;

    const OURS: &str = "zswap.enabled=1 zswap.compressor=zstd";

    #[test]
    fn every_append_line_gets_them() {
        let text = "default l0\nlabel l0\n\tlinux /v\n\tAPPEND root=x ro\nlabel l1\n  append root=x single\n";
        let expected =
            text.replace("x ro", &format!("x ro {OURS}")).replace("single", &format!("single {OURS}"));
        assert_eq!(with_words(text, &words()).unwrap(), expected);
        assert!(with_words("label l0\n", &words()).unwrap_err().to_string().contains("append"));
    }

    #[test]
    fn u_boot_menu_keeps_its_default() {
        let text = "## A comment\n#U_BOOT_PARAMETERS=\"ro quiet\"\n";
        assert_eq!(
            defaults_with_words(text, &words()).unwrap(),
            format!("{text}U_BOOT_PARAMETERS=\"ro quiet {OURS}\"\n")
        );
    }

    #[test]
    fn the_firmware_gets_one_line() {
        let text = "console=tty1 root=PARTUUID=1 rootwait\n";
        assert_eq!(firmware_with_words(text, &words()).unwrap(), format!("{} {OURS}\n", text.trim_end()));
        assert!(firmware_with_words("\n", &words()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn twice_is_once(text in "((append |APPEND\t|label| |\n|\"|a|zswap.enabled|=0|ü|U_BOOT_PARAMETERS=|'){0,16})") {
            for edit in [with_words, defaults_with_words, firmware_with_words] {
                if let Ok(once) = edit(&text, &words()) {
                    proptest::prop_assert_eq!(edit(&once, &words()).unwrap(), once);
                }
            }
        }
    }
}
