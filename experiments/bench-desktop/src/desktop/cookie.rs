//! The key to the session's X server. Its sockets are open to every user of the machine (one is abstract and has no file):
//! without a key anybody could see and control what runs there.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};

/// The protocol of such keys (Xsecurity(7)).
pub(super) const PROTOCOL: &[u8] = b"MIT-MAGIC-COOKIE-1";
/// The key file, in the home directory, where programs expect it (Xau(3)).
const FILE: &str = ".Xauthority";
/// An entry for every host (X11/Xauth.h, `FamilyWild`).
const EVERY_HOST: u16 = 0xffff;

/// A key that only the server and the session's programs know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cookie([u8; 16]);

impl Cookie {
    /// A random key.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        match getrandom(&mut bytes, GetRandomFlags::empty())? {
            16 => Ok(Self(bytes)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The key's bytes, for a connection.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Writes the key to a file in `home` that only its owner can read. Returns its path, for the server's `-auth`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, home: &Path) -> io::Result<PathBuf> {
        let path = home.join(FILE);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&self.entry())?;
        Ok(path)
    }

    /// The entry's format (Xau(3)): family, address, number, protocol, data. Numbers are big-endian; each text follows its
    /// length. An empty number stands for every display.
    fn entry(&self) -> Vec<u8> {
        let mut entry = EVERY_HOST.to_be_bytes().to_vec();
        for text in [&[], &[], PROTOCOL, self.0.as_slice()] {
            entry.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
            entry.extend(text);
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_can_read_the_file_and_it_has_one_entry() {
        let home = tempfile::tempdir().unwrap();
        let path = Cookie([7; 16]).write(home.path()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut expected = vec![0xff, 0xff, 0, 0, 0, 0, 0, 18];
        expected.extend(b"MIT-MAGIC-COOKIE-1\0\x10");
        expected.extend([7; 16]);
        assert_eq!(std::fs::read(path).unwrap(), expected);
        assert!(Cookie::new().unwrap() != Cookie::new().unwrap());
    }
}
