//! Programs of the host that run to their end.

use std::process::{Command, Stdio};

use crate::fault;

/// The PATH of an ordinary user or of a service may lack some of these directories.
const PATH: &str = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin";

/// Runs a command to its end, without input, and returns its standard output.
///
/// # Errors
/// It cannot be run, or it failed.
pub fn output(command: &mut Command) -> Result<String, fault::Command> {
    let output = command.env("PATH", PATH).stdin(Stdio::null()).output();
    let output = output.map_err(|e| fault::Command::new(command, format!("cannot be run: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(fault::Command::ended(command, &output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_quoted_with_its_answer() {
        assert_eq!(output(Command::new("echo").args(["a", "b"])).unwrap(), "a b\n");
        let failed = |command: &mut Command| output(command).unwrap_err().to_string();
        assert_eq!(
            failed(Command::new("sh").args(["-c", "echo no >&2; exit 3"])),
            "`sh -c echo no >&2; exit 3` failed (exit status: 3): no"
        );
        assert!(failed(&mut Command::new("eke-no-such")).starts_with("`eke-no-such` cannot be run: "));
    }
}
