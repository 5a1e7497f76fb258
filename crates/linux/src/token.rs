//! The token for other machines: random, in memory only, gone with the process.

use std::fmt;
use std::hint::black_box;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

const BYTES: usize = 16;

/// 128 random bits as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new token from the kernel (getrandom(2)).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        Ok(Self::of(bytes))
    }

    /// A token of these bytes.
    pub fn of(bytes: [u8; BYTES]) -> Self {
        Self(bytes.iter().map(|b| format!("{b:02x}")).collect())
    }

    /// The text, for the printed address and the cookie.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a text has the form of a token. One that another machine sends may be a command for some server.
    pub fn is_token(text: &str) -> bool {
        text.len() == 2 * BYTES && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Compares in constant time.
    pub fn is(&self, given: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), given.as_bytes());
        if ours.len() != theirs.len() {
            return false;
        }
        let differing = ours.iter().zip(theirs).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        black_box(differing) == 0
    }
}

/// Hides the token, so that no log has it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_only_the_whole_token_is_accepted() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(a != b && a.text().len() == 32);
        assert!(a.is(a.text()) && !a.is(b.text()) && !a.is("") && !a.is(&a.text()[..31]));
        let mut last = a.text().to_owned();
        let digit = if last.pop() == Some('0') { '1' } else { '0' };
        last.push(digit);
        assert!(!a.is(&last));
        assert_eq!(format!("{a:?}"), "Token(..)");
    }
}
