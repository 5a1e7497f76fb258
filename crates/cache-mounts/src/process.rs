//! A process as `/proc` shows it: its directories, open files and mappings (proc(5)). It may end at any moment; then it has none. Only root
//! sees what those of other users have.

use std::ffi::OsString;
use std::fs::{read, read_dir, read_link, read_to_string};
use std::io;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::parse::keyed::value;
use eke_linux::parse::maps::{self, Mapping};
use eke_linux::read::answering;
use rustix::fs::OFlags;

use crate::Device;

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its directory in `/proc`.
    dir: PathBuf,
}

impl Process {
    /// All in `proc` (`/proc`), in order of their numbers, without those that can keep whoever looks at them waiting for ever: one within
    /// execve(2) can.
    pub fn all(proc: &Path) -> impl Iterator<Item = Self> {
        let pids = answering(&Root::at(proc.parent().unwrap_or(proc)));
        pids.into_iter().map(|pid| Self { pid, dir: proc.join(pid.to_string()) })
    }

    /// This process.
    pub fn this(proc: &Path) -> Self {
        Self { pid: std::process::id(), dir: proc.join("self") }
    }

    /// Is it this one?
    pub fn is_this(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Its name (`comm`). Its user chooses it.
    pub fn name(&self) -> String {
        let name = read(self.dir.join("comm")).unwrap_or_default();
        String::from_utf8_lossy(name.trim_ascii()).into_owned()
    }

    /// Its mount namespace.
    pub fn namespace(&self) -> Option<OsString> {
        read_link(self.dir.join("ns/mnt")).ok().map(Into::into)
    }

    /// Its network namespace.
    pub fn network(&self) -> Option<OsString> {
        read_link(self.dir.join("ns/net")).ok().map(Into::into)
    }

    /// The Unix sockets in that (`/proc/net/unix`, proc_pid_net(5)).
    pub fn unix_sockets(&self) -> Vec<u8> {
        read(self.dir.join("net/unix")).unwrap_or_default()
    }

    /// The mounts in its namespace.
    pub fn mountinfo(&self) -> Vec<u8> {
        read(self.dir.join("mountinfo")).unwrap_or_default()
    }

    /// A link to its working directory.
    pub fn working_directory(&self) -> PathBuf {
        self.dir.join("cwd")
    }

    /// A link to its root directory.
    pub fn root_directory(&self) -> PathBuf {
        self.dir.join("root")
    }

    /// Its descriptors.
    ///
    /// # Errors
    /// It is another user's, or it has ended.
    pub fn files(&self) -> io::Result<Vec<OpenFile>> {
        let numbers = read_dir(self.dir.join("fd"))?.flatten().map(|file| file.file_name());
        let file = |number| OpenFile {
            link: self.dir.join("fd").join(&number),
            info: self.dir.join("fdinfo").join(&number),
        };
        Ok(numbers.map(file).collect())
    }

    /// The files that it has mapped.
    pub fn mappings(&self) -> Vec<Mapping> {
        maps::parse(&read(self.dir.join("maps")).unwrap_or_default())
    }
}

/// A mount namespace.
#[derive(Debug)]
pub struct MountNamespace {
    /// A process in it.
    pub process: Process,
    /// Its mounts, in the format of mountinfo.
    pub mountinfo: Vec<u8>,
}

impl MountNamespace {
    /// Those of all processes in `proc` (`/proc`), that of this process first. Only root sees those of other users.
    pub fn all(proc: &Path) -> Vec<Self> {
        let mut found: Vec<(OsString, bool, Self)> = Vec::new();
        for process in std::iter::once(Process::this(proc)).chain(Process::all(proc)) {
            let Some(name) = process.namespace() else { continue };
            // Only mounts below its root are listed.
            let sees_all = read_link(process.root_directory()).is_ok_and(|root| root == Path::new("/"));
            let known = found.iter().position(|(of, ..)| *of == name);
            if known.is_some_and(|at| found[at].1 || !sees_all) {
                continue;
            }
            let mountinfo = process.mountinfo();
            let entry = (name, sees_all, Self { process, mountinfo });
            match known {
                // It has ended.
                _ if entry.2.mountinfo.is_empty() => {}
                Some(at) => found[at] = entry,
                None => found.push(entry),
            }
        }
        found.into_iter().map(|(_, _, namespace)| namespace).collect()
    }
}

/// A descriptor of a process.
#[derive(Debug)]
pub struct OpenFile {
    /// A link to what is open.
    pub link: PathBuf,
    info: PathBuf,
}

impl OpenFile {
    /// True for files and watches. Not for sockets, pipes without a name and the like, which need not be looked at.
    pub fn is_file_or_watch(&self) -> bool {
        read_link(&self.link).is_ok_and(|to| {
            let to = to.as_os_str().as_encoded_bytes();
            to.starts_with(b"/") || to.ends_with(b"notify") || to.ends_with(b"notify]")
        })
    }

    /// How it is open; `None`: it is closed by now.
    pub fn info(&self) -> Option<FileInfo> {
        FileInfo::parse(read_to_string(&self.info).ok()?)
    }
}

/// How a file is open, by `/proc/PID/fdinfo/FD` (proc_pid_fdinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The number of the mount that it was opened on (Linux 3.15).
    pub mount: u64,
    /// Is the descriptor writable?
    pub writes: bool,
    /// Does its process hold a lock or a lease on it?
    pub locked: bool,
    text: String,
}

impl FileInfo {
    /// `None` if a field is missing.
    pub fn parse(text: String) -> Option<Self> {
        let flags = OFlags::from_bits_retain(u32::from_str_radix(value(&text, "flags")?, 8).ok()?);
        let mount = value(&text, "mnt_id")?.parse().ok()?;
        let writes = !flags.contains(OFlags::PATH) && flags.intersects(OFlags::RWMODE);
        let locked = value(&text, "lock").is_some();
        Some(Self { mount, writes, locked, text })
    }

    /// True if it is of watches of which one is on this file system or on this mount (inotify and fanotify). A device is written in
    /// hexadecimal, as the kernel has it: the major number above 20 bits of the minor one.
    pub fn watches(&self, device: Device, mount: u64) -> bool {
        let (device, mount) =
            (format!("sdev:{:x}", device.major << 20 | device.minor), format!("mnt_id:{mount:x}"));
        let marks = self.text.lines().filter(|l| l.starts_with("inotify ") || l.starts_with("fanotify "));
        marks.flat_map(str::split_ascii_whitespace).any(|word| word == device || word == mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(flags: &str, more: &str) -> FileInfo {
        FileInfo::parse(format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t51\nino:\t9\n{more}")).unwrap()
    }

    #[test]
    fn writable_descriptors_and_locks_show() {
        assert_eq!(info("0100000", "").mount, 51);
        assert!(info("0100001", "").writes && info("02100002", "").writes);
        assert!(!info("0100000", "").writes && !info("012100002", "").writes, "O_RDONLY, O_PATH");
        let locked = info("0100000", "lock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\n");
        assert!(locked.locked && !locked.writes && !info("0100002", "").locked);
        assert_eq!(FileInfo::parse("pos:\t0\n".to_owned()), None);
    }

    #[test]
    fn watches_are_found_by_file_system_and_by_mount() {
        let device = Device { major: 0, minor: 57 };
        let of = |line: &str| info("00", line).watches(device, 51);
        assert!(of(
            "inotify wd:1 ino:9 sdev:39 mask:fce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:00"
        ));
        assert!(of("fanotify sdev:39 mflags:0 mask:3b ignored_mask:0") && of("fanotify mnt_id:33 mask:3b"));
        assert!(!of("inotify wd:1 ino:39 sdev:3a mask:fce") && !of("fanotify flags:10 event-flags:0"));
        assert!(!of(""));
    }

    #[test]
    fn this_process_has_files_and_mappings() {
        let here = Process::this(Path::new("/proc"));
        let open = std::fs::File::open("/proc/self/stat").unwrap();
        assert!(here.files().unwrap().iter().filter_map(OpenFile::info).count() > 0);
        assert!(!here.mappings().is_empty() && !here.name().is_empty() && here.namespace().is_some());
        drop(open);
    }

    proptest::proptest! {
        #[test]
        fn any_text_never_panics(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = FileInfo::parse(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
