//! What can go wrong with the small machine, said for people.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::kit::Missing;

/// The result of everything in [`crate`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that the small machine needs is not on this host.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file or directory on the host could not be read, written or made.
    #[error("could not {what} {path}: {source}")]
    File {
        /// What was tried, as a verb.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// A program of the host could not be started or did not succeed.
    #[error("`{command}` {answer}")]
    Command {
        /// The command line that was run.
        command: String,
        /// How it ended, with the end of what it said.
        answer: String,
    },
    /// A wanted kernel module is not there, or not in a form that can be carried.
    #[error("module {name}: {problem}")]
    Module {
        /// The module's name as asked for.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A binary would not start in the machine, because it needs a dynamic linker that is not there.
    #[error("{path} is not a static x86-64 binary ({problem}); make it with eke_vm::build_static")]
    NotStatic {
        /// The binary.
        path: PathBuf,
        /// What was seen in it.
        problem: &'static str,
    },
    /// The recipe asks for something that cannot be.
    #[error("recipe: {0}")]
    Recipe(String),
    /// The time limit passed; QEMU was killed.
    #[error("the small machine was still running after {} s and was killed\n{trace}", limit.as_secs_f32())]
    TimedOut {
        /// The limit of the recipe.
        limit: Duration,
        /// What the machine had said.
        trace: Trace,
    },
    /// The caller asked for the end; QEMU was killed.
    #[error("interrupted; the small machine was switched off")]
    Interrupted,
    /// The machine ended before its script did: a panic, a power-off by the script, or QEMU did not start.
    #[error("the small machine ended before its script ({ending})\n{trace}")]
    Ended {
        /// How QEMU ended.
        ending: String,
        /// What the machine had said.
        trace: Trace,
    },
}

/// What a machine had said when it failed. Displayed as the last lines of each.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The script's output so far.
    pub output: String,
    /// The kernel's and init's console.
    pub console: String,
    /// What QEMU itself said.
    pub qemu: String,
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, text) in [("qemu", &self.qemu), ("console", &self.console), ("output", &self.output)] {
            for line in last_lines(text, 25) {
                writeln!(f, "  {name}: {line}")?;
            }
        }
        Ok(())
    }
}

/// The last `count` lines of `text` that are not empty.
pub(super) fn last_lines(text: &str, count: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}

/// Makes an [`Error::File`] of an I/O error: for `map_err`.
pub(super) fn on(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::File { what, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::{Trace, last_lines};

    #[test]
    fn the_last_lines_skip_empty_ones() {
        assert_eq!(last_lines("a\r\n\r\nb\n\nc\n", 2), ["b", "c"]);
        assert_eq!(last_lines("", 2), Vec::<&str>::new());
    }

    #[test]
    fn a_trace_names_where_each_line_came_from() {
        let trace = Trace { output: "o\n".into(), console: "c\n".into(), qemu: String::new() };
        assert_eq!(trace.to_string(), "  console: c\n  output: o\n");
    }
}
