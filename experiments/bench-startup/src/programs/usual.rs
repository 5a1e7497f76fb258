//! The programs of the usual experiment.

use super::{Program, Set, Until};

/// Imports some 300 modules of the standard library, and numpy if it is installed.
macro_rules! imports {
    () => {
        "import asyncio, ctypes, decimal, email.mime.multipart, http.server, json, logging.config, multiprocessing.pool, \
         sqlite3, ssl, unittest.mock, urllib.request, xml.dom.minidom, xml.etree.ElementTree, xmlrpc.client, zipfile\n\
         try:\n import numpy, numpy.random, numpy.polynomial\nexcept ImportError:\n pass\n"
    };
}

/// In the order of the table.
pub(super) static PROGRAMS: [Program; 6] = [
    Program {
        name: "xterm",
        about: "a terminal",
        executables: &["/usr/bin/xterm"],
        arguments: &["-e", "/bin/sleep", "600"],
        staying: &[],
        until: Until::Window,
        packages: &["xterm", "coreutils", "fonts-dejavu-core", "xfonts-base"],
        set: Set::Quick,
    },
    Program {
        name: "gedit",
        about: "GNOME's text editor",
        executables: &["/usr/bin/gedit"],
        arguments: &["--standalone"],
        staying: &[],
        until: Until::Window,
        packages: &["gedit", "adwaita-icon-theme", "librsvg2-common", "fonts-dejavu-core", "xkb-data"],
        set: Set::Quick,
    },
    Program {
        name: "python",
        about: "Python that imports some 300 modules, from exec to exit",
        executables: &["/usr/bin/python3"],
        arguments: &["-c", imports!()],
        staying: &["-c", concat!(imports!(), "import time\ntime.sleep(600)\n")],
        until: Until::Exit,
        packages: &["python3", "python3-numpy"],
        set: Set::Quick,
    },
    Program {
        name: "mupdf",
        about: "a PDF viewer with a document",
        executables: &["/usr/lib/mupdf/mupdf-x11", "/usr/bin/mupdf-x11", "/usr/bin/mupdf"],
        arguments: &["@document"],
        staying: &[],
        until: Until::Window,
        packages: &["mupdf", "xkb-data"],
        set: Set::Usual,
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
        set: Set::Usual,
    },
    Program {
        name: "writer",
        about: "LibreOffice Writer with an empty document",
        executables: &["/usr/lib/libreoffice/program/oosplash", "/usr/lib64/libreoffice/program/oosplash"],
        arguments: &["--writer", "--nologo", "--norestore", "--nolockcheck"],
        staying: &[],
        until: Until::Window,
        packages: &["libreoffice-writer", "libreoffice-gtk3", "fonts-dejavu-core", "xkb-data"],
        set: Set::Usual,
    },
];
