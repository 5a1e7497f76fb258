//! Mounts by fusermount3, libfuse's set-user-ID program, for users who are not root. It opens the device, mounts, and sends the
//! device's descriptor through the socket that `_FUSE_COMMFD` names.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::unmount::{by_fusermount, fusermount};
use rustix::fs::StatVfsMountFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg,
    socketpair,
};

use super::{Checked, Error, MAX_READ, SUBTYPE, by_root};

pub(super) fn mount(settings: &Settings, checked: &Checked) -> Result<OwnedFd, Error> {
    let program = fusermount().ok_or(Error::NoFusermount)?;
    // If the device is the problem, this error is better than the program's.
    drop(by_root::open()?);
    let failed = |what| move |source| Error::Failed { place: checked.place.clone(), what, source };
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|e| failed("no pair of sockets")(e.into()))?;
    let child = start(&program, settings, checked, &theirs).map_err(failed("fusermount3 cannot be run"))?;
    drop(theirs);
    let device = receive(&ours);
    drop(ours);
    let output = child.wait_with_output().map_err(failed("fusermount3"))?;
    device.map_err(|_| refusal(checked, &output))
}

fn start(program: &Path, settings: &Settings, checked: &Checked, socket: &OwnedFd) -> io::Result<Child> {
    // A copy without close-on-exec. This process has one thread, so nothing else is started meanwhile.
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

/// The options, see mount.fuse3(8). fusermount3 adds nosuid and nodev itself.
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

fn refusal(checked: &Checked, output: &Output) -> Error {
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if message.contains("user_allow_other") {
        return Error::OthersForbidden;
    }
    let message = if message.is_empty() { output.status.to_string() } else { message };
    Error::Fusermount { place: checked.place.clone(), message }
}

/// Unmounts.
///
/// # Errors
/// `ResourceBusy` if files are open there, or another kind.
pub(super) fn unmount(place: &Path, lazy: bool) -> io::Result<()> {
    let program = fusermount().ok_or_else(|| io::Error::other(Error::NoFusermount))?;
    by_fusermount(&program, place, lazy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_commas_stays_one_option() {
        assert_eq!(escaped(OsStr::new("/a,b\\c")), OsStr::new("/a\\,b\\\\c"));
    }

    #[test]
    fn a_refused_allow_other_has_its_own_error() {
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
        let message =
            "fusermount3: option allow_other only allowed if 'user_allow_other' is set in /etc/fuse.conf";
        assert!(matches!(refusal(&checked, &output(message)), Error::OthersForbidden));
        let other = refusal(&checked, &output("fusermount3: bad mount point\n")).to_string();
        assert_eq!(other, "cannot mount at \"/p\": fusermount3 failed: fusermount3: bad mount point");
    }
}
