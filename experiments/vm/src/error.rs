//! The errors of the small machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::parts::Missing;

/// The result type of [`crate`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the small machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part of the small machine is not on this host.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file or directory of the host could not be read, written or created.
    #[error("could not {what} {path}: {source}")]
    File {
        /// The operation, a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A program of the host could not be started, or failed.
    #[error("`{command}` {answer}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status and the end of its output.
        answer: String,
    },
    /// A kernel module is missing, or has an unsupported format.
    #[error("module {name}: {problem}")]
    Module {
        /// The requested name.
        name: String,
        /// The problem.
        problem: String,
    },
    /// A binary cannot start in the machine, because it needs a dynamic linker.
    #[error("{path} is not a static x86-64 binary ({problem}); make it with eke_vm::build_static")]
    NotStatic {
        /// The binary.
        path: PathBuf,
        /// Why it is not static.
        problem: &'static str,
    },
    /// An impossible recipe.
    #[error("recipe: {0}")]
    Recipe(String),
    /// The time limit passed, and QEMU was killed.
    #[error("the small machine was still running after {} s and was killed\n{trace}", limit.as_secs_f32())]
    TimedOut {
        /// The limit of the recipe.
        limit: Duration,
        /// The machine's output until then.
        trace: Trace,
    },
    /// The caller requested a stop, and QEMU was killed.
    #[error("interrupted; the small machine was switched off")]
    Interrupted,
    /// The machine ended before its script: a panic, a power-off by the script, or QEMU did not start.
    #[error("the small machine ended before its script ({ending})\n{trace}")]
    Ended {
        /// How QEMU ended.
        ending: String,
        /// The machine's output until then.
        trace: Trace,
    },
}

/// The output of a machine that failed. Displays the last lines of each part.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The script's output so far.
    pub output: String,
    /// The kernel's and init's console.
    pub console: String,
    /// QEMU's own messages.
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

/// The last `count` nonempty lines of `text`.
pub(super) fn last_lines(text: &str, count: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}

/// Creates an [`Error::File`] from an I/O error, for `map_err`.
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
