//! The viewers, as data: how to start each with one whole page on the screen, and its keys for the next and previous page.

/// A key of a US keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The X keysym. For Latin characters it is the character's code.
    pub keysym: u32,
    /// Whether the shift key is pressed too.
    pub shift: bool,
}

const fn key(c: u8) -> Key {
    Key { keysym: c as u32, shift: c.is_ascii_uppercase() }
}

/// A program that shows documents.
#[derive(Debug)]
pub struct Viewer {
    /// Its name in [`crate::session::Spec::viewer`].
    pub name: &'static str,
    /// The program: the first of these that is installed. No shell wrappers: they would be another process.
    pub programs: &'static [&'static str],
    /// Debian's package.
    pub package: &'static str,
    /// The arguments before the document. The viewer has a home directory of its own, so it starts at page 1.
    pub arguments: &'static [&'static str],
    /// The key that fits one whole page to the maximised window, pressed once.
    pub fit: Option<Key>,
    /// The key for the next page.
    pub next: Key,
    /// The key for the page before.
    pub back: Key,
    /// The height of its status bar at the bottom, in pixels: page numbers and a blinking cursor, no document.
    pub status_bar: u16,
    /// Files that it reads beside its program and libraries.
    pub files: &'static [&'static str],
}

/// All viewers; the first is the default.
pub fn viewers() -> &'static [Viewer] {
    &VIEWERS
}

/// The viewer of this name.
pub fn viewer(name: &str) -> Option<&'static Viewer> {
    VIEWERS.iter().find(|v| v.name == name)
}

static VIEWERS: [Viewer; 3] = [
    // The study used kpdf, which is based on xpdf. Debian's xpdf is that program over poppler.
    Viewer {
        name: "xpdf",
        programs: &["xpdf.real", "xpdf"],
        package: "xpdf",
        arguments: &["-z", "page"],
        fit: None,
        next: key(b'n'),
        back: key(b'p'),
        status_bar: 64,
        files: &["/etc/xpdf", "/usr/share/poppler", "/etc/X11/app-defaults", "/usr/share/X11/app-defaults"],
    },
    Viewer {
        name: "mupdf",
        programs: &["/usr/lib/mupdf/mupdf-x11", "mupdf-x11", "mupdf"],
        package: "mupdf",
        arguments: &[],
        fit: Some(key(b'Z')),
        next: key(b'.'),
        back: key(b','),
        status_bar: 0,
        files: &[],
    },
    Viewer {
        name: "zathura",
        programs: &["zathura"],
        package: "zathura zathura-pdf-poppler",
        arguments: &["--log-level=error", "--page=1"],
        fit: None,
        next: key(b'J'),
        back: key(b'K'),
        status_bar: 32,
        files: &[
            "/usr/lib/x86_64-linux-gnu/zathura",
            "/usr/lib/aarch64-linux-gnu/zathura",
            "/usr/share/poppler",
            "/usr/share/mime",
            "/usr/share/glib-2.0/schemas",
            "/usr/lib/x86_64-linux-gnu/gdk-pixbuf-2.0",
            "/usr/lib/aarch64-linux-gnu/gdk-pixbuf-2.0",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_have_unique_names_and_keys_for_both_directions() {
        let names: std::collections::BTreeSet<_> = viewers().iter().map(|v| v.name).collect();
        assert_eq!(names.len(), viewers().len());
        assert!(viewers().iter().all(|v| v.next != v.back && !v.programs.is_empty()));
        assert_eq!(viewer("mupdf").and_then(|v| v.fit), Some(Key { keysym: 0x5a, shift: true }));
        assert!(viewer("kpdf").is_none());
    }
}
