//! The programs, as data.

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
    /// With --quick too.
    pub quick: bool,
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

/// The program of this name.
pub fn named(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|p| p.name == name)
}

/// Imports some 300 modules of the standard library, and numpy if it is installed.
macro_rules! imports {
    () => {
        "import asyncio, ctypes, decimal, email.mime.multipart, http.server, json, logging.config, multiprocessing.pool, \
         sqlite3, ssl, unittest.mock, urllib.request, xml.dom.minidom, xml.etree.ElementTree, xmlrpc.client, zipfile\n\
         try:\n import numpy, numpy.random, numpy.polynomial\nexcept ImportError:\n pass\n"
    };
}

/// All programs, in the order of the table.
pub static PROGRAMS: [Program; 6] = [
    Program {
        name: "xterm",
        about: "a terminal",
        executables: &["/usr/bin/xterm"],
        arguments: &["-e", "/bin/sleep", "600"],
        staying: &[],
        until: Until::Window,
        packages: &["xterm", "coreutils", "fonts-dejavu-core", "xfonts-base"],
        quick: true,
    },
    Program {
        name: "gedit",
        about: "GNOME's text editor",
        executables: &["/usr/bin/gedit"],
        arguments: &["--standalone"],
        staying: &[],
        until: Until::Window,
        packages: &["gedit", "adwaita-icon-theme", "librsvg2-common", "fonts-dejavu-core", "xkb-data"],
        quick: true,
    },
    Program {
        name: "python",
        about: "Python that imports some 300 modules, from exec to exit",
        executables: &["/usr/bin/python3"],
        arguments: &["-c", imports!()],
        staying: &["-c", concat!(imports!(), "import time\ntime.sleep(600)\n")],
        until: Until::Exit,
        packages: &["python3", "python3-numpy"],
        quick: true,
    },
    Program {
        name: "mupdf",
        about: "a PDF viewer with a document",
        executables: &["/usr/lib/mupdf/mupdf-x11", "/usr/bin/mupdf-x11", "/usr/bin/mupdf"],
        arguments: &["@document"],
        staying: &[],
        until: Until::Window,
        packages: &["mupdf", "xkb-data"],
        quick: false,
    },
    Program {
        name: "chromium",
        about: "headless Chromium with an empty page, from exec to exit",
        executables: &["/usr/lib/chromium/chromium", "/usr/lib64/chromium-browser/chromium-browser"],
        arguments: &[
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--user-data-dir=/tmp/home/chromium",
            "--dump-dom",
            "about:blank",
        ],
        staying: &[
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--user-data-dir=/tmp/home/chromium",
            "--remote-debugging-port=0",
            "about:blank",
        ],
        until: Until::Exit,
        packages: &["chromium", "fonts-dejavu-core"],
        quick: false,
    },
    Program {
        name: "writer",
        about: "LibreOffice Writer with an empty document",
        executables: &["/usr/lib/libreoffice/program/oosplash", "/usr/lib64/libreoffice/program/oosplash"],
        arguments: &["--writer", "--nologo", "--norestore", "--nolockcheck"],
        staying: &[],
        until: Until::Window,
        packages: &["libreoffice-writer", "libreoffice-gtk3", "fonts-dejavu-core", "xkb-data"],
        quick: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_their_own_and_each_says_where_it_is_from() {
        let names: std::collections::BTreeSet<_> = PROGRAMS.iter().map(|p| p.name).collect();
        assert_eq!(names.len(), PROGRAMS.len());
        assert!(
            PROGRAMS
                .iter()
                .all(|p| !p.packages.is_empty() && p.executables.iter().all(|e| e.starts_with('/')))
        );
        assert!(named("emacs").is_none());
    }

    #[test]
    fn a_viewer_gets_its_document() {
        let mupdf = named("mupdf").unwrap();
        assert!(mupdf.needs_document());
        assert_eq!(mupdf.arguments(Some("/documents/a.pdf")), ["/documents/a.pdf"]);
    }
}
