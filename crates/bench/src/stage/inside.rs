//! How a command gets into a tree.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// In a mount namespace of its own, so that what is mounted goes with the last process: `/dev` of the machine, `/proc`, and
/// what a session writes to memory. `$1` is the tree.
const SCRIPT: &str = "set -e; tree=$1; shift
mount --rbind /dev \"$tree/dev\"
[ ! -d \"$tree/dev/shm\" ] || mount -t tmpfs -o mode=1777 tmpfs \"$tree/dev/shm\"
mount -t proc proc \"$tree/proc\"
mount -t tmpfs -o mode=1777 tmpfs \"$tree/tmp\"
mount -t tmpfs -o mode=755 tmpfs \"$tree/run\"
exec chroot \"$tree\" \"$@\"";

/// What sets the environment in the tree.
const ENVIRONMENT: [&str; 4] = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/tmp",
    "TMPDIR=/tmp",
    "LANG=C.UTF-8",
];

/// `command`, whose paths are those in the tree, as a command of this machine that runs it there, as root and with nothing
/// of this machine's environment. `/tmp` and `/run` are empty, in memory and writable. util-linux and coreutils do the work;
/// `/usr/bin/env` must be in the tree ([`PROGRAMS`]).
pub fn inside(tree: &Path, command: &[OsString]) -> Vec<OsString> {
    let before = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", SCRIPT, "sh"];
    let mut all: Vec<OsString> = before.map(OsString::from).to_vec();
    all.push(tree.into());
    all.extend(["/usr/bin/env", "-i"].into_iter().chain(ENVIRONMENT).map(OsString::from));
    all.extend(command.iter().map(AsRef::<OsStr>::as_ref).map(OsString::from));
    all
}

/// What [`inside`] needs among a tree's programs.
pub const PROGRAMS: [&str; 1] = ["/usr/bin/env"];
