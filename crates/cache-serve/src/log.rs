//! Log lines on standard error, which is a file or closed once the process is detached.

use eke_apply::log::Log;

/// The process's only global state: any part of a worker may log.
static LOG: Log = Log::new();

/// Logs one line. A line that cannot be written is lost: a full disk must not end a mount.
pub fn log_line(what: &str) {
    LOG.write_line(&format!("eke-cache[{}]: {what}", std::process::id()));
}
