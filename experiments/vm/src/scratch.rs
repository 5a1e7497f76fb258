//! Helpers on the host: writes scratch files, and runs programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::{Error, Result, last_lines, on};

/// Writes a scratch file, which is no kernel setting.
///
/// # Errors
/// The system's answer, with the path.
#[expect(clippy::disallowed_methods, reason = "scratch files; no kernel attribute is below these paths")]
pub fn write_scratch(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(on("write", path))
}

/// Creates a directory and its parents.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(on("make the directory", path))
}

/// Reads a whole text file.
pub(super) fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(on("read", path))
}

/// Runs a program and returns its standard output.
///
/// # Errors
/// It does not start or does not succeed; with the end of its output.
pub fn run_to_end(command: &mut Command) -> Result<String> {
    let line = command_line(command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| Error::Command {
        command: line.clone(),
        answer: format!("did not start: {error}"),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let answer = format!("ended with {}: {}", output.status, last_lines(&message, 8).join(" | "));
    Err(Error::Command { command: line, answer })
}

/// Finds a program in PATH, and in the sbin directories, which an ordinary user's PATH lacks.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(sbin).map(|place| place.join(name)).find(|file| file.is_file())
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{program, run_to_end};
    use std::process::Command;

    #[test]
    fn a_failing_program_is_named_with_its_output() {
        let error = run_to_end(Command::new("sh").args(["-c", "echo no room >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c echo no room >&2; exit 3` ended with exit status: 3: no room");
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(program("sh").is_some());
        assert!(program("no-such-program-here").is_none());
    }
}
