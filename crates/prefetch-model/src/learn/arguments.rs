//! The paths that a launch was given: by its arguments, as its standard input, and as its working directory. Such a file is what one launch works on, not yet
//! a habit of its program. So is a file of a repository, wherever it is.
//! Pure; the paths live only as long as the recording.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::iter::once;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::script::{is_interpreter, plain};
use crate::program::Program;
use crate::system::is_system;

/// The most words that are taken, and the most bytes of a working directory that they are joined with, or whose tree is looked for: a user can pass thousands
/// of words in a directory whose path has thousands of bytes.
const WORDS: usize = 256;
const CWD_BYTES: usize = 1024;

/// Where version control keeps what it knows of one tree, beside or above the working directory.
const REPOSITORIES: [&str; 5] = [".git", ".hg", ".svn", ".bzr", ".jj"];
/// The names in the path of the topmost directory that may be one tree of work outside of the home: `/srv/git/linux`, `/media/anna/disk`.
const TREE_NAMES: usize = 3;

/// The given files and directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenPaths {
    named: HashSet<PathBuf>,
    /// The working directory. Once the program is known: the topmost one of the tree that it is in.
    directory: Option<PathBuf>,
    /// How many directories above it may belong to the same tree.
    above: usize,
    /// The home, if it is the working directory.
    home: Option<PathBuf>,
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
        Self { named, ..Self::default() }
    }

    /// Counts the working directory, too: `git`, `make` and the like work on it and do not name it. Not the home directory or one above it, where profiles are,
    /// nor where the home is unknown, as of services; nor a package's, whose programs start there.
    #[must_use]
    pub fn within(self, cwd: Option<&Path>, home: Option<&Path>) -> Self {
        let Some((cwd, home)) = cwd.zip(home) else { return self };
        if is_work(cwd, home) {
            return Self { directory: Some(cwd.to_owned()), above: above(cwd, home), ..self };
        }
        let is_home = is_same_name(cwd, home) && !is_system(cwd);
        Self { home: is_home.then(|| cwd.to_owned()), ..self }
    }

    /// What a launch of this program was given: not a directory that the program or its script is in. Nothing above the working directory counts where that is
    /// unknown.
    #[must_use]
    pub(super) fn of(self, program: &Program) -> Self {
        let script = program.script.as_ref();
        let has_it = |dir: &Path| program.exe.starts_with(dir) || script.is_some_and(|s| s.starts_with(dir));
        let above = if is_located(program) { self.above } else { 0 };
        let directory = self.directory.as_deref().and_then(|cwd| {
            cwd.ancestors().take(above + 1).take_while(|dir| !has_it(dir)).last().map(Path::to_owned)
        });
        Self { directory, above: 0, ..self }
    }

    /// Whether a launch that began in the home may only work on this file: it is in no directory with a dot, where profiles are, and in none with the program.
    pub(super) fn may_be_document(&self, file: &Path, program: &Program) -> bool {
        let Some(home) = self.home.as_deref() else { return false };
        let Ok(below) = file.strip_prefix(home) else { return false };
        let is_beside = |own: &PathBuf| match own.strip_prefix(home) {
            Ok(own) => own.iter().count() == 1 || own.iter().next() == below.iter().next(),
            Err(_) => !own.is_absolute(),
        };
        !below.iter().any(is_hidden) && !once(&program.exe).chain(&program.script).any(is_beside)
    }

    /// Whether nothing was given.
    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.directory.is_none()
    }

    /// Whether the file, or a directory that it is in, was given.
    pub fn has(&self, file: &Path) -> bool {
        let is_named = || !self.named.is_empty() && file.ancestors().any(|path| self.named.contains(path));
        self.directory.as_ref().is_some_and(|dir| file.starts_with(dir))
            || is_of_repository(file)
            || is_named()
    }
}

/// Whether the file is version control's own: the packs of one tree are as large as a program.
fn is_of_repository(file: &Path) -> bool {
    let dirs = file.parent().into_iter().flat_map(Path::components);
    dirs.filter_map(|part| part.as_os_str().to_str()).any(|name| REPOSITORIES.contains(&name))
}

/// How many directories above a working one belong to the same tree, as far as their names tell: what `git` and `cargo` use lies above a subdirectory. In the
/// home that is all below it; elsewhere nobody knows which directory has other things in it. A directory with a dot is the program's, as `~/.config` is, and so
/// may be what is in it.
fn above(cwd: &Path, home: &Path) -> usize {
    let tree: Vec<&Path> = cwd.ancestors().skip(1).take_while(|dir| is_work(dir, home)).collect();
    let is_of_program = once(cwd).chain(tree.iter().copied()).filter_map(Path::file_name).any(is_hidden);
    if is_of_program || cwd.as_os_str().len() > CWD_BYTES {
        return 0;
    }
    let is_in_home = cwd.ancestors().any(|dir| is_same_name(dir, home));
    let is_deep = |dir: &&&Path| is_in_home || dir.components().count() > TREE_NAMES;
    tree.iter().take_while(is_deep).count()
}

/// Whether the files of the program say where it is: not a class or a module, what an interpreter runs without a script, and what Wine runs.
fn is_located(program: &Program) -> bool {
    let is_wine = |exe: &Path| exe.file_name().is_some_and(|name| name.as_bytes().starts_with(b"wine"));
    match &program.script {
        Some(script) => script.is_absolute(),
        None => !is_interpreter(&program.exe) && !is_wine(&program.exe),
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

/// Whether a directory may be the home: one of the same name may be it by a link (`/home` to `/var/home`).
fn is_same_name(dir: &Path, home: &Path) -> bool {
    dir.file_name().is_some_and(|name| home.file_name() == Some(name))
}

/// Whether a working directory is what a launch works on.
fn is_work(cwd: &Path, home: &Path) -> bool {
    let is_home = home.starts_with(cwd) || is_same_name(cwd, home);
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
    fn the_tree_that_a_working_directory_is_in_is_given() {
        let git = Program::of_exe("/usr/bin/git");
        let python =
            |script: &str| Program { script: Some(script.into()), ..Program::of_exe("/usr/bin/python3") };
        let (tool, run, module) =
            (python("/home/u/work/node_modules/t.js"), python("/home/u/work/a/run.py"), python("-m tool"));
        let [own, wine, java] =
            ["/home/u/work/bin/own", "/usr/lib/wine/wine64", "/usr/bin/java"].map(Program::of_exe);
        for (program, cwd, file, expected) in [
            (&git, "/home/u/work/a/b", "/home/u/work/target/x", true),
            (&git, "/var/home/u/work/a/b", "/var/home/u/work/x", true),
            (&git, "/home/u/work/a/b", "/home/u/games/x", false),
            (&git, "/srv/work/tree/a/b", "/srv/work/tree/x", true),
            (&git, "/srv/work/tree/a", "/srv/work/x", false),
            (&git, "/usr/src/linux/drivers/net", "/usr/src/linux/Makefile", true),
            (&git, "/usr/local/share/x", "/usr/local/lib/y", false),
            (&git, "/var/lib/x", "/var/lib/y", false),
            (&git, "/home/u/.config/x/y", "/home/u/.config/x/z", false),
            (&git, "/home/u/.local/share/x", "/home/u/.local/share/fonts/y", false),
            (&git, "/home/u/work/.x/y", "/home/u/work/z", false),
            (&own, "/home/u/work/a/b", "/home/u/work/a/x", true),
            (&own, "/home/u/work/a/b", "/home/u/work/data/x", false),
            (&tool, "/home/u/work/a/b", "/home/u/work/node_modules/x", false),
            (&run, "/home/u/work/a/data", "/home/u/work/a/x", false),
            (&run, "/home/u/work/a", "/home/u/work/x", false),
            (&module, "/home/u/work/a", "/home/u/work/venv/x", false),
            (&module, "/home/u/work/a", "/home/u/work/a/x", true),
            (&wine, "/home/u/games/g/bin", "/home/u/games/g/data/x", false),
            (&wine, "/home/u/games/g", "/home/u/games/g/data/x", true),
            (&java, "/home/u/app/bin", "/home/u/app/lib/x.jar", false),
            (&git, "/opt/app/bin", "/opt/app/data/x", false),
        ] {
            let given = GivenPaths::default().within(Some(Path::new(cwd)), Some(Path::new("/home/u")));
            assert_eq!(given.of(program).has(Path::new(file)), expected, "{program} in {cwd}: {file}");
        }
        let of_service = GivenPaths::default().within(Some(Path::new("/var/lib/x")), Some(Path::new("/")));
        assert!(!of_service.of(&git).has(Path::new("/var/lib/y")), "its home is the root");
    }

    #[test]
    fn a_repository_is_given_wherever_it_is() {
        for (file, expected) in [
            ("/home/u/work/.git/objects/pack/a.pack", true),
            ("/home/u/.git/index", true),
            ("/etc/.hg/store/x", true),
            ("/home/u/.github/x", false),
            ("/home/u/.gitconfig", false),
            ("/home/u/worktree/.git", false),
            ("/home/u/.config/git/config", false),
        ] {
            assert_eq!(GivenPaths::default().has(Path::new(file)), expected, "{file}");
        }
    }

    #[test]
    fn of_a_launch_in_the_home_what_is_no_profile_and_not_the_programs_may_be_a_document() {
        let home = Path::new("/home/u");
        let given = |cwd| GivenPaths::default().within(Some(Path::new(cwd)), Some(home));
        let python =
            |script: &str| Program { script: Some(script.into()), ..Program::of_exe("/usr/bin/python3") };
        for (program, file, expected) in [
            (Program::of_exe("/usr/bin/grep"), "/home/u/mail/1", true),
            (Program::of_exe("/usr/bin/grep"), "/home/u/.config/x", false),
            (Program::of_exe("/usr/bin/grep"), "/home/u/snap/firefox/common/.mozilla/x", false),
            (Program::of_exe("/usr/bin/grep"), "/home/v/mail/1", false),
            (Program::of_exe("/home/u/firefox/firefox"), "/home/u/firefox/lib/x.so", false),
            (Program::of_exe("/home/u/firefox/firefox"), "/home/u/mail/1", true),
            (python("/home/u/venv/bin/tool"), "/home/u/venv/lib/x.py", false),
            (python("/home/u/tool.py"), "/home/u/node_modules/x", false),
            (python("-m tool"), "/home/u/venv/lib/x.py", false),
        ] {
            assert_eq!(
                given("/home/u").may_be_document(Path::new(file), &program),
                expected,
                "{program}: {file}"
            );
            assert!(!given("/home/u/work").may_be_document(Path::new(file), &program), "it began elsewhere");
        }
        let of_package =
            GivenPaths::default().within(Some(Path::new("/usr/lib/x")), Some(Path::new("/usr/lib/x")));
        assert!(!of_package.may_be_document(Path::new("/usr/lib/x/y"), &python("/usr/bin/tool")));
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
