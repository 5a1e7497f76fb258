//! The files of programs: those of their Debian packages and of all dependencies, since programs find plug-ins by path and no loader
//! names them. Pure, except [`Installed::read`], which asks dpkg.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use eke_bench_core::fault::on;

use super::error::{Error, Result};

/// One line per package: name, state, provides, dependencies.
const FORMAT: &str = "${Package}\t${db:Status-Status}\t${Provides}\t${Pre-Depends}, ${Depends}\n";
/// Directories that no program reads at its start.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/info/",
    "/usr/share/lintian/",
    "/usr/share/locale/",
    "/usr/share/help/",
];

/// The packages of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installed {
    depends: BTreeMap<String, Vec<Vec<String>>>,
    provided_by: BTreeMap<String, Vec<String>>,
}

impl Installed {
    /// Asks dpkg-query.
    ///
    /// # Errors
    /// There is no dpkg.
    pub fn read() -> Result<Self> {
        Ok(Self::parse(&answer(Command::new("dpkg-query").args(["-W", "-f", FORMAT]))?))
    }

    /// Parses lines of [`FORMAT`] (deb-control(5), `Depends` and `Provides`). Versions and architectures are dropped: dpkg has checked
    /// installed packages.
    pub fn parse(text: &str) -> Self {
        let mut all = Self::default();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let (Some(name), Some("installed")) = (fields.next(), fields.next()) else { continue };
            let (provides, depends) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
            for provided in groups(provides).into_iter().flatten() {
                all.provided_by.entry(provided).or_default().push(name.to_owned());
            }
            all.depends.entry(name.to_owned()).or_default().extend(groups(depends));
        }
        all
    }

    /// Is it installed?
    pub fn has(&self, package: &str) -> bool {
        self.depends.contains_key(package)
    }

    /// The installed ones of these packages, and all dependencies.
    pub fn closure<'a>(&self, packages: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
        let (mut seen, mut to_do) = (BTreeSet::new(), Vec::new());
        to_do.extend(packages.into_iter().filter(|p| self.has(p)).map(str::to_owned));
        while let Some(package) = to_do.pop() {
            if let Some(groups) = self.depends.get(&package).filter(|_| seen.insert(package.clone())) {
                to_do.extend(groups.iter().flatten().flat_map(|name| self.meant(name)));
            }
        }
        seen
    }

    /// The installed packages that have or provide this name.
    fn meant(&self, name: &str) -> Vec<String> {
        let own = self.has(name).then(|| name.to_owned());
        own.into_iter().chain(self.provided_by.get(name).cloned().unwrap_or_default()).collect()
    }
}

/// `a (>= 1) | b, c:any` as alternatives.
fn groups(text: &str) -> Vec<Vec<String>> {
    let name = |word: &str| {
        let word = word.trim().split([' ', '(', ':', '[']).next().unwrap_or_default();
        (!word.is_empty()).then(|| word.to_owned())
    };
    let of = |group: &str| group.split('|').filter_map(name).collect::<Vec<_>>();
    text.split(',').map(of).filter(|g| !g.is_empty()).collect()
}

/// The existing files of these packages, without documentation and translations.
///
/// # Errors
/// dpkg failed.
pub fn files(packages: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let output = answer(Command::new("dpkg").arg("-L").args(packages))?;
    let mut files: Vec<PathBuf> = wanted(&output).filter(|path| is_file(path)).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The paths in the output of `dpkg -L`. Its other lines are sentences.
fn wanted(output: &str) -> impl Iterator<Item = PathBuf> {
    let paths = output.lines().filter(|line| line.starts_with('/') && *line != "/.");
    paths.filter(|line| !LEFT_OUT.iter().any(|dir| line.starts_with(dir))).map(PathBuf::from)
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| !meta.is_dir())
}

fn answer(command: &mut Command) -> Result<String> {
    let program = PathBuf::from(command.get_program());
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::Usage(format!(
            "{} is not here: which files belong to a program is asked of Debian's dpkg, so this experiment runs on Debian and its children",
            program.display()
        )),
        _ => on("run", &program)(e).into(),
    })?;
    // dpkg -L fails if one of the packages is not installed, but still lists the others.
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "gedit\tinstalled\t\tlibc6 (>= 2.34), libx (= 1) | liby, font\n\
        libc6\tinstalled\tlibc-virtual\tlibgcc-s1\n\
        libgcc-s1\tinstalled\t\t, libc6\n\
        liby\tinstalled\t\t, \n\
        fonts-a\tinstalled\tfont (= 3), other\t, \n\
        libx\tconfig-files\t\t, \n\
        unrelated\tinstalled\t\t, libc6:any\n";

    #[test]
    fn a_closure_follows_alternatives_and_what_is_provided_as_far_as_installed() {
        let installed = Installed::parse(TEXT);
        let closure = installed.closure(["gedit", "absent"]);
        let names: Vec<&str> = closure.iter().map(String::as_str).collect();
        assert_eq!(names, ["fonts-a", "gedit", "libc6", "libgcc-s1", "liby"]);
        assert!(!installed.has("libx"), "removed, with its configuration left");
    }

    #[test]
    fn documentation_and_sentences_are_no_files() {
        let output = "/.\n/usr\n/usr/bin/gedit\n/usr/share/doc/gedit/copyright\n\
            package diverts others to: /usr/bin/x\n\n/usr/share/locale/de/LC_MESSAGES/gedit.mo\n";
        let paths: Vec<PathBuf> = wanted(output).collect();
        assert_eq!(paths, ["/usr", "/usr/bin/gedit"].map(PathBuf::from));
    }
}
