//! What a session finds in the tree that it runs in: for whoever builds such a tree.

use super::display::{SERVER, WINDOW_MANAGERS};
use super::viewer::viewer;

/// Where programs are looked for.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What must be in a session's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Programs by name (to be found in the usual directories) or absolute path, with the libraries that they load.
    pub programs: Vec<&'static str>,
    /// Files and directories that they read; what is not on the machine is not needed.
    pub files: Vec<&'static str>,
}

/// What every session reads.
const FILES: [&str; 9] = [
    // the X server runs xkbcomp over these, by /bin/sh
    "/usr/share/X11/xkb",
    "/usr/share/X11/locale",
    "/etc/xdg/openbox",
    "/usr/share/themes/Clearlooks",
    "/etc/fonts",
    "/usr/share/fonts",
    "/usr/share/fontconfig",
    // without it every program reads all fonts at its start
    "/var/cache/fontconfig",
    "/usr/lib/locale/C.utf8",
];

/// What a session with this viewer needs beside its documents and the driver itself, which is found through /proc but
/// loads its libraries from the tree; `None` of an unknown viewer. The tree also has the directories `/proc`, `/dev` and
/// `/tmp`, which the driver mounts on. Of programs that can stand for each other, those that this machine has.
pub fn needs(name: &str) -> Option<Needs> {
    let viewer = viewer(name)?;
    let mut programs = vec![SERVER, "xkbcomp", "/bin/sh", first(&WINDOW_MANAGERS)];
    programs.push(first(viewer.programs));
    let files = FILES.iter().chain(viewer.files).copied().collect();
    Some(Needs { programs, files })
}

/// The first that is here, or the first of all.
fn first(programs: &[&'static str]) -> &'static str {
    let mut here = programs.iter().filter(|p| find(&[p]).is_some());
    here.next().or(programs.first()).copied().unwrap_or_default()
}

/// The first of these programs that is here, with its path.
pub fn find(programs: &[&str]) -> Option<std::path::PathBuf> {
    let places = |program: &&str| {
        let directories = if program.starts_with('/') { "" } else { PATH };
        // a join with an absolute path is that path
        directories.split(':').map(|dir| std::path::Path::new(dir).join(program)).collect::<Vec<_>>()
    };
    programs.iter().flat_map(places).find(|path| path.is_file())
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

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert_eq!(find(&["/nowhere/sh", "/bin/sh"]), Some("/bin/sh".into()));
        assert!(find(&["no-such-program", "sh"]).is_some_and(|p| p.ends_with("sh") && p.is_absolute()));
        assert_eq!(find(&["no-such-program"]), None);
    }
}
