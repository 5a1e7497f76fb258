//! Command lines of the system's own ssh: its configuration, with the options that a measurement needs.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::suite::Suite;

/// How to call ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    /// `ssh`, or a command that ends in it (`ip netns exec NAME ssh`).
    pub words: Vec<OsString>,
    /// `-F`: instead of the user's and the system's configuration.
    pub config: Option<PathBuf>,
    /// The user who runs it; `None`: that of eke. Keys and known hosts are this user's.
    pub as_user: Option<User>,
    /// May ssh ask on the terminal for a password, or whether to trust a host?
    pub may_ask: bool,
    /// More options, as `ssh -o` takes them.
    pub options: Vec<String>,
}

/// A user other than that of eke.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The name.
    pub name: Option<String>,
    /// The home directory, for what ssh starts: a ProxyCommand, a `Match exec`.
    pub home: Option<PathBuf>,
}

impl Default for Ssh {
    fn default() -> Self {
        Self { words: vec!["ssh".into()], config: None, as_user: None, may_ask: false, options: Vec::new() }
    }
}

/// Options of every connection of a measurement. A shared connection cannot change its cipher, and compression would measure the codec.
/// A far end that no longer answers ends ssh, and none gets more than the measurement needs.
const ALWAYS: [&str; 14] = [
    "ControlMaster=no",
    "ControlPath=none",
    "Compression=no",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "ForwardAgent=no",
    "Tunnel=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "ConnectTimeout=10",
    "ConnectionAttempts=1",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
];

impl Ssh {
    /// Checks that ssh cannot take the name for an option.
    ///
    /// # Errors
    /// It can.
    pub fn check(host: &str) -> Result<()> {
        let bad = host.is_empty()
            || host.starts_with('-')
            || host.contains(|c: char| c.is_whitespace() || c.is_control());
        if bad { Err(Error::Host(host.to_owned())) } else { Ok(()) }
    }

    /// A connection to `host` that runs `command`, in this cipher if one is given.
    pub fn connection(&self, host: &str, suite: Option<&Suite>, extra: &[&str], command: &str) -> Command {
        let mut ssh = self.command();
        let batch = if self.may_ask { "BatchMode=no" } else { "BatchMode=yes" };
        for option in ALWAYS.iter().chain([&batch]) {
            ssh.arg("-o").arg(option);
        }
        // No Kerberos ticket goes along. As an option, GSSAPIDelegateCredentials makes an ssh without GSSAPI complain.
        ssh.arg("-k");
        if let Some(suite) = suite {
            ssh.arg("-o").arg(format!("Ciphers={}", suite.cipher));
            ssh.args(suite.mac.iter().flat_map(|mac| ["-o".to_owned(), format!("MACs={mac}")]));
        }
        ssh.args(extra).arg("--").arg(host).arg(command);
        ssh
    }

    /// The output of `ssh -G`, `-Q` or `-V`: standard output, or standard error if that is empty.
    ///
    /// # Errors
    /// It cannot be started, or rejects its configuration.
    pub fn ask(&self, args: &[&str]) -> Result<String> {
        self.answer(args, Stdio::null())
    }

    /// `ssh -G HOST` with this text as the whole configuration.
    ///
    /// # Errors
    /// As [`Ssh::ask`].
    pub fn ask_configured(&self, text: &str, host: &str) -> Result<String> {
        let failed = |source| Error::Pipe { what: "write a configuration for", source };
        // ssh opens it twice if it has `Match final`, which a pipe does not allow
        let fd = rustix::fs::memfd_create("ssh_config", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = File::from(fd.map_err(|e| failed(e.into()))?);
        file.write_all(text.as_bytes()).map_err(failed)?;
        self.answer(&["-F", "/dev/stdin", "-G", "--", host], file.into())
    }

    fn answer(&self, args: &[&str], input: Stdio) -> Result<String> {
        let mut command = self.command();
        command.args(args).stdin(input);
        let output = command.output().map_err(|source| self.cannot_start(source))?;
        let [text, error] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
        if output.status.success() {
            return Ok(if text.is_empty() { error } else { text });
        }
        let refusal = crate::parse::refusal::refusal(&error);
        Err(Error::Refused {
            host: args.last().copied().unwrap_or_default().to_owned(),
            refusal,
            may_ask: self.may_ask,
        })
    }

    pub(super) fn cannot_start(&self, source: std::io::Error) -> Error {
        let program = self.words.last().map_or_else(|| "ssh".into(), |w| w.to_string_lossy().into_owned());
        Error::Start { program, source }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.words.first().map_or("ssh".as_ref(), |w| w.as_os_str()));
        command.args(self.words.iter().skip(1));
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        for option in &self.options {
            command.arg("-o").arg(option);
        }
        if let Some(user) = &self.as_user {
            command.uid(user.uid).gid(user.gid);
            command.envs(user.home.iter().map(|home| ("HOME", home)));
            command.envs(user.name.iter().flat_map(|name| [("USER", name), ("LOGNAME", name)]));
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn words(command: &Command) -> String {
        command.get_args().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_host_is_no_option() {
        for bad in ["", "-oProxyCommand=x", "a b", "a\n"] {
            assert!(Ssh::check(bad).is_err(), "{bad:?}");
        }
        assert!(Ssh::check("user@[::1]").is_ok());
    }

    /// A ProxyCommand of that user's configuration reads its own files by them.
    #[test]
    fn another_user_has_an_environment_of_its_own() {
        let user = User { uid: 1, gid: 1, name: Some("anna".into()), home: Some("/home/anna".into()) };
        let ssh = Ssh { as_user: Some(user), ..Ssh::default() };
        let command = ssh.connection("h", None, &[], "exec sh");
        let set: Vec<_> = command.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
        let expected = [("HOME", "/home/anna"), ("LOGNAME", "anna"), ("USER", "anna")];
        assert_eq!(set, expected.map(|(name, value)| (OsStr::new(name), OsStr::new(value))));
        assert_eq!(Ssh::default().connection("h", None, &[], "exec sh").get_envs().count(), 0);
    }

    #[test]
    fn a_measurement_shares_no_connection_and_asks_only_on_a_terminal() {
        let ctr = Suite::new("aes128-ctr", Some("umac-128-etm@openssh.com"));
        let line = words(&Ssh::default().connection("h", Some(&ctr), &["-T"], "exec sh"));
        for part in [
            "ControlPath=none",
            "Compression=no",
            "BatchMode=yes",
            "Ciphers=aes128-ctr",
            "MACs=umac-128-etm@openssh.com",
            "ForwardAgent=no",
            "Tunnel=no",
            " -k ",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(line.ends_with("-T -- h exec sh"));
        let asking = Ssh { may_ask: true, config: Some("/c".into()), ..Ssh::default() };
        let line = words(&asking.connection("h", None, &[], "exec sh"));
        assert!(line.starts_with("-F /c") && line.contains("BatchMode=no") && !line.contains("Ciphers"));
    }
}
