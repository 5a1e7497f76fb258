//! The browser's files out of the page cache before a run. A page of a file is charged to the group that read it first: what
//! an earlier run read would be a gift to the next box.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};

/// The files of a program: what lies in its directory (a browser's own, not `/usr/bin`) and the libraries it is linked with,
/// by `ldd` where there is one.
pub fn files(program: &Path) -> Vec<PathBuf> {
    let program = real(program);
    let mut files = vec![program.clone()];
    if let Some(dir) = program.parent().filter(|dir| dir.ends_with("chromium") || dir.ends_with("chrome")) {
        below(dir, &mut files);
    }
    let ldd = std::process::Command::new("ldd").arg(&program).output();
    files
        .extend(libraries(&ldd.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()));
    files.sort();
    files.dedup();
    files
}

/// The program behind a launching script of the same name: `/usr/bin/chromium` is a script before `/usr/lib/chromium/chromium`.
pub fn real(program: &Path) -> PathBuf {
    let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let name = program.file_name().unwrap_or_default();
    let behind = Path::new("/usr/lib").join(name).join(name);
    if program.parent() == Some(Path::new("/usr/bin")) && behind.is_file() { behind } else { program }
}

fn below(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

/// The libraries in what `ldd` prints: `libm.so.6 => /lib/libm.so.6 (0x7f..)`.
fn libraries(ldd: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let path = line.split_whitespace().find(|word| word.starts_with('/'))?;
        Some(PathBuf::from(path))
    };
    ldd.lines().filter_map(path).collect()
}

/// Asks the kernel to forget their pages (posix_fadvise(2), DONTNEED): it keeps what a running process has mapped, and what
/// is not written yet. Gives the number of files that it was asked for.
pub fn cold(files: &[PathBuf]) -> usize {
    let forget = |path: &PathBuf| {
        let file = File::open(path).ok()?;
        fadvise(&file, 0, None, Advice::DontNeed).ok()
    };
    files.iter().filter_map(forget).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_prints() {
        let text = "\tlinux-vdso.so.1 (0x7ffc)\n\tlibm.so.6 => /lib/libm.so.6 (0x7f)\n\t/lib64/ld.so (0x7f)\n\tlibx => not found\n";
        assert_eq!(libraries(text), [PathBuf::from("/lib/libm.so.6"), "/lib64/ld.so".into()]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    fn only_files_that_are_there_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(cold(&[file, dir.path().join("absent")]), 1);
    }
}
