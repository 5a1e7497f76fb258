//! The programs that every session needs, and how to find a program.

use std::path::{Path, PathBuf};

/// The X server.
pub(super) const SERVER: &str = "Xvfb";
/// Window managers that follow EWMH. A session takes the first that is installed.
pub(super) const WINDOW_MANAGERS: [&str; 4] = ["openbox", "icewm", "xfwm4", "metacity"];
/// The search path for programs.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The path of the first of these programs that is installed.
pub fn find(programs: &[&str]) -> Option<PathBuf> {
    let candidates = |program: &&str| {
        let directories = if program.starts_with('/') { "" } else { PATH };
        // A join with an absolute path is that path.
        directories.split(':').map(|dir| Path::new(dir).join(program)).collect::<Vec<_>>()
    };
    programs.iter().flat_map(candidates).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert_eq!(find(&["/nowhere/sh", "/bin/sh"]), Some("/bin/sh".into()));
        assert!(find(&["no-such-program", "sh"]).is_some_and(|p| p.ends_with("sh") && p.is_absolute()));
        assert_eq!(find(&["no-such-program"]), None);
    }
}
