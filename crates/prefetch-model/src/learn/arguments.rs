//! The paths that a launch was given: by its arguments, as its standard input, and as its working directory. Such a file is what one launch works on, not yet
//! a habit of its program.
//! Pure; the paths live only as long as the recording.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::script::plain;
use crate::program::Program;
use crate::system::is_system;

/// The most words that are taken, and the most bytes of a working directory that they are joined with: a user can pass thousands of words in a directory
/// whose path has thousands of bytes.
const WORDS: usize = 256;
const CWD_BYTES: usize = 1024;

/// The given files and directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenPaths {
    named: HashSet<PathBuf>,
    directory: Option<PathBuf>,
}

impl GivenPaths {
    /// `args` begin with the name of the call; the first [`WORDS`] words count. Relative paths are resolved against `cwd`, and left out without it or if
    /// it is longer than [`CWD_BYTES`]. Works on the text alone: links are not followed.
    pub fn new(args: &[&[u8]], cwd: Option<&Path>, input: Option<PathBuf>) -> Self {
        let cwd = cwd.filter(|cwd| cwd.as_os_str().len() <= CWD_BYTES);
        let resolved = |word: &[u8]| {
            let path = Path::new(OsStr::from_bytes(word));
            if path.is_absolute() { Some(plain(path)) } else { cwd.map(|cwd| plain(&cwd.join(path))) }
        };
        let words = args.get(1..).unwrap_or_default().iter().flat_map(|arg| words(arg)).take(WORDS);
        let named = words.filter_map(resolved).chain(input.filter(|input| input.is_absolute())).collect();
        Self { named, directory: None }
    }

    /// Counts the working directory, too: `git`, `make` and the like work on it and do not name it. Not the home directory or one above it, where profiles are,
    /// nor where the home is unknown, as of services; nor a package's, whose programs start there.
    #[must_use]
    pub fn within(self, cwd: Option<&Path>, home: Option<&Path>) -> Self {
        let directory = cwd.zip(home).filter(|(cwd, home)| is_work(cwd, home)).map(|(cwd, _)| cwd.to_owned());
        Self { directory, ..self }
    }

    /// What a launch of this program was given: not the directory that the program or its script is in.
    #[must_use]
    pub(super) fn of(self, program: &Program) -> Self {
        let has_it = |dir: &PathBuf| {
            program.exe.starts_with(dir)
                || program.script.as_ref().is_some_and(|script| script.starts_with(dir))
        };
        Self { directory: self.directory.filter(|dir| !has_it(dir)), ..self }
    }

    /// Whether nothing was given.
    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.directory.is_none()
    }

    /// Whether the file, or a directory that it is in, was given.
    pub fn has(&self, file: &Path) -> bool {
        let is_named = || !self.named.is_empty() && file.ancestors().any(|path| self.named.contains(path));
        self.directory.as_ref().is_some_and(|dir| file.starts_with(dir)) || is_named()
    }
}

/// Whether a working directory is what a launch works on. A home of the same name may be this one by a link (`/home` to `/var/home`).
fn is_work(cwd: &Path, home: &Path) -> bool {
    let is_home = home.starts_with(cwd) || home.file_name() == cwd.file_name();
    cwd.parent().is_some() && !is_home && !is_system(cwd)
}

/// The words of an argument that may be paths: `X`, `name=X`, `-I/X` and `file:///X`.
fn words(arg: &[u8]) -> impl Iterator<Item = &[u8]> {
    let after = |found: Option<usize>, more: usize| found.and_then(|at| arg.get(at + more..));
    let is_option = arg.starts_with(b"-");
    let value = after(arg.iter().position(|b| *b == b'='), 1);
    let joined = after(arg.iter().position(|b| *b == b'/').filter(|_| is_option), 0);
    let address = after(arg.windows(3).position(|part| part == b"://"), 3);
    let whole = Some(arg).filter(|_| !is_option);
    [whole, value, joined, address].into_iter().flatten().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> GivenPaths {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        GivenPaths::new(&args, Some(Path::new("/home/u")), None)
    }

    #[test]
    fn files_and_what_is_in_directories_are_given() {
        for (line, file) in [
            ("md5sum /srv/x.iso", "/srv/x.iso"),
            ("md5sum -b ../v/x.iso", "/home/v/x.iso"),
            ("dd if=x.iso of=/dev/null", "/home/u/x.iso"),
            ("cc -I/opt/x/include a.c", "/opt/x/include/b/c.h"),
            ("vlc file:///srv/film", "/srv/film"),
            ("tar cf - .", "/home/u/a/b"),
            ("player --dir=/srv/music", "/srv/music/a/b"),
        ] {
            assert!(given(line).has(Path::new(file)), "{line}");
        }
    }

    #[test]
    fn many_words_in_a_long_directory_take_little_memory() {
        let words: Vec<String> = (0..5000).map(|n| format!("{n}")).collect();
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let within = |bytes: usize| {
            GivenPaths::new(&args, Some(&Path::new("/").join("a/".repeat(bytes / 2))), None).named
        };
        assert_eq!(within(1000).len(), WORDS);
        assert_eq!(within(4000).len(), 0);
    }

    #[test]
    fn a_working_directory_is_given_unless_the_home_or_the_program_is_in_it() {
        let python =
            |script: &str| Program { script: Some(script.into()), ..Program::of_exe("/usr/bin/python3") };
        let (git, run) = (Program::of_exe("/usr/bin/git"), python("/home/u/work/bin/run.py"));
        let own = Program::of_exe("/home/u/work/target/own");
        for (program, cwd, home, expected) in [
            (&git, "/home/u/work", Some("/home/u"), true),
            (&git, "/srv/work", Some("/home/u"), true),
            (&git, "/home/u/work", None, false),
            (&git, "/home/u", Some("/home/u"), false),
            (&git, "/var/home/u", Some("/home/u"), false),
            (&git, "/home", Some("/home/u"), false),
            (&git, "/", Some("/home/u"), false),
            (&git, "/usr/share/game", Some("/home/u"), false),
            (&run, "/home/u/work", Some("/home/u"), false),
            (&run, "/home/u/other", Some("/home/u"), true),
            (&own, "/home/u/work", Some("/home/u"), false),
        ] {
            let given = GivenPaths::default().within(Some(Path::new(cwd)), home.map(Path::new)).of(program);
            assert_eq!(given.has(&Path::new(cwd).join("a/file")), expected, "{program} in {cwd}");
            assert!(!given.has(Path::new("/home/u/.config/file")), "{program} in {cwd}");
        }
        let named = GivenPaths::new(&[b"find", b"."], Some(Path::new("/home/u")), None);
        let named = named.within(Some(Path::new("/home/u")), Some(Path::new("/home/u")));
        assert!(named.of(&git).has(Path::new("/home/u/file")), "an argument names it");
    }

    #[test]
    fn nothing_else_is_given() {
        for (line, file) in [
            ("/srv/x.iso", "/srv/x.iso"),
            ("md5sum x.iso", "/home/u/y.iso"),
            ("ls a/", "/usr/lib/libc.so"),
            ("x --config=", "/home/u/y"),
            ("x -v -", "/home/u/y"),
        ] {
            assert!(!given(line).has(Path::new(file)), "{line}");
        }
        assert!(!GivenPaths::new(&[b"x", b"y"], None, None).has(Path::new("y")));
        let piped = GivenPaths::new(&[b"x"], None, Some("pipe:[1]".into()));
        assert_eq!(piped, GivenPaths::default());
        assert!(GivenPaths::new(&[b"gzip"], None, Some("/srv/x".into())).has(Path::new("/srv/x")));
    }
}
