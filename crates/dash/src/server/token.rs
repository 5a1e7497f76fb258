//! The word that lets others than this machine in: random, in memory only, gone with the process.

use std::fmt;
use std::hint::black_box;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

const BYTES: usize = 16;

/// 128 random bits as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one from the kernel (getrandom(2)).
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        Ok(Self::of(bytes))
    }

    /// Of these bytes.
    pub fn of(bytes: [u8; BYTES]) -> Self {
        Self(bytes.iter().map(|b| format!("{b:02x}")).collect())
    }

    /// For the address that is printed, and the cookie.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Is it this one? How long the answer takes does not tell how much of `said` is right.
    pub fn is(&self, said: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), said.as_bytes());
        if ours.len() != theirs.len() {
            return false;
        }
        let differing = ours.iter().zip(theirs).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        black_box(differing) == 0
    }
}

/// Never in a log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_only_the_whole_one_is_it() {
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
