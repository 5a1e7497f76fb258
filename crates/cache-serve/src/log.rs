//! Log lines, on standard error, which is a file or nothing once the process is detached.

use eke_apply::log::Log;

/// The one thing of the process that is everywhere: workers are forks that say what they must from any place.
static LOG: Log = Log::new();

/// Says one line. What cannot be said is lost: a full disk must not end a mount.
pub fn say(what: &str) {
    LOG.write_line(&format!("eke-cache[{}]: {what}", std::process::id()));
}
