//! Log lines, on standard error, which is a file or nothing once the process is detached.

use std::io::Write as _;

/// Says one line. What cannot be said is lost: a full disk must not end a mount.
pub fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "eke-cache[{}]: {what}", std::process::id());
}
