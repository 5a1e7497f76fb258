//! The files on the programs' disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use eke_bench_core::fault::Missing;
use eke_bench_core::test_image::Parts;
use eke_bench_desktop::documents;

use super::error::{Error, Result};
use super::packages::{self, Installed};
use super::programs::{DOCUMENT, Program};

/// Files made by packages' scripts and triggers, which no package lists: caches, compiled schemas, lists of loaders and modules.
/// Missing ones are not needed.
const GENERATED: [&str; 22] = [
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/gtk-3.0",
    "/etc/libreoffice",
    "/etc/ssl/openssl.cnf",
    "/etc/xdg",
    "/etc/X11/app-defaults",
    "/usr/lib/locale",
    "/usr/lib/x86_64-linux-gnu/gdk-pixbuf-2.0",
    "/usr/lib/x86_64-linux-gnu/gio",
    "/usr/lib/x86_64-linux-gnu/gtk-3.0",
    "/usr/lib/aarch64-linux-gnu/gdk-pixbuf-2.0",
    "/usr/lib/aarch64-linux-gnu/gio",
    "/usr/lib/aarch64-linux-gnu/gtk-3.0",
    "/usr/share/applications",
    "/usr/share/fonts",
    "/usr/share/glib-2.0/schemas",
    "/usr/share/icons/hicolor/icon-theme.cache",
    "/usr/share/icons/Adwaita/icon-theme.cache",
    "/usr/share/mime",
    "/var/cache/fontconfig",
    "/var/lib/libreoffice",
];
/// Python's compiled modules, made when packages are configured.
const COMPILED: &str = "__pycache__";

/// The installed programs, and the reasons for leaving out others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct There {
    /// In the order of the table.
    pub programs: Vec<&'static Program>,
    /// Name and reason.
    pub lacking: Vec<(&'static str, String)>,
}

/// Finds which of these programs are installed.
pub fn there(programs: &[&'static Program], installed: &Installed) -> There {
    let mut there = There::default();
    for program in programs {
        let package = program.packages.first().copied().unwrap_or_default();
        match program.executable() {
            Some(_) if installed.has(package) => there.programs.push(program),
            Some(_) => {
                there.lacking.push((program.name, format!("its package {package} is not one of dpkg's")))
            }
            None => there.lacking.push((program.name, lacking(program, package).to_string())),
        }
    }
    there
}

fn lacking(program: &Program, package: &str) -> Missing {
    let name = program.executables.first().copied().unwrap_or(program.name);
    Missing::new(name, format!("\"{}\" needs", program.name), package)
}

/// Everything that these programs read: the files of their packages and dependencies, generated files, and a document for viewers.
///
/// # Errors
/// dpkg failed.
pub fn parts(programs: &[&'static Program], installed: &Installed, document: Option<&Path>) -> Result<Parts> {
    let names =
        programs.iter().flat_map(|p| p.packages.iter().copied()).chain(["libc6", "libc-bin", "base-files"]);
    let mut plain = packages::files(&installed.closure(names))?;
    let compiled = compiled(&plain);
    plain.extend(compiled);
    plain.extend(GENERATED.iter().map(PathBuf::from));
    let executables = programs.iter().filter_map(|p| p.executable()).map(PathBuf::from).collect();
    let mut parts = Parts { programs: executables, plain, ..Parts::default() };
    if let Some(document) = document {
        parts.document(document, DOCUMENT);
    }
    Ok(parts)
}

fn compiled(files: &[PathBuf]) -> Vec<PathBuf> {
    let sources = files.iter().filter(|path| path.extension().is_some_and(|e| e == "py"));
    let directories: BTreeSet<PathBuf> =
        sources.filter_map(|path| Some(path.parent()?.join(COMPILED))).collect();
    directories.into_iter().filter(|dir| dir.is_dir()).collect()
}

/// A PDF of about a megabyte, from this directory or from this machine's documentation. Compressed ones are decompressed into `cache`.
///
/// # Errors
/// There is no such PDF.
pub fn document(own: Option<&Path>, cache: &Path) -> Result<documents::Document> {
    let found = match own {
        Some(dir) => documents::own(dir, cache)?,
        None => documents::find(&documents::DIRECTORIES.map(PathBuf::from), cache),
    };
    let choice = documents::choose(&found.documents, &documents::Requirements::of_the_study(1))?;
    choice.documents.into_iter().next().ok_or_else(|| Error::Usage("there is no document here".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_modules_come_with_their_sources() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(COMPILED)).unwrap();
        let files = ["a.py", "b.py", "c.txt"].map(|n| dir.path().join(n));
        assert_eq!(compiled(&files), [dir.path().join(COMPILED)]);
        assert!(compiled(&[PathBuf::from("/nonexistent/a.py")]).is_empty());
    }

    #[test]
    fn what_is_not_here_is_said_with_its_package() {
        static ABSENT: Program = Program {
            name: "absent",
            about: "",
            executables: &["/nonexistent/absent"],
            arguments: &[],
            staying: &[],
            until: super::super::programs::Until::Exit,
            packages: &["absent-tools"],
            set: super::super::programs::Set::All,
        };
        let there = there(&[&ABSENT], &Installed::default());
        assert!(there.programs.is_empty());
        assert!(
            there.lacking[0].1.contains("/nonexistent/absent is not installed")
                && there.lacking[0].1.contains("absent-tools")
        );
    }
}
