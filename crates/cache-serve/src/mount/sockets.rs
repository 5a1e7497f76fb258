//! Unix sockets with names in a directory. A client finds one by the inode that its program has bound, and there is another one in the
//! backing directory: after a move nobody would get at it.
//!
//! A program that has bound a relative path is not found by it, but works there, mostly.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use eke_cache_mounts::process::Process;

/// A socket in the directory at `place`, in any network namespace; a container may have all of the machine's tree inside its own.
pub(super) fn socket_in(proc: &Path, place: &Path) -> Option<PathBuf> {
    let mut known = HashSet::new();
    Process::all(proc).find_map(|process| {
        let network = process.network().filter(|network| !known.contains(network))?;
        let sockets = process.unix_sockets();
        // A process that has ended has none.
        if !sockets.is_empty() {
            known.insert(network);
        }
        paths(&sockets).into_iter().find(|socket| is_in(socket, place))
    })
}

fn is_in(socket: &Path, place: &Path) -> bool {
    let end = place.strip_prefix("/").unwrap_or(place);
    // A link may lead there. A server on the way that does not answer keeps the mount where it is: the attempt has a deadline.
    let led = || socket.parent()?.canonicalize().ok();
    socket.ancestors().any(|above| above.ends_with(end)) || led().is_some_and(|dir| dir.starts_with(place))
}

/// The absolute paths in `/proc/net/unix`: `ADDRESS: COUNT PROTOCOL FLAGS TYPE STATE INODE PATH`.
fn paths(text: &[u8]) -> Vec<PathBuf> {
    let path = |line: &[u8]| {
        let at = line.windows(2).position(|two| two == b" /")?;
        Some(PathBuf::from(OsStr::from_bytes(&line[at + 1..])))
    };
    text.split(|byte| *byte == b'\n').filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn paths_are_found_among_sockets_without_one() {
        let text = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 1234 /srv/a b/s\n\
            0000000000000000: 00000003 00000000 00000000 0001 03  34 @/abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 5\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 99 relative\n";
        assert_eq!(paths(text), [Path::new("/srv/a b/s")]);
        assert!(is_in(Path::new("/srv/a b/s"), Path::new("/srv/a b")));
        assert!(is_in(Path::new("/host/srv/a b/s"), Path::new("/srv/a b")), "a container's");
        assert!(!is_in(Path::new("/srv/a"), Path::new("/srv/a b")));
    }

    #[test]
    fn a_socket_is_found_also_through_a_link() {
        let tmp = tempfile::tempdir().unwrap();
        let place = tmp.path().canonicalize().unwrap().join("data");
        let [beside, link] = ["beside", "link"].map(|name| place.with_file_name(name));
        std::fs::create_dir(&place).unwrap();
        std::os::unix::fs::symlink(&place, &link).unwrap();
        let found = || socket_in(Path::new("/proc"), &place);
        let _beside = UnixListener::bind(beside).unwrap();
        assert_eq!(found(), None);
        let by_link = UnixListener::bind(link.join("s")).unwrap();
        assert_eq!(found(), Some(link.join("s")));
        drop(by_link);
        assert_eq!(found(), None);
        let _there = UnixListener::bind(place.join("t")).unwrap();
        assert_eq!(found(), Some(place.join("t")));
    }

    proptest::proptest! {
        #[test]
        fn any_text_never_panics(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = paths(&bytes);
        }
    }
}
