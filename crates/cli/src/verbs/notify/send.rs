//! Shows a notification by the program that the desktop has: `notify-send` (libnotify), otherwise systemd's `busctl`.
//!
//! A library for D-Bus (zbus, or notify-rust on it) would add more than a megabyte to `eke` for one call of one method.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use eke_model::text::one_line;

const TITLE: &str = "eke";
/// Longer texts are cut: desktops show a few lines.
const LONGEST: usize = 400;

/// A program that shows notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// libnotify's.
    NotifySend,
    /// systemd's client of D-Bus.
    Busctl,
}

impl Sender {
    /// The first one in `path`, as in `$PATH`.
    pub fn find(path: &OsStr) -> Option<Self> {
        let exists = |name: &str| std::env::split_paths(path).any(|dir: PathBuf| dir.join(name).is_file());
        [Self::NotifySend, Self::Busctl].into_iter().find(|sender| exists(sender.program()))
    }

    fn program(self) -> &'static str {
        match self {
            Self::NotifySend => "notify-send",
            Self::Busctl => "busctl",
        }
    }

    /// Its arguments. `--` ends the options: a text may begin with a dash.
    fn arguments(self, body: &str) -> Vec<String> {
        let fixed: &[&str] = match self {
            Self::NotifySend => &["--app-name=eke", "--urgency=normal", "--", TITLE],
            // The interface is that of the Desktop Notifications Specification: application, replaced notification, icon,
            // title, body, actions, hints, time (-1: the desktop's).
            Self::Busctl => &[
                "--user",
                "--",
                "call",
                "org.freedesktop.Notifications",
                "/org/freedesktop/Notifications",
                "org.freedesktop.Notifications",
                "Notify",
                "susssasa{sv}i",
                "eke",
                "0",
                "",
                TITLE,
            ],
        };
        let after: &[&str] = if self == Self::Busctl { &["0", "0", "-1"] } else { &[] };
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [own(fixed), vec![body.to_owned()], own(after)].concat()
    }

    /// Shows `text`.
    ///
    /// # Errors
    /// A sentence: the program cannot be started, or what it said.
    pub fn show(self, text: &str) -> Result<(), String> {
        let mut command = Command::new(self.program());
        command.args(self.arguments(&body(text))).stdin(Stdio::null()).stdout(Stdio::null());
        let output = command.output().map_err(|e| format!("{} cannot be started: {e}", self.program()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{} failed ({}): {}", self.program(), output.status, one_line(said.trim())))
    }
}

/// The text as the specification's markup: no control characters, no tags, no entities of its own.
fn body(text: &str) -> String {
    let line = one_line(text);
    let mut short: String = line.chars().take(LONGEST).collect();
    if short.len() < line.len() {
        short.push_str(" ...");
    }
    short.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_markup_no_option_and_of_one_line() {
        assert_eq!(body("<b>a</b> & <img src=\"x\">"), "&lt;b&gt;a&lt;/b&gt; &amp; &lt;img src=\"x\"&gt;");
        assert_eq!(body("a\n\u{1b}[2Jb"), "a\\u000a\\u001b[2Jb");
        assert!(body(&"x".repeat(1_000)).len() < 410);
        for sender in [Sender::NotifySend, Sender::Busctl] {
            let arguments = sender.arguments("--help");
            let at = |word: &str| arguments.iter().position(|argument| argument == word).unwrap();
            assert!(at("--") < at("--help"), "{arguments:?}");
        }
    }

    #[test]
    fn notify_send_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let find = || Sender::find(dir.path().as_os_str());
        assert_eq!(find(), None);
        eke_testkit::tree::put(dir.path(), "busctl", "");
        assert_eq!(find(), Some(Sender::Busctl));
        eke_testkit::tree::put(dir.path(), "notify-send", "");
        assert_eq!(find(), Some(Sender::NotifySend));
    }
}
