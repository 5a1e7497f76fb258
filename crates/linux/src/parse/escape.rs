//! Escapes in the kernel's lists: a byte that would split a field is written as `\` and three octal digits
//! (mangle_path() in fs/seq_file.c), in `/proc/*/mountinfo`, `/proc/*/mounts`, `/proc/swaps` and fstab(5).

/// Replaces each `\040` by its byte. Anything else stays as it is.
pub fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code = octal(rest);
        out.push(code.unwrap_or(*first));
        rest = if code.is_some() { &rest[4..] } else { tail };
    }
    out
}

fn octal(bytes: &[u8]) -> Option<u8> {
    let [b'\\', digits @ ..] = bytes.get(..4)? else { return None };
    let value = |d: &u8| d.is_ascii_digit().then(|| u32::from(d - b'0')).filter(|d| *d < 8);
    let code = digits.iter().try_fold(0, |sum, d| Some(sum * 8 + value(d)?))?;
    u8::try_from(code).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_escapes_are_unchanged() {
        let pairs = [
            ("a\\134b", "a\\b"),
            ("b\\040", "b "),
            ("a\\9", "a\\9"),
            ("\\", "\\"),
            ("\\777", "\\777"),
            ("\\+12", "\\+12"),
        ];
        for (text, path) in pairs {
            assert_eq!(unescape(text.as_bytes()), path.as_bytes());
        }
    }

    proptest::proptest! {
        #[test]
        fn a_name_comes_back(name in proptest::collection::vec(1u8.., 1..20)) {
            let mut escaped = Vec::new();
            for byte in &name {
                match byte {
                    b' ' | b'\t' | b'\n' | b'\\' | b'#' => escaped.extend(format!("\\{byte:03o}").bytes()),
                    other => escaped.push(*other),
                }
            }
            proptest::prop_assert_eq!(unescape(&escaped), name);
        }

        #[test]
        fn any_bytes_are_a_name(field in proptest::collection::vec(0u8.., 0..50)) {
            proptest::prop_assert!(unescape(&field).len() <= field.len());
        }
    }
}
