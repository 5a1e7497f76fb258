//! The programs, as data.

mod more;
mod usual;

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The programs' home directory in the tree. It is in memory, and keeps the files of a first start.
pub const HOME: &str = "/tmp/home";
/// The viewer's document in the tree.
pub const DOCUMENT: &str = "startup.pdf";

/// When a launch is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Its first top-level window is mapped that window managers manage (no menu, tooltip or splash screen).
    Window,
    /// The program ended.
    Exit,
    /// At once: it only has to run.
    Begun,
}

/// When a program is measured that the user does not name. A set has those before it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    /// Always.
    Quick,
    /// Without --quick.
    Usual,
    /// With `--programs all`.
    All,
}

/// A program.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name in tables and on the command line.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Paths of the executable, the first of which exists. A shell wrapper would be another program.
    pub executables: &'static [&'static str],
    /// `@document` stands for the document's path in the tree.
    pub arguments: &'static [&'static str],
    /// Other arguments with which a program keeps running that would end by itself, so that a poll every few seconds finds it.
    pub staying: &'static [&'static str],
    /// When its launch is over.
    pub until: Until,
    /// Debian's packages. They and their dependencies are on the disk. The first must be installed, the others may be.
    pub packages: &'static [&'static str],
    /// When it is measured.
    pub set: Set,
}

impl Program {
    /// Does it end by itself? The CPU time of a program is known when it ends.
    pub fn ends(&self) -> bool {
        self.until == Until::Exit
    }

    /// Does it show a document?
    pub fn needs_document(&self) -> bool {
        self.arguments.contains(&"@document")
    }

    /// Its arguments, with this document.
    pub fn arguments(&self, document: Option<&str>) -> Vec<String> {
        Self::filled(self.arguments, document)
    }

    /// The arguments with which it keeps running.
    pub fn staying(&self, document: Option<&str>) -> Vec<String> {
        Self::filled(if self.staying.is_empty() { self.arguments } else { self.staying }, document)
    }

    fn filled(arguments: &[&str], document: Option<&str>) -> Vec<String> {
        let filled = |a: &&str| {
            if *a == "@document" { document.unwrap_or_default().to_owned() } else { (*a).to_owned() }
        };
        arguments.iter().map(filled).collect()
    }

    /// When a launch with those arguments is over.
    pub fn until_staying(&self) -> Until {
        if self.until == Until::Window { Until::Window } else { Until::Begun }
    }

    /// The executable's path, on this machine and in the tree.
    pub fn executable(&self) -> Option<&'static str> {
        self.executables.iter().copied().find(|path| Path::new(path).is_file())
    }
}

/// All programs, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Program> + Clone {
    usual::PROGRAMS.iter().chain(&more::PROGRAMS)
}

/// The program of this name.
pub fn named(name: &str) -> Option<&'static Program> {
    all().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_their_own_and_each_says_where_it_is_from() {
        let names: std::collections::BTreeSet<_> = all().map(|p| p.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|p| !p.packages.is_empty() && p.executables.iter().all(|e| e.starts_with('/'))));
        assert!(named("ed").is_none());
    }

    #[test]
    fn a_viewer_gets_its_document() {
        let mupdf = named("mupdf").unwrap();
        assert!(mupdf.needs_document());
        assert_eq!(mupdf.arguments(Some("/documents/a.pdf")), ["/documents/a.pdf"]);
    }
}
