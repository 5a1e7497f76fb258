//! Which program an interpreter runs, from its arguments: `python3 /usr/bin/meld` is meld. Unknown cases count as the interpreter itself.
//!
//! Arguments may be private (`sh -c 'mail bob'`), and a script's name is stored, shown and exported. So in doubt there is no script.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::interpreters::{INTERPRETERS, Interpreter, Takes};
use crate::program::Program;

/// The longest name of a class, a module or an application, in bytes.
const LONGEST_NAME: usize = 128;

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
        return is_plain_name(called).then(|| Named::Name(called.to_vec()));
    }
    interpreter.named(rest)
}

impl Interpreter {
    fn named(&self, args: &[&[u8]]) -> Option<Named> {
        let (mut subcommand, mut is_name) = (self.subcommand, self.is_name);
        let mut args = args.iter().copied();
        while let Some(arg) = args.next() {
            if let Some((takes, value)) = self.option(arg) {
                match takes {
                    Takes::Nothing | Takes::Digits | Takes::Rest => {}
                    Takes::Value | Takes::Next => _ = value.or_else(|| args.next())?,
                    Takes::Code => return None,
                    Takes::FirstWord => is_name = false,
                    Takes::Module => return value.or_else(|| args.next()).and_then(module),
                    Takes::Script => {
                        return value.or_else(|| args.next()).map(|path| Named::Path(path.to_vec()));
                    }
                }
            } else if arg == b"--" {
                return args.next().and_then(|arg| self.by_word(arg, is_name));
            } else if subcommand.take_if(|word| word.as_bytes() == arg).is_none() {
                let is_script = subcommand.is_none() || !self.is_name && looks_like_file(arg);
                return is_script.then(|| self.by_word(arg, is_name)).flatten();
            }
        }
        None
    }

    /// What an option takes, and its value if that is in the same word; `None` for a word that is no option.
    fn option<'a>(&self, arg: &'a [u8]) -> Option<(Takes, Option<&'a [u8]>)> {
        let equals = arg.iter().position(|b| *b == b'=');
        let (name, value) = equals.map_or((arg, None), |at| (&arg[..at], Some(&arg[at + 1..])));
        let is = |words: &[&str]| words.iter().any(|word| word.as_bytes() == name);
        if let Some((_, takes)) = self.options.iter().find(|(words, _)| is(words)) {
            return Some((*takes, value));
        } else if self.beginnings.iter().any(|beginning| arg.starts_with(beginning.as_bytes())) {
            return Some((Takes::Nothing, None));
        }
        match arg {
            b"--" => None,
            [b'-', b'-', ..] if value.is_some() => Some((Takes::Nothing, value)),
            // The words of a file, which may be options (java).
            [b'@', ..] if self.is_name => Some((Takes::Code, None)),
            [b'-', b'-', ..] | b"-" => Some((Takes::Code, None)),
            [b'-', letters @ ..] => Some(self.letters(letters)),
            [b'+', letters @ ..] if self.has_plus => Some(self.letters(letters)),
            _ => None,
        }
    }

    /// The same for letters that share a word: that of the first one that takes a value.
    fn letters<'a>(&self, mut word: &'a [u8]) -> (Takes, Option<&'a [u8]>) {
        while let [letter, rest @ ..] = word {
            let of = self.letters.iter().find(|(letters, _)| letters.as_bytes().contains(letter));
            match of.map_or(Takes::Code, |(_, takes)| *takes) {
                Takes::Nothing => word = rest,
                Takes::Digits => {
                    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                    word = &rest[digits..];
                }
                Takes::Next if !rest.is_empty() => return (Takes::Code, None),
                takes => return (takes, (!rest.is_empty()).then_some(rest)),
            }
        }
        (Takes::Nothing, None)
    }

    fn by_word(&self, arg: &[u8], is_name: bool) -> Option<Named> {
        let is_source = self.names.contains(&"java") && arg.ends_with(b".java");
        if is_name && !is_source {
            return is_plain_name(arg).then(|| Named::Name(arg.to_vec()));
        }
        (!arg.is_empty()).then(|| Named::Path(arg.to_vec()))
    }
}

fn module(name: &[u8]) -> Option<Named> {
    let is_module = name.split(|b| *b == b'/').all(is_plain_name);
    is_module.then(|| Named::Name([b"-m ", name].concat()))
}

/// Whether a name can be one of a class, a module or an application. No file shows that it is, so any other text may be private.
fn is_plain_name(name: &[u8]) -> bool {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"._$-".contains(b);
    (1..=LONGEST_NAME).contains(&name.len()) && name.iter().all(is_plain)
}

/// Whether a word is rather a file than a subcommand.
fn looks_like_file(word: &[u8]) -> bool {
    word.contains(&b'/') || word.contains(&b'.')
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
pub(super) fn plain(path: &Path) -> PathBuf {
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
            ("/usr/bin/java -jar -Xmx1g -cp /opt/x server.jar nogui", Some("/home/u/server.jar")),
            ("/usr/bin/java -jar -unknown server.jar", None),
            ("/usr/bin/java -jar", None),
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

    /// The words of a line; those in single quotes are one.
    fn quoted(line: &str) -> Option<String> {
        let spaced =
            |at: usize, part: &str| if at % 2 == 0 { part.to_owned() } else { part.replace(' ', "\0") };
        let line: Vec<String> = line.split('\'').enumerate().map(|(at, part)| spaced(at, part)).collect();
        let words: Vec<String> = line.concat().split(' ').map(|word| word.replace('\0', " ")).collect();
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let program = program(PathBuf::from(&words[0]), &args, Some(Path::new("/home/u")));
        program.script.map(|script| script.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_text_of_a_program_is_never_a_script() {
        for line in [
            "/bin/bash -lc 'mail bob' x",
            "/bin/bash -ec 'mail bob'",
            "/bin/bash -c -- 'mail bob'",
            "/bin/bash -oe pipefail 'mail bob'",
            "/bin/bash --norc -xc 'mail bob'",
            "/bin/bash -rcfile x 'mail bob'",
            "/bin/bash -login 'mail bob'",
            "/bin/bash --unknown 'mail bob'",
            "/bin/sh -s 'mail bob'",
            "/bin/sh - 'mail bob'",
            "/bin/dash -euc 'mail bob'",
            "/bin/zsh -fic 'mail bob'",
            "/bin/tcsh -fc 'mail bob'",
            "/usr/bin/fish -C 'mail bob'",
            "/usr/bin/fish -Nc 'mail bob'",
            "/usr/bin/fish --command='mail bob' x",
            "/usr/bin/python3 -Ic 'mail bob'",
            "/usr/bin/python3 -W ignore -c 'mail bob'",
            "/usr/bin/python3 -Wignore -uc 'mail bob'",
            "/usr/bin/python3 -X dev -",
            "/usr/bin/python3 -m 'mail bob'",
            "/usr/bin/perl -0777 -ne 'mail bob'",
            "/usr/bin/perl -0777ne 'mail bob'",
            "/usr/bin/perl -lane 'mail bob' x",
            "/usr/bin/perl -MSome::Module -E 'mail bob'",
            "/usr/bin/perl -i.bak -pe 'mail bob' x",
            "/usr/bin/ruby -rjson -ne 'mail bob'",
            "/usr/bin/ruby -W0 -e 'mail bob'",
            "/usr/bin/ruby -W0e 'mail bob'",
            "/usr/bin/node -pe 'mail bob'",
            "/usr/bin/node -r fs -e 'mail bob'",
            "/usr/bin/node --eval='mail bob' x",
            "/usr/bin/node --print 'mail bob'",
            "/usr/bin/deno eval 'mail bob'",
            "/usr/bin/bun -e 'mail bob'",
            "/usr/bin/php -d a=b -r 'mail bob'",
            "/usr/bin/php -nr 'mail bob'",
            "/usr/bin/php -- 'mail bob'",
            "/usr/bin/lua5.4 -e'mail bob'",
            "/usr/bin/lua5.4 -l json -e 'mail bob'",
            "/usr/bin/luajit -O3 -e 'mail bob'",
            "/usr/bin/expect -dc 'mail bob'",
            "/usr/bin/gjs -c 'mail bob'",
            "/usr/bin/guile -L /x -c 'mail bob'",
            "/usr/bin/java -cp x 'mail bob'",
            "/usr/bin/java @arguments Main",
            "/usr/bin/java --unknown value Main",
            "/usr/bin/flatpak install 'mail bob'",
            "/usr/bin/busybox 'mail bob'",
            "/usr/bin/awk 'mail bob' x",
            "/usr/bin/awk -f x.awk y",
            "/usr/bin/sed -e 'mail bob' x",
            "/usr/bin/env -S 'python3 -u' 'mail bob'",
        ] {
            assert_eq!(quoted(line), None, "{line}");
        }
    }

    #[test]
    fn options_that_share_a_word_take_their_values() {
        let table = [
            ("/bin/bash -euo pipefail x.sh", "/home/u/x.sh"),
            ("/bin/bash +x -O extglob x.sh", "/home/u/x.sh"),
            ("/bin/bash --rcfile y -l x.sh", "/home/u/x.sh"),
            ("/usr/bin/python3 -Im http.server 80", "-m http.server"),
            ("/usr/bin/python3 -mhttp.server", "-m http.server"),
            ("/usr/bin/python3 -X dev -W ignore -Bs x.py", "/home/u/x.py"),
            ("/usr/bin/python3 -uXdev x.py", "/home/u/x.py"),
            ("/usr/bin/perl -I lib -Mstrict -0777 -n x.pl", "/home/u/x.pl"),
            ("/usr/bin/perl '-w -T' x.pl", "/home/u/x.pl"),
            ("/usr/bin/ruby -W2 -I lib -rjson x.rb", "/home/u/x.rb"),
            ("/usr/bin/node -r esm --title=x --no-warnings x.js", "/home/u/x.js"),
            ("/usr/bin/php -d a=b -f x.php -- y", "/home/u/x.php"),
            ("/usr/bin/luajit -O3 -jv x.lua", "/home/u/x.lua"),
            ("/usr/bin/expect -f x.exp", "/home/u/x.exp"),
            ("/usr/bin/guile -q -s x.scm", "/home/u/x.scm"),
            ("/usr/bin/deno run -A --config y x.ts", "/home/u/x.ts"),
            ("/usr/bin/dotnet x.dll", "/home/u/x.dll"),
            ("/usr/bin/java --add-exports a/b=ALL --add-reads c=d --source 21 X.java", "/home/u/X.java"),
            (
                "/usr/bin/java --add-opens=a/b=ALL -p mods --patch-module a=b -m mod/org.Main",
                "-m mod/org.Main",
            ),
            ("/usr/bin/java --limit-modules a --enable-native-access b --upgrade-module-path c Main", "Main"),
            ("/usr/bin/flatpak run --command bash org.gnome.gedit", "org.gnome.gedit"),
        ];
        for (line, expected) in table {
            assert_eq!(quoted(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn programs_in_one_file_are_told_apart_by_their_names() {
        let of = |args: &[&[u8]]| program("/bin/busybox".into(), args, None).script;
        assert_eq!(of(&[b"vi", b"x"]), Some("vi".into()));
        assert_eq!(of(&[b"/bin/busybox", b"httpd", b"-f"]), Some("httpd".into()));
        assert_eq!(of(&[]), None);
        let coreutils = |args: &[&[u8]]| program("/bin/coreutils".into(), args, None).script;
        assert_eq!(coreutils(&[b"cat", b"divorce-letter.txt"]), Some("cat".into()));
        assert_eq!(coreutils(&[b"coreutils", b"cat", b"divorce-letter.txt"]), Some("cat".into()));
        assert_eq!(coreutils(&[b"/bin/coreutils", b"--coreutils-prog-shebang=cat", b"mail"]), None);
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
