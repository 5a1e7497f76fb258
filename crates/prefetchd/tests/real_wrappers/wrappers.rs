//! The wrappers, as data: how each starts a program, and what it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use eke_testkit::real::no_program;

/// The user of all programs: nobody.
pub const SOMEBODY: u32 = 65_534;

/// Where the programs are, and where they are started.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The top of the disk.
    pub top: &'a Path,
    /// The name of the wrapper's program.
    pub name: &'a str,
}

impl Place<'_> {
    /// The program as the host has it.
    pub fn program(&self) -> PathBuf {
        self.top.join("jail").join(self.name)
    }

    fn shown(&self) -> String {
        self.program().display().to_string()
    }
}

/// A way to start a program.
#[derive(Debug)]
pub struct Wrapper {
    /// Its name, without blanks.
    pub name: &'static str,
    /// The programs that it needs.
    pub needs: &'static [&'static str],
    /// What else keeps it from being tried.
    pub lacks: fn() -> Option<String>,
    /// The command's words; `PROG` is the program, `SCRIPT` the argument of its `-c`, `TOP` the disk.
    pub words: &'static [&'static str],
}

const fn plain(
    name: &'static str,
    needs: &'static [&'static str],
    words: &'static [&'static str],
) -> Wrapper {
    Wrapper { name, needs, lacks: || None, words }
}

/// Not on this machine, and too large for a test.
fn is_missing(program: &str) -> Option<String> {
    Some(format!("{program} and what it starts are too large for a test"))
}

fn no_systemd() -> Option<String> {
    (!Path::new("/run/systemd/system").exists()).then(|| "systemd does not run".to_owned())
}

fn no_namespaces() -> Option<String> {
    let tried = as_user(Command::new("unshare").args(["-rm", "true"])).output();
    let is_there = tried.is_ok_and(|output| output.status.success());
    (!is_there).then(|| "the kernel gives users no namespaces".to_owned())
}

pub const WRAPPERS: [Wrapper; 22] = [
    plain("none", &[], &["PROG", "-c", "SCRIPT"]),
    plain("env", &["env"], &["env", "A=1", "PROG", "-c", "SCRIPT"]),
    plain("nice", &["nice"], &["nice", "-n", "1", "PROG", "-c", "SCRIPT"]),
    plain("timeout", &["timeout"], &["timeout", "60", "PROG", "-c", "SCRIPT"]),
    plain("chain", &["env"], &["env", "timeout", "60", "nice", "setsid", "PROG", "-c", "SCRIPT"]),
    plain("setsid", &["setsid"], &["setsid", "-w", "PROG", "-c", "SCRIPT"]),
    plain("setsid-fork", &["setsid"], &["setsid", "-fw", "PROG", "-c", "SCRIPT"]),
    plain("sh-c", &["sh"], &["sh", "-c", "\"$0\" -c \"$1\"; true", "PROG", "SCRIPT"]),
    plain("sh-exec", &["sh"], &["TOP/jail/dash", "TOP/script-exec", "PROG", "SCRIPT"]),
    plain("sh-script", &["sh"], &["TOP/jail/dash", "TOP/script", "PROG", "SCRIPT"]),
    plain("env-script", &["env", "sh"], &["TOP/script-env", "PROG", "SCRIPT"]),
    plain("dbus-run-session", &["dbus-run-session"], &["dbus-run-session", "--", "PROG", "-c", "SCRIPT"]),
    Wrapper {
        name: "sudo",
        needs: &["sudo"],
        lacks: || None,
        words: &["sudo", "-n", "-u", "nobody", "PROG", "-c", "SCRIPT"],
    },
    Wrapper {
        name: "chroot",
        needs: &["chroot", "unshare"],
        lacks: no_namespaces,
        words: &["unshare", "-r", "/usr/sbin/chroot", "TOP/jail", "/NAME", "-c", "SCRIPT"],
    },
    Wrapper {
        name: "bind-mount",
        needs: &["unshare"],
        lacks: no_namespaces,
        words: &[
            "unshare",
            "-rm",
            "sh",
            "-c",
            "mount --bind \"$0\"/jail \"$0\"/other && exec \"$0\"/other/NAME -c \"$1\"",
            "TOP",
            "SCRIPT",
        ],
    },
    Wrapper {
        name: "bwrap",
        needs: &["bwrap"],
        lacks: no_namespaces,
        words: &["bwrap", "--bind", "/", "/", "--bind", "TOP/jail", "/mnt", "/mnt/NAME", "-c", "SCRIPT"],
    },
    plain("appdir", &["sh"], &["TOP/app/AppRun", "PROG", "SCRIPT"]),
    plain("xdg-open", &["xdg-open", "xdg-mime"], &["xdg-open", "eke-NAME:x"]),
    plain("gtk-launch", &["gtk-launch", "Xvfb", "xvfb-run"], &["xvfb-run", "-a", "gtk-launch", "NAME"]),
    Wrapper {
        name: "systemd-run",
        needs: &["systemd-run"],
        lacks: no_systemd,
        words: &[
            "systemd-run",
            "--quiet",
            "--wait",
            "--uid=nobody",
            "--working-directory=TOP",
            "PROG",
            "-c",
            "SCRIPT",
        ],
    },
    Wrapper { name: "flatpak", needs: &[], lacks: || is_missing("flatpak"), words: &[] },
    Wrapper { name: "snap", needs: &[], lacks: || is_missing("snap"), words: &[] },
];

/// Only these are started by root: they change the user themselves.
const BY_ROOT: [&str; 2] = ["sudo", "systemd-run"];

impl Wrapper {
    /// Why it cannot be tried.
    pub fn lacking(&self) -> Option<String> {
        no_program(self.needs).or_else(|| (self.lacks)())
    }

    /// Starts the program with a script, as a user of its own: learned launches are limited per user, and other programs use up root's.
    pub fn start(&self, place: Place<'_>, script: &str) {
        let word = |word: &str| match word {
            "SCRIPT" => script.to_owned(),
            word => word
                .replace("PROG", &place.shown())
                .replace("NAME", place.name)
                .replace("TOP", &place.top.display().to_string()),
        };
        fs::write(place.top.join(format!("{}.sh", place.name)), script).unwrap();
        let words: Vec<String> = self.words.iter().map(|each| word(each)).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        desktop(&mut command, place.top);
        if !BY_ROOT.contains(&self.name) {
            as_user(&mut command);
        }
        let output = command.stderr(Stdio::piped()).output().unwrap();
        if !output.status.success() {
            // Its row shows that, and the others are tried, too.
            println!("{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        }
    }
}

fn as_user(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    command.uid(SOMEBODY).gid(SOMEBODY)
}

/// A home without a desktop's settings. xdg-open opens desktop entries only with a display, and does not connect to it.
fn desktop(command: &mut Command, top: &Path) {
    let home = top.join("home");
    for name in ["XDG_CURRENT_DESKTOP", "DESKTOP_SESSION", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "BROWSER"] {
        command.env_remove(name);
    }
    command
        .env("HOME", &home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CONFIG_HOME", home.join("config"));
    command.env("DISPLAY", ":7777").env("PATH", "/usr/bin:/bin:/usr/sbin");
}

/// What the wrappers need on the disk.
pub fn furnish(top: &Path) {
    for dir in ["jail", "other", "app", "home/data/applications", "home/config"] {
        fs::create_dir_all(top.join(dir)).unwrap();
    }
    copy(Path::new("/bin/dash"), &top.join("jail/dash"));
    let shell = top.join("jail/dash").display().to_string();
    script(&top.join("script-exec"), &shell, "exec \"$1\" -c \"$2\"\n");
    script(&top.join("script"), &shell, "\"$1\" -c \"$2\"\nexit 0\n");
    script(&top.join("script-env"), &format!("/usr/bin/env {shell}"), "exec \"$1\" -c \"$2\"\n");
    script(
        &top.join("app/AppRun"),
        &shell,
        "HERE=$(dirname \"$0\")\nexport APPDIR=\"$HERE\"\nexec \"$1\" -c \"$2\"\n",
    );
    let libraries = Command::new("ldd").arg("/bin/bash").output().unwrap();
    let libraries = String::from_utf8(libraries.stdout).unwrap();
    for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let done =
            Command::new("cp").args(["-L", "--parents", library]).arg(top.join("jail")).status().unwrap();
        assert!(done.success(), "{library}");
    }
    let owned =
        Command::new("chown").arg("-R").arg(SOMEBODY.to_string()).arg(top.join("home")).status().unwrap();
    assert!(owned.success());
}

/// The program of a wrapper, with a desktop entry that starts it.
pub fn install(place: Place<'_>) {
    copy(Path::new("/bin/bash"), &place.program());
    let Place { top, name } = place;
    let (program, script) = (place.shown(), top.join(format!("{name}.sh")));
    let entry = format!(
        "[Desktop Entry]\nType=Application\nName={name}\nExec={program} {} %u\nMimeType=x-scheme-handler/eke-{name};\n",
        script.display()
    );
    fs::write(top.join(format!("home/data/applications/{name}.desktop")), entry).unwrap();
    use std::io::Write;
    let mut list =
        fs::OpenOptions::new().create(true).append(true).open(top.join("home/config/mimeapps.list")).unwrap();
    let begin = if list.metadata().unwrap().len() == 0 { "[Default Applications]\n" } else { "" };
    writeln!(list, "{begin}x-scheme-handler/eke-{name}={name}.desktop").unwrap();
}

/// cp(1) writes the file: if this process wrote it, a child of another test could inherit the descriptor, and the file could not be executed.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-L").args([from, to]).status().unwrap().success());
}

fn script(path: &Path, interpreter: &str, text: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", "cat > \"$0\"; chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write;
    shell.stdin.take().unwrap().write_all(format!("#!{interpreter}\n{text}").as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
}
