//! The interpreters and their options, as their manuals have them. A table; [`script`](super::script) reads arguments with it.
//!
//! An option that is missing here hides the script: its value could be the text of a program, and that text may be private.

use Takes::{Code, Digits, FirstWord, Module, Next, Nothing, Rest, Script, Value};

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// The digits that follow the letter, if any (`perl -0777ne`).
    Digits,
    /// The rest of the word, which may be empty (`perl -i.bak`).
    Rest,
    /// The rest of the word, or the next argument if that is empty.
    Value,
    /// The next argument. What follows the letter in its word differs between the interpreters of this row, so it must be the word's last.
    Next,
    /// The program's text, or whatever else excludes a script.
    Code,
    /// A module's name, as for [`Takes::Value`].
    Module,
    /// The script, as for [`Takes::Value`].
    Script,
    /// Nothing; but the first word that is no option is the script, not a name.
    FirstWord,
}

/// How an interpreter takes its script.
#[derive(Debug)]
pub(super) struct Interpreter {
    /// Its names, without versions.
    pub names: &'static [&'static str],
    /// Options of one letter after one dash. They may share a word (`-euo pipefail`).
    pub letters: &'static [(&'static str, Takes)],
    /// Options that are whole words. A value may follow `=`.
    pub options: &'static [(&'static [&'static str], Takes)],
    /// Words with these beginnings are options without a further argument.
    pub beginnings: &'static [&'static str],
    /// Whether `+x` is an option, too.
    pub has_plus: bool,
    /// The subcommand before the script. Without it, only a word that looks like a file is the script.
    pub subcommand: Option<&'static str>,
    /// Whether the first argument is a name and not a path.
    pub is_name: bool,
}

const NONE: Interpreter = Interpreter {
    names: &[],
    letters: &[],
    options: &[],
    beginnings: &[],
    has_plus: false,
    subcommand: None,
    is_name: false,
};

/// `-s` reads standard input: the words after it are no script.
const SH: Interpreter = Interpreter {
    names: &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash"],
    letters: &[("abefhiklmnprtuvxBCEHPTVIq", Nothing), ("oO", Next), ("cs", Code)],
    options: &[
        (&["--rcfile", "--init-file", "--emulate"], Value),
        (
            &[
                "--debugger",
                "--login",
                "--noediting",
                "--noprofile",
                "--norc",
                "--posix",
                "--restricted",
                "--verbose",
            ],
            Nothing,
        ),
    ],
    has_plus: true,
    ..NONE
};

const JAVA: Interpreter = Interpreter {
    names: &["java"],
    options: &[
        (&["-jar"], FirstWord),
        (&["-m", "--module"], Module),
        (
            &[
                "-cp",
                "-classpath",
                "--class-path",
                "-p",
                "--module-path",
                "--upgrade-module-path",
                "--add-modules",
                "--add-exports",
                "--add-opens",
                "--add-reads",
                "--limit-modules",
                "--patch-module",
                "--enable-native-access",
                "--source",
            ],
            Value,
        ),
        (
            &[
                "--enable-preview",
                "--show-version",
                "--show-module-resolution",
                "-showversion",
                "-server",
                "-client",
            ],
            Nothing,
        ),
    ],
    beginnings: &[
        "-X",
        "-D",
        "-ea",
        "-enableassertions",
        "-esa",
        "-enablesystemassertions",
        "-da",
        "-disableassertions",
        "-dsa",
        "-disablesystemassertions",
        "-agentlib:",
        "-agentpath:",
        "-javaagent:",
        "-verbose",
        "-splash:",
    ],
    is_name: true,
    ..NONE
};

const NODE: Interpreter = Interpreter {
    names: &["node", "nodejs", "electron"],
    letters: &[("ci", Nothing), ("rC", Value), ("ep", Code)],
    options: &[
        (&["--eval", "--print", "--test", "--run"], Code),
        (
            &[
                "--require",
                "--import",
                "--loader",
                "--experimental-loader",
                "--conditions",
                "--env-file",
                "--input-type",
                "--title",
                "--icu-data-dir",
                "--openssl-config",
                "--redirect-warnings",
            ],
            Value,
        ),
        (
            &[
                "--check",
                "--interactive",
                "--inspect",
                "--inspect-brk",
                "--inspect-wait",
                "--no-warnings",
                "--no-deprecation",
                "--trace-warnings",
                "--trace-deprecation",
                "--trace-uncaught",
                "--throw-deprecation",
                "--enable-source-maps",
                "--expose-gc",
                "--preserve-symlinks",
                "--preserve-symlinks-main",
                "--use-openssl-ca",
                "--use-system-ca",
                "--abort-on-uncaught-exception",
                "--experimental-vm-modules",
                "--no-sandbox",
                "--watch",
            ],
            Nothing,
        ),
    ],
    ..NONE
};

const FLATPAK: Interpreter = Interpreter {
    names: &["flatpak", "snap"],
    letters: &[("dpv", Nothing)],
    options: &[
        (&["--file-forwarding", "--devel", "--sandbox", "--user", "--system"], Nothing),
        (&["--branch", "--arch", "--command", "--cwd", "--env", "--filesystem", "--runtime"], Value),
    ],
    subcommand: Some("run"),
    is_name: true,
    ..NONE
};

/// All interpreters.
pub(super) const INTERPRETERS: [Interpreter; 22] = [
    Interpreter {
        names: &["python", "pypy"],
        letters: &[("bBdEiIOPqRsStuvx", Nothing), ("QWX", Value), ("c", Code), ("m", Module)],
        options: &[(&["--check-hash-based-pycs", "--jit"], Value)],
        ..NONE
    },
    // A line `#! perl -w -T` is one word.
    Interpreter {
        names: &["perl"],
        letters: &[
            ("acfghnpstuvwSTUWX -", Nothing),
            ("0l", Digits),
            ("CdDFimMVx", Rest),
            ("I", Value),
            ("eE", Code),
        ],
        ..NONE
    },
    Interpreter {
        names: &["ruby", "jruby"],
        letters: &[
            ("acdlnpsvwySU", Nothing),
            ("0TW", Digits),
            ("FiKx:", Rest),
            ("CEIrX", Value),
            ("e", Code),
        ],
        options: &[
            (
                &[
                    "--encoding",
                    "--external-encoding",
                    "--internal-encoding",
                    "--enable",
                    "--disable",
                    "--parser",
                ],
                Value,
            ),
            (&["--jit", "--yjit", "--verbose", "--debug"], Nothing),
        ],
        ..NONE
    },
    SH,
    Interpreter {
        names: &["fish"],
        letters: &[("ilnNP", Nothing), ("CdDfop", Value), ("c", Code)],
        options: &[
            (&["--command"], Code),
            (
                &[
                    "--init-command",
                    "--debug",
                    "--debug-output",
                    "--features",
                    "--profile",
                    "--profile-startup",
                ],
                Value,
            ),
            (&["--interactive", "--login", "--no-config", "--private"], Nothing),
        ],
        ..NONE
    },
    Interpreter { names: &["csh", "tcsh"], letters: &[("defFilmnqvVxX", Nothing), ("cst", Code)], ..NONE },
    NODE,
    Interpreter {
        names: &["deno"],
        letters: &[("AEINRSWqr", Nothing), ("cL", Value)],
        options: &[
            (&["--allow-all", "--no-check", "--quiet", "--watch"], Nothing),
            (&["--config", "--import-map", "--log-level"], Value),
        ],
        subcommand: Some("run"),
        ..NONE
    },
    Interpreter {
        names: &["bun"],
        letters: &[("bi", Nothing), ("cdr", Value), ("ep", Code)],
        options: &[
            (&["--eval", "--print"], Code),
            (&["--preload", "--require", "--import", "--config", "--cwd", "--define"], Value),
            (&["--bun", "--hot", "--watch", "--smol"], Nothing),
        ],
        subcommand: Some("run"),
        ..NONE
    },
    JAVA,
    // `php -- words` reads the program from standard input.
    Interpreter {
        names: &["php"],
        letters: &[("aCeHilmnqsw", Nothing), ("cdStz", Value), ("f", Script), ("rBREF", Code)],
        options: &[
            (&["--run", "--process-begin", "--process-code", "--process-end", "--process-file", "--"], Code),
            (&["--file"], Script),
            (&["--php-ini", "--define", "--server", "--docroot", "--zend-extension"], Value),
            (&["--no-php-ini"], Nothing),
        ],
        ..NONE
    },
    Interpreter { names: &["lua"], letters: &[("ivEW", Nothing), ("l", Value), ("e", Code)], ..NONE },
    Interpreter {
        names: &["luajit"],
        letters: &[("ivE", Nothing), ("O", Rest), ("jl", Value), ("be", Code)],
        ..NONE
    },
    Interpreter { names: &["tclsh", "wish"], options: &[(&["-encoding"], Value)], ..NONE },
    Interpreter {
        names: &["expect"],
        letters: &[("dinNv", Nothing), ("D", Value), ("bf", Script), ("c", Code)],
        ..NONE
    },
    Interpreter {
        names: &["gjs"],
        letters: &[("dm", Nothing), ("CI", Value), ("c", Code)],
        options: &[
            (&["--command"], Code),
            (&["--module"], Nothing),
            (&["--include-path", "--coverage-prefix", "--coverage-output"], Value),
        ],
        ..NONE
    },
    Interpreter { names: &["qml"], letters: &[("IPc", Value)], options: &[(&["-apptype"], Value)], ..NONE },
    Interpreter {
        names: &["guile"],
        letters: &[("q", Nothing), ("CLelx", Value), ("s", Script), ("c", Code)],
        options: &[(&["--no-auto-compile", "--auto-compile", "--debug"], Nothing)],
        ..NONE
    },
    Interpreter {
        names: &["mono"],
        options: &[(&["--debug", "--desktop", "--server"], Nothing), (&["--config"], Value)],
        ..NONE
    },
    Interpreter {
        names: &["dotnet"],
        options: &[(
            &["--depsfile", "--runtimeconfig", "--additionalprobingpath", "--fx-version", "--roll-forward"],
            Value,
        )],
        subcommand: Some("exec"),
        ..NONE
    },
    FLATPAK,
    Interpreter {
        names: &["busybox", "toybox", "coreutils"],
        options: &[(&["--coreutils-prog", "--coreutils-prog-shebang"], Code)],
        is_name: true,
        ..NONE
    },
];
