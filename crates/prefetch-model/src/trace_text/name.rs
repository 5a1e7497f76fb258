//! Names in a trace: escaped bytes, or a hash.

use std::fmt::Write;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// How names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Escaped.
    Plain,
    /// As a keyed hash (SipHash-2-4 of 128 bits, cut to 64). The holder of the key can test whether a guessed name is in the trace, so use a random
    /// key and discard it.
    Hashed([u8; 16]),
}

impl Names {
    /// The field for a name.
    pub fn field(&self, name: &[u8]) -> String {
        match self {
            Self::Plain => escaped(name),
            Self::Hashed(key) => {
                let mut hasher = SipHasher24::new_with_key(key);
                hasher.write(name);
                format!("~{:016x}", hasher.finish128().h1)
            }
        }
    }
}

/// Bytes as a field. These become `%` and two hexadecimal digits: `,`, `"`, `%`, control characters and non-ASCII bytes; a leading `#` (comment) or
/// `~` (hash); a space at either end.
pub fn escaped(name: &[u8]) -> String {
    let mut field = String::with_capacity(name.len());
    for (at, byte) in name.iter().enumerate() {
        let begins = at == 0 && matches!(byte, b'#' | b'~' | b' ');
        let ends = at + 1 == name.len() && *byte == b' ';
        let plain = (byte.is_ascii_graphic() || *byte == b' ')
            && !matches!(byte, b',' | b'%' | b'"')
            && !begins
            && !ends;
        if plain {
            field.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(field, "%{byte:02x}");
        }
    }
    field
}

/// The bytes of a field; `None` if a `%` is not followed by two hexadecimal digits.
pub fn unescaped(field: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut parts = field.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_come_back(name: Vec<u8>) {
            let field = escaped(&name);
            prop_assert!(!field.contains([',', '\n', '"', '\r']) && !field.starts_with(['#', '~', ' ']));
            prop_assert_eq!(unescaped(&field), Some(name));
        }

        #[test]
        fn any_field_is_taken_or_refused(field in ".*") {
            let _ = unescaped(&field);
        }
    }

    #[test]
    fn hashes_need_the_key() {
        let hashed = |key: u8| Names::Hashed([key; 16]).field(b"/usr/bin/gedit");
        assert_eq!(hashed(1), hashed(1));
        assert_ne!(hashed(1), hashed(2));
        assert!(hashed(1).starts_with('~') && hashed(1).len() == 17);
        assert_eq!([unescaped("a%2"), unescaped("%zz"), unescaped("%+1")], [None, None, None]);
    }
}
