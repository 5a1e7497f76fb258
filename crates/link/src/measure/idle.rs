//! Asks a far end whether it has something to do.

use std::process::Stdio;

use super::ssh::Ssh;
use crate::busy::{COMMAND, why_busy};
use crate::error::{Error, Result};
use crate::parse::refusal::refusal;

/// Fails if the host is busy. One short connection in its configured cipher.
///
/// # Errors
/// [`Error::Busy`], or ssh does not reach it.
pub fn check(ssh: &Ssh, host: &str) -> Result<()> {
    Ssh::check(host)?;
    let mut command = ssh.connection(host, None, &["-T"], COMMAND);
    let output = command.stdin(Stdio::null()).output().map_err(|source| ssh.cannot_start(source))?;
    let may_ask = ssh.may_ask;
    if !output.status.success() {
        let refusal = refusal(&String::from_utf8_lossy(&output.stderr));
        return Err(Error::Refused { host: host.to_owned(), refusal, may_ask });
    }
    match why_busy(&String::from_utf8_lossy(&output.stdout)) {
        Some(why) => Err(Error::Busy { host: host.to_owned(), why }),
        None => Ok(()),
    }
}
