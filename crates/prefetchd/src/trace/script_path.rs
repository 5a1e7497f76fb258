//! The host's path of a script. An interpreter was given the path that its process sees: in flatpak, a snap, bubblewrap, a container or a chroot that is
//! another file here, or none. Two scripts there are two programs, as here.

use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::parse::mountinfo;
use eke_prefetch_model::learn::script;
use eke_prefetch_model::program::Program;

use super::memory_files::MemoryFiles;
use super::mount_index::MountIndex;
use super::mounts::Mounts;
use super::process;

/// The program that a process runs, with the script if the executable is an interpreter.
pub fn program(files: &MemoryFiles, mounts: &Mounts, pid: u32, exe: PathBuf) -> Program {
    if !script::is_interpreter(&exe) {
        return Program::of_exe(exe);
    }
    let (args, cwd) = (files.args(pid), process::cwd(files.root(), pid));
    let program = script::program(exe, &process::split_args(&args, true), cwd.as_deref());
    on_host(files.root(), mounts, pid, program)
}

/// The program with the host's path of its script, and without it if that is no file here: see [`Mounts::checked`].
pub fn on_host(root: &Root, mounts: &Mounts, pid: u32, program: Program) -> Program {
    let Program { exe, script } = program;
    let script = script.and_then(|script| match script.is_absolute() {
        true => host_path(root, mounts, pid, script),
        false => Some(script),
    });
    mounts.checked(Program { exe, script })
}

fn host_path(root: &Root, mounts: &Mounts, pid: u32, script: PathBuf) -> Option<PathBuf> {
    if !process::has_hosts_mounts(root, pid) {
        return by_its_mounts(root, mounts, pid, &script);
    }
    match process::top(root, pid) {
        // A working directory is the host's path already.
        Some(top) if !script.starts_with(&top) => Some(top.join(script.strip_prefix("/").ok()?)),
        _ => Some(script),
    }
}

/// By the file system that the path leads to there, by the mounts alone: links lead to other paths there than here.
fn by_its_mounts(root: &Root, mounts: &Mounts, pid: u32, script: &Path) -> Option<PathBuf> {
    let theirs = MountIndex::new(mountinfo::parse(process::text(root, pid, "mountinfo")?.as_bytes()));
    let mount = theirs.mount_at(script)?;
    let inside = mount.top.join(script.strip_prefix(&mount.place).ok()?);
    Some(mounts.find(mount.device.parse().ok()?, &inside)?.path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use eke_testkit::tree::put;

    use super::*;

    const HOST: &str = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                        21 20 7:1 / /snap/editor/3 ro - squashfs /dev/loop1 ro\n\
                        22 20 7:2 / /snap/core22/9 ro - squashfs /dev/loop2 ro\n";
    /// The app's files are below /app, its runtime's below /usr, and nothing else of the host is there but the home directory.
    const FLATPAK: &str = "80 79 0:60 / / rw - tmpfs tmpfs rw\n\
                           81 80 8:1 /var/lib/flatpak/app/org.x/x86_64/stable/5/files /app ro - ext4 /dev/sda1 rw\n\
                           82 80 8:1 /var/lib/flatpak/runtime/org.y/x86_64/1/8/files /usr ro - ext4 /dev/sda1 rw\n\
                           83 80 8:1 /home/u /home/u rw - ext4 /dev/sda1 rw\n";
    /// The base is the root, and all snaps are at their places.
    const SNAP: &str = "90 89 7:2 / / ro - squashfs /dev/loop2 ro\n\
                        91 90 7:1 / /snap/editor/3 ro - squashfs /dev/loop1 ro\n\
                        92 90 8:1 /home /home rw - ext4 /dev/sda1 rw\n";
    /// podman: the host does not mount the container's root.
    const CONTAINER: &str = "70 69 0:70 / / rw - overlay overlay rw\n\
                             71 70 8:1 /home/u/work /work rw - ext4 /dev/sda1 rw\n";

    const APP: &str = "/var/lib/flatpak/app/org.x/x86_64/stable/5/files";
    const RUNTIME: &str = "/var/lib/flatpak/runtime/org.y/x86_64/1/8/files";

    struct Host {
        dir: tempfile::TempDir,
        root: Root,
    }

    impl Host {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let host = Self { root: Root::at(dir.path()), dir };
            host.put("proc/self/mountinfo", HOST);
            host.process(1, "mnt:[1]", "/", HOST);
            host
        }

        fn put(&self, path: &str, text: &str) {
            put(self.dir.path(), path.trim_start_matches('/'), text);
        }

        fn process(&self, pid: u32, mounts: &str, top: &str, mountinfo: &str) {
            self.put(&format!("proc/{pid}/mountinfo"), mountinfo);
            self.put(&format!("proc/{pid}/ns/x"), "");
            symlink(mounts, self.dir.path().join(format!("proc/{pid}/ns/mnt"))).unwrap();
            symlink(top, self.dir.path().join(format!("proc/{pid}/root"))).unwrap();
        }

        fn program(&self, pid: u32, exe: &str, script: &str) -> String {
            let program = Program { exe: exe.into(), script: Some(script.into()) };
            on_host(&self.root, &Mounts::read(&self.root), pid, program).to_string()
        }
    }

    #[test]
    fn a_program_is_named_by_its_scripts_file_wherever_it_runs() {
        let host = Host::new();
        for (pid, mounts, top, mountinfo) in [
            (10, "mnt:[1]", "/", HOST),
            (11, "mnt:[2]", "/", FLATPAK),
            (12, "mnt:[3]", "/", SNAP),
            (13, "mnt:[4]", "/", CONTAINER),
            (14, "mnt:[1]", "/srv/debian", HOST),
        ] {
            host.process(pid, mounts, top, mountinfo);
        }
        // The host has a file at the first path, too, which is another program.
        for file in [
            "/usr/bin/meld",
            "/home/u/x.py",
            "/srv/debian/usr/bin/meld",
            "/snap/editor/3/bin/main",
            "/snap/core22/9/usr/bin/meld",
            "/home/u/work/x.py",
            &format!("{APP}/bin/meld"),
            &format!("{APP}/bin/other"),
            &format!("{RUNTIME}/bin/meld"),
        ] {
            host.put(file, "");
        }
        let python = format!("{RUNTIME}/bin/python3.12");
        let snap_python = "/snap/core22/9/usr/bin/python3.10";
        let named = |exe: &str, script: &str| format!("{exe} {script}");
        let table = [
            (10, "/usr/bin/python3", "/usr/bin/meld", named("/usr/bin/python3", "/usr/bin/meld")),
            (10, "/usr/bin/python3", "/usr/bin/gone", "/usr/bin/python3".to_owned()),
            (11, &python, "/app/bin/meld", named(&python, &format!("{APP}/bin/meld"))),
            (11, &python, "/app/bin/other", named(&python, &format!("{APP}/bin/other"))),
            (11, &python, "/usr/bin/meld", named(&python, &format!("{RUNTIME}/bin/meld"))),
            (11, &python, "/home/u/x.py", named(&python, "/home/u/x.py")),
            (11, &python, "/run/x.py", python.clone()),
            (11, &python, "-m http.server", named(&python, "-m http.server")),
            (12, snap_python, "/snap/editor/3/bin/main", named(snap_python, "/snap/editor/3/bin/main")),
            (12, snap_python, "/usr/bin/meld", named(snap_python, "/snap/core22/9/usr/bin/meld")),
            (13, "/usr/bin/python3", "/usr/bin/meld", "/usr/bin/python3".to_owned()),
            (13, "/usr/bin/python3", "/work/x.py", named("/usr/bin/python3", "/home/u/work/x.py")),
            (
                14,
                "/srv/debian/bin/sh",
                "/usr/bin/meld",
                named("/srv/debian/bin/sh", "/srv/debian/usr/bin/meld"),
            ),
            (
                14,
                "/srv/debian/bin/sh",
                "/srv/debian/usr/bin/meld",
                named("/srv/debian/bin/sh", "/srv/debian/usr/bin/meld"),
            ),
            (99, "/usr/bin/python3", "/usr/bin/meld", named("/usr/bin/python3", "/usr/bin/meld")),
        ];
        for (pid, exe, script, expected) in table {
            assert_eq!(host.program(pid, exe, script), expected, "process {pid}: {exe} {script}");
        }
    }
}
