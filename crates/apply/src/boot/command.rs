//! Commands that make changed files count, and programs below a root.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{self, Stdio};

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// A command that makes changed files count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program's name and its arguments.
    pub argv: Vec<String>,
    /// Why.
    pub why: String,
}

impl Command {
    pub(super) fn new(line: &str, why: &str) -> Self {
        Self { argv: line.split(' ').map(str::to_owned).collect(), why: why.to_owned() }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.argv.join(" "))
    }
}

/// What came of a command.
pub(super) enum Ran {
    /// It was run.
    Yes,
    /// It would run on the machine that this root belongs to.
    Listed,
}

const PROGRAM_DIRS: [&str; 6] = ["usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"];

/// Where a program is below the root.
pub(super) fn find(root: &Root, program: &str) -> Option<String> {
    PROGRAM_DIRS.iter().map(|dir| format!("{dir}/{program}")).find(|path| root.path(path).is_file())
}

/// Runs a command on the running machine, its output captured.
pub(super) fn run(root: &Root, command: &Command) -> Result<Ran> {
    if !root.is_host() {
        return Ok(Ran::Listed);
    }
    let name = command.argv.first().map_or("", String::as_str);
    let missing = || {
        Error::Refused(format!("`{command}` cannot run: there is no {name} in {}", PROGRAM_DIRS.join(", ")))
    };
    let program = root.path(find(root, name).ok_or_else(missing)?);
    execute(&program, &command.argv[1..]).map(|()| Ran::Yes).map_err(|source| {
        let arguments = command.argv[1..].join(" ");
        Error::Io { operation: "run", path: program, value: Some(arguments), source }
    })
}

fn execute(program: &Path, arguments: &[String]) -> io::Result<()> {
    let path = PROGRAM_DIRS.map(|dir| format!("/{dir}")).join(":");
    let output = process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs([("PATH", path.as_str()), ("LC_ALL", "C")])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr })
            .trim()
            .to_owned();
    Err(io::Error::other(format!("{}, and it said: {said}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_quoted() {
        let said =
            execute(Path::new("/bin/sh"), &["-c".into(), "echo no space >&2; exit 3".into()]).unwrap_err();
        assert_eq!(said.to_string(), "exit status: 3, and it said: no space");
        execute(Path::new("/bin/sh"), &["-c".into(), "true".into()]).unwrap();
    }
}
