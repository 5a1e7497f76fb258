//! A program: an executable, or the script that an interpreter runs.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use eke_model::text::one_line;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// A program. It stays the same through upgrades of its files at the same paths. Paths are the host's, so a container's `/usr/bin/x` appears under the container's
/// directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Program {
    /// The executable.
    pub exe: PathBuf,
    /// The script, if `exe` is an interpreter: two scripts of one interpreter are two programs.
    pub script: Option<PathBuf>,
}

/// A hash of a program's paths, the same on every machine and in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramId(pub u64);

impl Program {
    /// A program without a script.
    pub fn of_exe(exe: impl Into<PathBuf>) -> Self {
        Self { exe: exe.into(), script: None }
    }

    /// Its id.
    pub fn id(&self) -> ProgramId {
        let script = self.script.as_deref().map_or(OsStr::new(""), Path::as_os_str);
        ProgramId::of_name(&[self.exe.as_os_str().as_bytes(), b"\0", script.as_bytes()].concat())
    }
}

impl ProgramId {
    /// The id for a name, which may be any bytes.
    pub fn of_name(name: &[u8]) -> Self {
        Self(XxHash3_64::oneshot(name))
    }
}

/// Paths are untrusted: control characters and invalid UTF-8 are escaped.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", shown(&self.exe))?;
        self.script.as_deref().map_or(Ok(()), |script| write!(f, " {}", shown(script)))
    }
}

/// A path, escaped for a terminal.
pub fn shown(path: &Path) -> String {
    let text = path.as_os_str().as_bytes().utf8_chunks().fold(String::new(), |mut text, chunk| {
        text.push_str(&one_line(chunk.valid()));
        text.extend(
            chunk.invalid().iter().flat_map(|byte| format!("\\x{byte:02x}").chars().collect::<Vec<_>>()),
        );
        text
    });
    if text.is_empty() { "?".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_one_interpreter_are_programs_of_their_own() {
        let python = Program::of_exe("/usr/bin/python3");
        let script = Program { script: Some("/usr/bin/meld".into()), ..python.clone() };
        assert_ne!(python.id(), script.id());
        assert_eq!(script.to_string(), "/usr/bin/python3 /usr/bin/meld");
    }

    #[test]
    fn a_hostile_name_cannot_speak_to_the_terminal() {
        let program = Program::of_exe(OsStr::from_bytes(b"/tmp/\x1b[2J\xff\nx"));
        assert_eq!(program.to_string(), "/tmp/\\u001b[2J\\xff\\u000ax");
    }
}
