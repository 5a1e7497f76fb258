//! Which paths are the system's: those of packages, which are the same on every machine and say nothing of its users. Pure.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::program::Program;

/// Where packages put programs, libraries and data. `/etc` and `/var` hold what is a machine's own.
const TREES: [&str; 12] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "nix", "gnu", "app", "snap"];
/// Below these, the administrator's or a user's own files may be.
const NOT: [&str; 2] = ["/usr/local", "/usr/src"];

/// Whether a path is the system's. It has no `.` or `..`, no control characters, and is UTF-8.
pub fn is_system(path: &Path) -> bool {
    let mut components = path.components();
    let Some(Component::RootDir) = components.next() else { return false };
    let Some(Component::Normal(tree)) = components.next() else { return false };
    let is_plain = components.all(|part| matches!(part, Component::Normal(_)));
    let Ok(text) = std::str::from_utf8(path.as_os_str().as_bytes()) else { return false };
    let is_of_tree = TREES.iter().any(|name| tree == *name) && !NOT.iter().any(|not| path.starts_with(not));
    is_plain && is_of_tree && !text.chars().any(char::is_control)
}

/// Whether the program and its script are the system's.
pub fn is_program(program: &Program) -> bool {
    is_system(&program.exe) && program.script.as_deref().is_none_or(is_system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_packages_leave_a_machine() {
        for path in ["/usr/bin/vim", "/lib/x86_64-linux-gnu/libc.so.6", "/opt/zoom/zoom", "/usr"] {
            assert!(is_system(Path::new(path)), "{path}");
        }
        for path in [
            "/home/ann/diary",
            "/root/bin/tool",
            "/etc/hosts",
            "/var/lib/x",
            "/tmp/usr/bin",
            "usr/bin/vim",
            "/usr/../home/ann",
            "/usr/local/bin/ours",
            "/usr/bin/a\nb",
            "/",
            "",
        ] {
            assert!(!is_system(Path::new(path)), "{path}");
        }
        let of =
            |exe: &str, script: Option<&str>| Program { exe: exe.into(), script: script.map(Into::into) };
        assert!(is_program(&of("/usr/bin/python3", Some("/usr/bin/meld"))));
        assert!(!is_program(&of("/usr/bin/python3", Some("/home/ann/thesis.py"))));
    }
}
