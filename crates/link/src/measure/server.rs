//! This machine's own ssh server, to which LTSP's clients connect.

use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::parse::config::{Config, config};

/// Where distributions have it; a user's PATH may lack the directory.
const PROGRAM: &str = "/usr/sbin/sshd";

/// Its configuration, by `sshd -T` (sshd(8)), which needs root.
///
/// # Errors
/// It cannot be started, or rejects its configuration.
pub fn own() -> Result<Config> {
    let program = if Path::new(PROGRAM).exists() { PROGRAM } else { "sshd" };
    let failed = |why| Error::OwnServer { why };
    let output = Command::new(program).arg("-T").output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(config(&String::from_utf8_lossy(&output.stdout)))
}
