//! Which program an interpreter runs, from its arguments: `python3 /usr/bin/meld` is meld. A table of interpreters and their options; unknown cases
//! count as the interpreter itself.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::program::Program;

/// How an interpreter takes its script.
struct Interpreter {
    /// Its names, without versions.
    names: &'static [&'static str],
    /// Options with a value in the next argument.
    valued: &'static [&'static str],
    /// Options whose value is the script.
    script: &'static [&'static str],
    /// Options whose value is a module name.
    module: &'static [&'static str],
    /// Options that exclude a script.
    inline: &'static [&'static str],
    /// Subcommands before the script, each once.
    words: &'static [&'static str],
    /// Whether the first argument is a name and not a path.
    is_name: bool,
}

const NONE: Interpreter = Interpreter {
    names: &[],
    valued: &[],
    script: &[],
    module: &[],
    inline: &[],
    words: &[],
    is_name: false,
};

const INTERPRETERS: [Interpreter; 14] = [
    Interpreter {
        names: &["python", "pypy"],
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        module: &["-m"],
        inline: &["-c"],
        ..NONE
    },
    Interpreter { names: &["perl"], valued: &["-I"], inline: &["-e", "-E"], ..NONE },
    Interpreter { names: &["ruby", "jruby"], valued: &["-I", "-r", "-C"], inline: &["-e"], ..NONE },
    Interpreter {
        names: &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "csh", "tcsh"],
        valued: &["-o", "-O", "+o", "+O", "--rcfile", "--init-file"],
        inline: &["-c"],
        ..NONE
    },
    Interpreter {
        names: &["node", "nodejs", "electron"],
        valued: &["-r", "--require", "--import", "--loader"],
        inline: &["-e", "-p", "--eval", "--print"],
        ..NONE
    },
    Interpreter { names: &["deno", "bun"], words: &["run"], ..NONE },
    Interpreter {
        names: &["java"],
        valued: &["-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "--add-opens"],
        script: &["-jar"],
        module: &["-m", "--module"],
        is_name: true,
        ..NONE
    },
    Interpreter { names: &["php"], valued: &["-c", "-d"], script: &["-f"], inline: &["-r"], ..NONE },
    Interpreter { names: &["lua", "luajit"], valued: &["-l"], inline: &["-e"], ..NONE },
    Interpreter { names: &["tclsh", "wish", "expect"], valued: &["-encoding"], inline: &["-c"], ..NONE },
    Interpreter { names: &["gjs", "qml", "guile"], valued: &["-I", "-L"], inline: &["-c"], ..NONE },
    Interpreter { names: &["mono", "dotnet"], words: &["exec"], ..NONE },
    Interpreter { names: &["flatpak", "snap"], words: &["run"], is_name: true, ..NONE },
    Interpreter { names: &["busybox", "toybox", "coreutils"], is_name: true, ..NONE },
];

/// Whether the arguments of this executable select the program.
pub fn is_interpreter(exe: &Path) -> bool {
    interpreter(exe).is_some()
}

/// The program of `exe` with these arguments; the first argument is the name of the call. Relative scripts are resolved against `cwd` and left out
/// without it. Works on the text alone: links are not followed.
pub fn program(exe: PathBuf, args: &[&[u8]], cwd: Option<&Path>) -> Program {
    let script = named(&exe, args).and_then(|named| named.resolved(cwd));
    Program { exe, script }
}

#[derive(Debug, PartialEq)]
enum Named {
    Path(Vec<u8>),
    Name(Vec<u8>),
}

impl Named {
    fn resolved(self, cwd: Option<&Path>) -> Option<PathBuf> {
        match self {
            Named::Name(name) => Some(OsString::from_vec(name).into()),
            Named::Path(path) => {
                let path = PathBuf::from(OsString::from_vec(path));
                if path.is_absolute() { Some(plain(&path)) } else { cwd.map(|cwd| plain(&cwd.join(path))) }
            }
        }
    }
}

fn named(exe: &Path, args: &[&[u8]]) -> Option<Named> {
    let rest = args.get(1..).unwrap_or_default();
    let interpreter = interpreter(exe)?;
    let called = args.first().map(|name| file_name(name)).unwrap_or_default();
    let is_own_name = called.is_empty() || called == file_name(exe.as_os_str().as_bytes());
    if interpreter.names.contains(&"busybox") && !is_own_name {
        return Some(Named::Name(called.to_vec()));
    }
    interpreter.named(rest)
}

impl Interpreter {
    fn named(&self, args: &[&[u8]]) -> Option<Named> {
        let is = |options: &[&str], arg: &[u8]| options.iter().any(|option| option.as_bytes() == arg);
        let mut words = self.words.iter();
        let mut args = args.iter().copied();
        while let Some(arg) = args.next() {
            if is(self.inline, arg) {
                return None;
            } else if is(self.script, arg) {
                return args.next().map(|path| Named::Path(path.to_vec()));
            } else if is(self.module, arg) {
                return args.next().map(|name| Named::Name([b"-m ", name].concat()));
            } else if is(self.valued, arg) {
                args.next();
            } else if arg == b"--" {
                return args.next().and_then(|arg| self.by_word(arg));
            } else if !arg.starts_with(b"-") && words.next().is_none_or(|word| word.as_bytes() != arg) {
                return self.by_word(arg);
            }
        }
        None
    }

    fn by_word(&self, arg: &[u8]) -> Option<Named> {
        let named = if self.is_name { Named::Name(arg.to_vec()) } else { Named::Path(arg.to_vec()) };
        (!arg.is_empty()).then_some(named)
    }
}

fn interpreter(exe: &Path) -> Option<&'static Interpreter> {
    let name = file_name(exe.as_os_str().as_bytes());
    let letters = name.iter().take_while(|b| b.is_ascii_lowercase()).count();
    let (name, version) = name.split_at(letters);
    let is_version = version.first().is_none_or(|b| b.is_ascii_digit() || b"-.".contains(b));
    INTERPRETERS.iter().find(|i| is_version && i.names.iter().any(|n| n.as_bytes() == name))
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// Resolves `.` and `..` in the text.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(line: &str) -> Option<String> {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let program =
            program(PathBuf::from(line.split(' ').next().unwrap()), &args, Some(Path::new("/home/u")));
        program.script.map(|script| script.to_str().unwrap().to_owned())
    }

    #[test]
    fn scripts_are_found_behind_options() {
        let table = [
            ("/usr/bin/python3 /usr/bin/meld a b", Some("/usr/bin/meld")),
            ("/usr/bin/python3.11 -W ignore -u ./x.py", Some("/home/u/x.py")),
            ("/usr/bin/python3 -m http.server", Some("-m http.server")),
            ("/usr/bin/python3 -c pass /usr/bin/meld", None),
            ("/usr/bin/python3", None),
            ("/usr/bin/python3-config x", Some("/home/u/x")),
            ("/usr/bin/perl -w ../tool.pl", Some("/home/tool.pl")),
            ("/bin/bash -e -o pipefail /usr/bin/chromium", Some("/usr/bin/chromium")),
            ("/bin/sh -c ls", None),
            ("/bin/bash -l", None),
            ("/bin/zsh -- -odd", Some("/home/u/-odd")),
            ("/usr/bin/node --inspect app/main.js", Some("/home/u/app/main.js")),
            ("/usr/lib/electron28/electron /usr/lib/code/app.asar --x", Some("/usr/lib/code/app.asar")),
            ("/usr/bin/deno run main.ts", Some("/home/u/main.ts")),
            ("/usr/bin/java -Xmx1g -jar /opt/a.jar", Some("/opt/a.jar")),
            ("/usr/bin/java -cp /opt/x org.example.Main", Some("org.example.Main")),
            ("/usr/bin/flatpak run org.gnome.gedit", Some("org.gnome.gedit")),
            ("/usr/bin/lua5.4 x.lua", Some("/home/u/x.lua")),
            ("/usr/bin/env python3 /usr/bin/meld", None),
            ("/usr/bin/gedit file.txt", None),
            ("/usr/bin/shellcheck x", None),
            ("/usr/bin/mousepad x", None),
        ];
        for (line, expected) in table {
            assert_eq!(script(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn programs_in_one_file_are_told_apart_by_their_names() {
        let of = |args: &[&[u8]]| program("/bin/busybox".into(), args, None).script;
        assert_eq!(of(&[b"vi", b"x"]), Some("vi".into()));
        assert_eq!(of(&[b"/bin/busybox", b"httpd", b"-f"]), Some("httpd".into()));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn without_a_directory_a_relative_script_is_none() {
        let args: [&[u8]; 2] = [b"python3", b"x.py"];
        assert_eq!(program("/usr/bin/python3".into(), &args, None).script, None);
    }

    proptest::proptest! {
        #[test]
        fn any_arguments_are_a_program(exe in 0usize..6, args in proptest::collection::vec(proptest::collection::vec(0u8.., 0..9), 0..6)) {
            let exe = ["/bin/sh", "/usr/bin/env", "/usr/bin/java", "/usr/bin/python3", "/bin/busybox", "/x"][exe];
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            let found = program(exe.into(), &args, Some(Path::new("/")));
            proptest::prop_assert_eq!(found.exe, PathBuf::from(exe));
        }
    }
}
