//! Evicts the browser's files from the page cache before a run. The kernel charges a page of a file to the group that read it
//! first: without eviction the next box would not pay for pages of an earlier run.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};

/// The files of a program: those in its directory (a browser's own, not `/usr/bin`) and the libraries it is linked with,
/// if `ldd` is installed.
pub fn files(program: &Path) -> Vec<PathBuf> {
    let program = real(program);
    let mut files = vec![program.clone()];
    if let Some(dir) = program.parent().filter(|dir| dir.ends_with("chromium") || dir.ends_with("chrome")) {
        add_files(dir, &mut files);
    }
    let ldd = std::process::Command::new("ldd").arg(&program).output();
    files
        .extend(libraries(&ldd.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()));
    files.sort();
    files.dedup();
    files
}

/// The program that a script of the same name starts: `/usr/bin/chromium` starts `/usr/lib/chromium/chromium`.
pub fn real(program: &Path) -> PathBuf {
    let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let name = program.file_name().unwrap_or_default();
    let started = Path::new("/usr/lib").join(name).join(name);
    if program.parent() == Some(Path::new("/usr/bin")) && started.is_file() { started } else { program }
}

fn add_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_files(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

/// The libraries in the output of `ldd`: `libm.so.6 => /lib/libm.so.6 (0x7f..)`.
fn libraries(ldd: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let path = line.split_whitespace().find(|word| word.starts_with('/'))?;
        Some(PathBuf::from(path))
    };
    ldd.lines().filter_map(path).collect()
}

/// Asks the kernel to drop their pages (posix_fadvise(2), DONTNEED). The kernel keeps pages that a running process has mapped,
/// and pages not written back yet. Returns the number of files for which it accepted.
pub fn evict(files: &[PathBuf]) -> usize {
    let evict = |path: &PathBuf| {
        let file = File::open(path).ok()?;
        fadvise(&file, 0, None, Advice::DontNeed).ok()
    };
    files.iter().filter_map(evict).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_the_output_of_ldd() {
        let text = "\tlinux-vdso.so.1 (0x7ffc)\n\tlibm.so.6 => /lib/libm.so.6 (0x7f)\n\t/lib64/ld.so (0x7f)\n\tlibx => not found\n";
        assert_eq!(libraries(text), [PathBuf::from("/lib/libm.so.6"), "/lib64/ld.so".into()]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    fn missing_files_are_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(evict(&[file, dir.path().join("absent")]), 1);
    }
}
