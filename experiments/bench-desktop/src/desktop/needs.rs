//! The programs and files that a session's tree must contain.

use super::programs::{SERVER, WINDOW_MANAGERS, find};
use super::viewer::viewer;

/// The contents of a session's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Programs by name (searched in the usual directories) or absolute path. The libraries that they load belong to the tree too.
    pub programs: Vec<&'static str>,
    /// Files and directories that the programs read. One that is not on the machine is not needed.
    pub files: Vec<&'static str>,
}

/// Files that every session reads.
const FILES: [&str; 9] = [
    // The X server runs xkbcomp over these, by /bin/sh.
    "/usr/share/X11/xkb",
    "/usr/share/X11/locale",
    "/etc/xdg/openbox",
    "/usr/share/themes/Clearlooks",
    "/etc/fonts",
    "/usr/share/fonts",
    "/usr/share/fontconfig",
    // Without it every program reads all fonts at its start.
    "/var/cache/fontconfig",
    "/usr/lib/locale/C.utf8",
];

/// The programs and files for a session with this viewer; `None` for an unknown viewer. Of alternative programs it names the
/// installed one.
///
/// The tree also needs the documents, the libraries of the driver (the driver itself is executed through /proc), and the
/// directories `/proc`, `/dev` and `/tmp`, which the driver mounts on.
pub fn needs(name: &str) -> Option<Needs> {
    let viewer = viewer(name)?;
    let mut programs = vec![SERVER, "xkbcomp", "/bin/sh", first(&WINDOW_MANAGERS)];
    programs.push(first(viewer.programs));
    let files = FILES.iter().chain(viewer.files).copied().collect();
    Some(Needs { programs, files })
}

/// The first that is installed, or the first of all.
fn first(programs: &[&'static str]) -> &'static str {
    let mut installed = programs.iter().filter(|p| find(&[p]).is_some());
    installed.next().or(programs.first()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_needs_its_viewer_and_a_screen() {
        let needs = needs("mupdf").unwrap();
        assert!(needs.programs.contains(&"Xvfb") && needs.programs.iter().any(|p| p.contains("mupdf")));
        assert!(needs.files.contains(&"/etc/fonts") && !needs.files.contains(&"/etc/xpdf"));
        assert_eq!(super::needs("kpdf"), None);
    }
}
