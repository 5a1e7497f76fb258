//! fusermount3, the set-uid program of libfuse, for users who are not root. It opens the device, mounts, and sends the
//! descriptor through the socket that `_FUSE_COMMFD` names.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use eke_cache_mounts::settings::Settings;
use rustix::fs::StatVfsMountFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg,
    socketpair,
};

use super::{Checked, Error, MAX_READ, SUBTYPE, by_root};

/// The program of libfuse 3, or that of libfuse 2, which does for us.
const NAMES: [&str; 2] = ["fusermount3", "fusermount"];
/// Where programs are also looked for: a service's path may lack them.
const DIRS: &str = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin";

/// Where it is, if it is installed.
pub(super) fn program() -> Option<PathBuf> {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(DIRS);
    let dirs: Vec<_> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    NAMES.iter().find_map(|name| dirs.iter().map(|dir| dir.join(name)).find(|p| p.is_file()))
}

pub(super) fn mount(settings: &Settings, checked: &Checked) -> Result<OwnedFd, Error> {
    let program = program().ok_or(Error::NoFusermount)?;
    // Says what is the matter with the device better than the program does.
    drop(by_root::open()?);
    let failed = |what| move |source| Error::Failed { place: checked.place.clone(), what, source };
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|e| failed("no pair of sockets")(e.into()))?;
    let child = start(&program, settings, checked, &theirs).map_err(failed("fusermount3 cannot be run"))?;
    drop(theirs);
    let device = receive(&ours);
    drop(ours);
    let output = child.wait_with_output().map_err(failed("fusermount3"))?;
    device.map_err(|_| answer(checked, &output))
}

fn start(program: &Path, settings: &Settings, checked: &Checked, socket: &OwnedFd) -> io::Result<Child> {
    // A copy without close-on-exec; nothing else is started meanwhile, for this process has one thread.
    let inherited = rustix::io::dup(socket)?;
    Command::new(program)
        .arg("-o")
        .arg(options(settings, checked.flags))
        .arg("--")
        .arg(&checked.place)
        .env("_FUSE_COMMFD", inherited.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// As mount.fuse3(8) has them. fusermount3 adds nosuid and nodev itself.
fn options(settings: &Settings, backing: StatVfsMountFlags) -> OsString {
    let mut options = OsString::from(format!("default_permissions,max_read={MAX_READ},subtype={SUBTYPE}"));
    for (flag, name) in [
        (StatVfsMountFlags::RDONLY, ",ro"),
        (StatVfsMountFlags::NOEXEC, ",noexec"),
        (StatVfsMountFlags::NOATIME, ",noatime"),
    ] {
        if backing.contains(flag) {
            options.push(name);
        }
    }
    if settings.others {
        options.push(",allow_other");
    }
    options.push(",fsname=");
    options.push(escaped(settings.dir.as_os_str()));
    options
}

/// A comma ends an option unless a backslash stands before it.
fn escaped(name: &OsStr) -> OsString {
    let mut out = Vec::new();
    for &byte in name.as_bytes() {
        if matches!(byte, b',' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    OsString::from_vec(out)
}

fn receive(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    loop {
        let got = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC);
        match got {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.map(drop)?,
        }
    }
    let mut messages = ancillary.drain();
    let device = messages.find_map(|m| match m {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    device.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn answer(checked: &Checked, output: &Output) -> Error {
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if said.contains("user_allow_other") {
        return Error::OthersForbidden;
    }
    let said = if said.is_empty() { format!("nothing ({})", output.status) } else { said };
    Error::FusermountSays { place: checked.place.clone(), said }
}

/// Unmounts; its answer is `ResourceBusy` or other.
pub(super) fn unmount(place: &Path, lazy: bool) -> io::Result<()> {
    let program = program().ok_or_else(|| io::Error::other(Error::NoFusermount))?;
    let mut command = Command::new(program);
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(place).env("LC_ALL", "C");
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let busy = said.to_ascii_lowercase().contains("busy");
    Err(io::Error::new(if busy { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other }, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_commas_stays_one_option() {
        assert_eq!(escaped(OsStr::new("/a,b\\c")), OsStr::new("/a\\,b\\\\c"));
    }

    #[test]
    fn a_refused_allow_other_says_where_to_allow_it() {
        let open = || rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        let checked = Checked {
            dir: open(),
            at: open(),
            place: "/p".into(),
            mode: 0,
            flags: StatVfsMountFlags::empty(),
        };
        let output = |stderr: &str| Output {
            status: std::process::ExitStatus::default(),
            stdout: Vec::new(),
            stderr: stderr.into(),
        };
        let said =
            "fusermount3: option allow_other only allowed if 'user_allow_other' is set in /etc/fuse.conf";
        assert!(matches!(answer(&checked, &output(said)), Error::OthersForbidden));
        let other = answer(&checked, &output("fusermount3: bad mount point\n")).to_string();
        assert_eq!(other, "cannot mount at \"/p\": fusermount3 says: fusermount3: bad mount point");
    }
}
