//! The names of variants and metrics.

use eke_bench_core::Environment;
use eke_results::report::{Report, Role, Row, Variant, less};

use super::Source;

pub(super) const FIND: &str = "find";
pub(super) const FIND_AGAIN: &str = "find, again";
pub(super) const LIST: &str = "ls -lR";
pub(super) const LIST_AGAIN: &str = "ls -lR, again";
pub(super) const STATUS: &str = "git status";
pub(super) const COMMITS: &str = "50 git commits";
pub(super) const SEARCH: &str = "grep -r";
pub(super) const COPY: &str = "cp -r, and rm -r";
pub(super) const WRITE: &str = "small writes";
pub(super) const SEEN: &str = "a change below is seen";

impl Source {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "files",
            Self::Again => eke_results::again!("files"),
            Self::Mount => "eke",
            Self::Unwatched => "eke, --no-watch",
        }
    }

    fn variant(self) -> Variant {
        let (role, set_up) = match self {
            Self::Native => (Role::Baseline, "the files themselves, known to the kernel"),
            Self::Again => (Role::Peer, "the same once more: the difference is noise"),
            Self::Mount => {
                (Role::Ours, "a new mount at its defaults in each round; the kernel knows the files below")
            }
            Self::Unwatched => (
                Role::Variation,
                "the same without reports of changes: names and attributes are kept for a second",
            ),
        };
        Variant { name: self.name().into(), role, set_up: set_up.into() }
    }
}

pub(super) fn report(environment: &Environment<'_>, rows: Vec<Row>, notes: Vec<String>) -> Report {
    Report {
        variants: Source::ALL.map(Source::variant).to_vec(),
        metrics: vec![
            less(FIND, "all names, the first time"),
            less(FIND_AGAIN, "all names, directly after that"),
            less(LIST, "all names and attributes, the first time after find"),
            less(LIST_AGAIN, "all names and attributes, directly after that"),
            less(STATUS, "of a repository with a twentieth of the files, the second time"),
            less(COMMITS, "in that repository, each by a new process"),
            less(SEARCH, "through the repository's files, the second time"),
            less(COPY, "of the repository's files, within the same tree"),
            less(WRITE, "a new file of 16 MiB, 512 bytes at a time"),
            less(
                SEEN,
                "the time until a change of a file's mode in the backing directory shows on the mount",
            ),
        ],
        rows,
        notes,
        ..environment.report("names")
    }
}

#[cfg(test)]
mod tests {
    use eke_results::report::again::first_of;

    use super::*;

    #[test]
    fn the_arm_that_is_measured_again_is_the_noise_of_the_files() {
        assert_eq!(first_of(Source::Again.name()), Some(Source::Native.name()));
    }
}
