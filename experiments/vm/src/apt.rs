//! apt, of this machine's own suite or of another one of Debian.

use std::path::Path;
use std::process::Command;

use super::error::Result;
use super::scratch::{make_directory, run_to_end, write_scratch};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const MIRROR: &str = "http://deb.debian.org/debian";

/// Where packages come from.
pub(super) struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// This machine's own sources.
    pub(super) fn own() -> Self {
        Self { options: Vec::new() }
    }

    /// A suite of Debian, from the mirror of `DEBIAN_MIRROR`. Its lists are in `place`; this machine's are not touched.
    ///
    /// # Errors
    /// The lists cannot be made in `place`.
    pub(super) fn of(suite: &str, place: &Path) -> Result<Self> {
        let (lists, archives) = (place.join("lists"), place.join("cache"));
        make_directory(&lists.join("partial"))?;
        make_directory(&archives.join("archives/partial"))?;
        let mirror = std::env::var("DEBIAN_MIRROR").unwrap_or_else(|_| MIRROR.to_owned());
        let sources = place.join("sources.list");
        write_scratch(&sources, format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n").as_bytes())?;
        let set = |name: &str, value: &Path| format!("{name}={}", value.display());
        let settings = [
            set("Dir::Etc::SourceList", &sources),
            "Dir::Etc::SourceParts=-".to_owned(),
            set("Dir::State::Lists", &lists),
            set("Dir::Cache", &archives),
        ];
        Ok(Self { options: settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect() })
    }

    /// A command with one of apt's programs.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C").args(&self.options);
        command
    }

    /// Tries `action`; if it fails, updates the lists (which may be missing or old) and tries once more.
    pub(super) fn after_update_if_needed(&self, action: impl Fn() -> Result<String>) -> Result<String> {
        action().or_else(|_| {
            run_to_end(self.command("apt-get").arg("update"))?;
            action()
        })
    }

    /// The packages that a package needs.
    pub(super) fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let answer =
            self.after_update_if_needed(|| run_to_end(self.command("apt-cache").args(["depends", package])))?;
        Ok(dependencies(&answer))
    }
}

/// The packages in an answer of `apt-cache depends`.
fn dependencies(answer: &str) -> Vec<String> {
    answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{Apt, dependencies};

    #[test]
    fn alternatives_are_left_out() {
        let answer = "linux-image-7.2.13-amd64\n  PreDepends: linux-base\n |Depends: dracut\n  Depends: linux-modules-7.2.13-amd64\n";
        assert_eq!(dependencies(answer), ["linux-modules-7.2.13-amd64"]);
    }

    #[test]
    fn another_suite_has_lists_of_its_own() {
        let place = tempfile::tempdir().unwrap();
        let apt = Apt::of("trixie", place.path()).unwrap();
        let words: Vec<_> = apt.command("apt-get").get_args().map(|word| word.to_os_string()).collect();
        assert!(words.contains(&"Dir::Etc::SourceParts=-".into()), "{words:?}");
        let sources = std::fs::read_to_string(place.path().join("sources.list")).unwrap();
        assert!(sources.ends_with(" trixie main\n"), "{sources}");
    }
}
