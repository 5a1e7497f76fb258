//! The viewers, as data: how each is started with one whole page on the screen, and which keys turn pages.

/// A key of a US keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The X keysym; of Latin characters it is their code.
    pub keysym: u32,
    /// With the shift key.
    pub shift: bool,
}

const fn key(c: u8) -> Key {
    Key { keysym: c as u32, shift: c.is_ascii_uppercase() }
}

/// A program that shows documents.
#[derive(Debug)]
pub struct Viewer {
    /// As in [`crate::session::Spec::viewer`].
    pub name: &'static str,
    /// The program, the first of these that is there. No shell wrappers: they would be another process.
    pub programs: &'static [&'static str],
    /// Debian's package.
    pub package: &'static str,
    /// Before the document. It has a home directory of its own, so that it starts at page 1.
    pub arguments: &'static [&'static str],
    /// Pressed once in the maximised window, for one whole page on the screen.
    pub fit: Option<Key>,
    /// One page forth.
    pub next: Key,
    /// One page back.
    pub back: Key,
    /// The lowest pixels of its window that are no document: page numbers, a cursor that blinks.
    pub below: u16,
    /// What it reads beside its program and libraries.
    pub files: &'static [&'static str],
}

/// All of them; the first is the default.
pub fn viewers() -> &'static [Viewer] {
    &VIEWERS
}

/// One by its name.
pub fn viewer(name: &str) -> Option<&'static Viewer> {
    VIEWERS.iter().find(|v| v.name == name)
}

static VIEWERS: [Viewer; 3] = [
    // The study's kpdf was made of xpdf's code; Debian's xpdf is that program over poppler.
    Viewer {
        name: "xpdf",
        programs: &["xpdf.real", "xpdf"],
        package: "xpdf",
        arguments: &["-z", "page"],
        fit: None,
        next: key(b'n'),
        back: key(b'p'),
        below: 64,
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
        below: 0,
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
        below: 32,
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
    fn viewers_have_names_of_their_own_and_keys_to_turn_with() {
        let names: std::collections::BTreeSet<_> = viewers().iter().map(|v| v.name).collect();
        assert_eq!(names.len(), viewers().len());
        assert!(viewers().iter().all(|v| v.next != v.back && !v.programs.is_empty()));
        assert_eq!(viewer("mupdf").and_then(|v| v.fit), Some(Key { keysym: 0x5a, shift: true }));
        assert!(viewer("kpdf").is_none());
    }
}
