//! Named steps of a running recording, sent from another terminal or a script as a datagram to the recorder's socket.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};

/// The environment variable with the socket of a recorded command's recorder.
pub const VARIABLE: &str = "EKE_RECORDING";
/// The longest name of a step, in bytes.
pub const LONGEST_NAME: usize = 200;

/// Nanoseconds of the monotonic clock, which is the same in all processes.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The recorder's socket; drop removes it.
#[derive(Debug)]
pub struct Inbox {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Inbox {
    /// Opens the socket in the first directory that is this user's alone (see [`directories`]).
    ///
    /// # Errors
    /// The error of the last directory.
    pub fn bind(directories: &[PathBuf]) -> Result<Self> {
        let mut result = Err(Error::NoRecording);
        for directory in directories {
            result = bind_in(directory);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor for poll(2).
    pub fn socket(&self) -> &UnixDatagram {
        &self.socket
    }

    /// The steps received since the last call, with the sender's time on [`now_ns`]'s clock.
    pub fn drain(&self) -> Vec<(u64, String)> {
        let mut buffer = [0; LONGEST_NAME + 32];
        let mut received = Vec::new();
        while let Ok(length) = self.socket.recv(&mut buffer) {
            received.extend(decode(&String::from_utf8_lossy(&buffer[..length])));
        }
        received
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn bind_in(directory: &Path) -> Result<Inbox> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(directory);
    match made {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::file("create", directory)(e));
        }
        _ if !is_own(directory) => {
            let why = io::Error::other("other users can access this directory");
            return Err(Error::file("listen in", directory)(why));
        }
        _ => {}
    }
    let path = directory.join(format!("record-{}.sock", std::process::id()));
    // sockets of killed recorders
    for dead in sockets(directory).iter().filter(|socket| connect(socket).is_none()) {
        let _ = std::fs::remove_file(dead);
    }
    let socket = UnixDatagram::bind(&path).map_err(Error::file("listen on", &path))?;
    socket.set_nonblocking(true).map_err(Error::file("listen on", &path))?;
    Ok(Inbox { socket, path })
}

/// Other users must not be able to put a socket there or send to this one.
fn is_own(directory: &Path) -> bool {
    std::fs::symlink_metadata(directory)
        .is_ok_and(|m| m.is_dir() && m.uid() == rustix::process::geteuid().as_raw() && m.mode() & 0o077 == 0)
}

/// The sender's time, on [`now_ns`]'s clock, and the step's name; `None` if it is no such message.
pub fn decode(message: &str) -> Option<(u64, String)> {
    let (time, name) = message.split_once(' ')?;
    Some((time.parse().ok()?, clean(name).ok()?))
}

fn clean(name: &str) -> Result<String> {
    let name = name.replace(char::is_control, " ").trim().to_owned();
    if name.is_empty() || name.len() > LONGEST_NAME { Err(Error::BadName) } else { Ok(name) }
}

/// The directories of this user's recorders, the best first: `$XDG_RUNTIME_DIR/eke`, root's `/run/eke-record`, `/run/user/UID/eke`, `/tmp/eke-UID`.
pub fn directories() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|d| d.is_absolute());
    directories_of(rustix::process::geteuid().as_raw(), runtime)
}

/// Anybody may make the one in `/tmp` first, and under sudo root often has no other, so it has one where nobody else may.
fn directories_of(uid: u32, runtime: Option<PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = runtime.iter().map(|d| d.join("eke")).collect();
    found.extend((uid == 0).then(|| "/run/eke-record".into()));
    found.push(format!("/run/user/{uid}/eke").into());
    found.push(format!("/tmp/eke-{uid}").into());
    found.dedup();
    found
}

/// Sends the name of the step that begins now to the recorder at `socket`; without it, to the only recorder that listens in `directories`.
///
/// # Errors
/// [`Error::BadName`], [`Error::NoRecording`], [`Error::Ended`], [`Error::Several`].
pub fn send(socket: Option<&OsStr>, directories: &[PathBuf], name: &str) -> Result<()> {
    let message = format!("{} {}", now_ns(), clean(name)?);
    if let Some(path) = socket.map(Path::new) {
        let connected = connect(path).ok_or_else(|| Error::Ended(path.to_owned()))?;
        return connected.send(message.as_bytes()).map(drop).map_err(Error::file("write to", path));
    }
    let paths = directories.iter().filter(|d| is_own(d)).flat_map(|d| sockets(d));
    let mut listening: Vec<(PathBuf, UnixDatagram)> =
        paths.filter_map(|path| connect(&path).map(|socket| (path, socket))).collect();
    match (listening.pop(), listening.is_empty()) {
        (None, _) => Err(Error::NoRecording),
        (Some((path, only)), true) => {
            only.send(message.as_bytes()).map(drop).map_err(Error::file("write to", &path))
        }
        (Some(last), false) => {
            Err(Error::Several(listening.into_iter().chain([last]).map(|(path, _)| path).collect()))
        }
    }
}

fn sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "sock")).collect()
}

fn connect(path: &Path) -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect(path).ok()?;
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_to_the_only_recorder_and_to_no_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let directories = [dir.path().join("eke")];
        assert!(matches!(send(None, &directories, "a"), Err(Error::NoRecording)));
        let inbox = Inbox::bind(&directories).unwrap();
        let before = now_ns();
        send(None, &directories, "open \"B.pdf\"\n").unwrap();
        send(Some(inbox.path().as_os_str()), &[], "second").unwrap();
        let received = inbox.drain();
        assert_eq!(
            (received.len(), received[0].1.as_str(), received[1].1.as_str()),
            (2, "open \"B.pdf\"", "second")
        );
        assert!(received[0].0 >= before && received[0].0 <= now_ns());
        let path = inbox.path().to_owned();
        let dead = directories[0].join("record-1.sock");
        drop(UnixDatagram::bind(&dead).unwrap());
        let other = Inbox::bind(&directories);
        assert!(!dead.exists() && path.exists());
        drop((other, inbox));
        assert!(!path.exists());
        assert!(matches!(send(Some(path.as_os_str()), &[], "x"), Err(Error::Ended(_))));
        assert!(matches!(send(None, &directories, "  "), Err(Error::BadName)));
    }

    #[test]
    fn without_a_session_roots_directory_is_one_that_nobody_else_can_make() {
        let of_session = directories_of(1000, Some("/run/user/1000".into()));
        assert_eq!(of_session, ["/run/user/1000/eke", "/tmp/eke-1000"].map(PathBuf::from));
        assert_eq!(directories_of(0, None)[0], Path::new("/run/eke-record"));
    }

    #[test]
    fn a_directory_that_others_can_use_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let own = dir.path().join("own");
        let inbox = Inbox::bind(&[open.clone(), own.clone()]).unwrap();
        assert!(inbox.path().starts_with(&own));
        assert!(Inbox::bind(&[open]).unwrap_err().to_string().contains("other users can access"));
    }

    proptest::proptest! {
        #[test]
        fn any_message_is_a_step_or_nothing(text in "(?s).{0,300}") {
            if let Some((_, name)) = decode(&text) {
                proptest::prop_assert!(!name.is_empty() && name.len() <= LONGEST_NAME);
            }
        }
    }
}
