//! Why a link could not be measured, as messages for people.

use std::io;

use crate::parse::refusal::Refusal;
use crate::policy::Policy;
use crate::suite::Suite;

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that ssh would not take for a host.
    #[error("\"{0}\" is no host: give a name that `ssh` takes, such as web1 or user@10.0.0.2")]
    Host(String),
    /// `ssh` or `sh` cannot be started.
    #[error("cannot start {program}: {source}{}", missing(program, source))]
    Start {
        /// Its name.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
    /// ssh could not connect.
    #[error("{}", refused(host, refusal, *may_ask))]
    Refused {
        /// The far end.
        host: String,
        /// The reason.
        refusal: Refusal,
        /// Could ssh ask for a password?
        may_ask: bool,
    },
    /// A client of LTSP without an ssh server, which is LTSP's default.
    #[error(
        "{host} cannot be reached: {message}. LTSP switches the ssh server of its clients off, and their image has no host keys: below [clients] in ltsp.conf \
         write KEEP_SYSTEM_SERVICES=\"ssh\" and a line that makes keys (docs/link.md has both), run `ltsp initrd`, and restart the client"
    )]
    NoServerOfLtsp {
        /// The client.
        host: String,
        /// ssh's own message.
        message: String,
    },
    /// The far end works, and nobody named it.
    #[error("{host} is busy and was left alone: {why}; try again when it is idle, or name it")]
    Busy {
        /// The far end.
        host: String,
        /// The reason.
        why: String,
    },
    /// ssh connected, but the far end runs no shell.
    #[error(
        "ssh reaches {host}, but no POSIX shell answers there ({output}); the far end needs `sh`, `head` and `dd`"
    )]
    NoShell {
        /// The far end.
        host: String,
        /// Its output instead.
        output: String,
    },
    /// The link stalled.
    #[error(
        "the link to {host} stalled while {doing}. Nothing was changed; try again, or check the cable, the radio or the VPN between"
    )]
    Stalled {
        /// The far end.
        host: String,
        /// The step, as a clause.
        doing: &'static str,
    },
    /// The connection ended by itself.
    #[error("the connection to {host} ended while {doing}{}", behind(output))]
    Ended {
        /// The far end.
        host: String,
        /// The step, as a clause.
        doing: &'static str,
        /// The last line of ssh's standard error.
        output: String,
    },
    /// Both ends have no secure cipher in common.
    #[error("{}", nothing_allowed(host, software.as_deref(), *policy, offers))]
    NothingAllowed {
        /// The far end.
        host: String,
        /// Its software.
        software: Option<String>,
        /// The policy.
        policy: Policy,
        /// The far end's ciphers.
        offers: Vec<String>,
    },
    /// This machine's ssh configuration excludes all secure ciphers that both ends have.
    #[error("{}", all_excluded(host, excluded))]
    Excluded {
        /// The far end.
        host: String,
        /// Those ciphers.
        excluded: Vec<Suite>,
    },
    /// This machine's ssh server accepts none of the allowed ciphers.
    #[error("{}", not_accepted(host, allowed))]
    NotAccepted {
        /// The far end, which would connect to it.
        host: String,
        /// Those ciphers.
        allowed: Vec<Suite>,
    },
    /// The configuration of this machine's ssh server is not known.
    #[error(
        "LTSP's clients connect to this machine's ssh server, and its settings cannot be read (sshd -T: {why}). Nothing was changed; install the server, or start it once since the boot \
         (systemctl start ssh; Fedora, openSUSE: sshd), then try again"
    )]
    OwnServer {
        /// The system's or the server's message.
        why: String,
    },
    /// No allowed cipher could be measured.
    #[error("no cipher that the policy allows could be measured with {0}")]
    NoneMeasured(String),
    /// An unexpected answer.
    #[error("{host} gave an unexpected answer while {doing}: \"{output}\"")]
    Answer {
        /// The far end.
        host: String,
        /// The step, as a clause.
        doing: &'static str,
        /// The answer.
        output: String,
    },
    /// The system's answer about a pipe to ssh.
    #[error("cannot {what} ssh: {source}")]
    Pipe {
        /// The attempt, as a verb.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A signal came.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The same for a client of LTSP: one that is on and refuses the connection lacks what LTSP switches off.
    #[must_use]
    pub fn of_ltsp_client(self) -> Self {
        match self {
            Self::Refused { host, refusal: Refusal::Unreachable(message), .. }
                if message.contains("Connection refused") =>
            {
                Self::NoServerOfLtsp { host, message }
            }
            other => other,
        }
    }
}

fn missing(program: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound if program.ends_with("ssh") => {
            " (Debian, Fedora: the package openssh-client or openssh-clients)"
        }
        _ => "",
    }
}

fn behind(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!(": {output}") }
}

fn refused(host: &str, refusal: &Refusal, may_ask: bool) -> String {
    match refusal {
        Refusal::Unreachable(message) => {
            format!(
                "{host} cannot be reached: {message}. Is it on, is its name right, and does an ssh server listen there? Try: ssh {host}"
            )
        }
        Refusal::NotAuthenticated(message) if may_ask => {
            format!("{host} does not let this user in: {message}. Try: ssh {host}")
        }
        Refusal::NotAuthenticated(message) => format!(
            "{host} does not let this user in: {message}. eke lets ssh ask for a password only on a terminal and for one host at a time: name one host on a terminal, or give {host} a \
             key of yours (ssh-copy-id {host}). Under sudo the keys of your ssh agent count with: sudo --preserve-env=SSH_AUTH_SOCK eke link ..."
        ),
        Refusal::HostKey(message) => format!(
            "the key of {host} is not known here, or has changed ({message}). Connect once by hand and read ssh's message: ssh {host}"
        ),
        Refusal::NoneInCommon { what, offers } => format!(
            "ssh and {host} have no {what} in common; {host} offers only {}. {}",
            offers.join(", "),
            UPGRADE
        ),
        Refusal::Configuration(message) => format!("ssh rejects its configuration: {message}"),
        Refusal::Other(message) if message.is_empty() => {
            format!("ssh to {host} ended without a message. Try: ssh -v {host}")
        }
        Refusal::Other(message) => format!("ssh could not connect to {host}: {message}. Try: ssh -v {host}"),
    }
}

const UPGRADE: &str = "Nothing was changed, and eke will not choose one of those: upgrade the ssh server there (OpenSSH 6.5 of 2014 or newer has AES-GCM, \
                       ChaCha20-Poly1305 and AES-CTR with encrypt-then-MAC), or remove the lines that narrow `Ciphers` and `MACs` from its sshd_config";

fn nothing_allowed(host: &str, software: Option<&str>, policy: Policy, offers: &[String]) -> String {
    let runs = software.map_or(String::new(), |s| format!(" runs {s} and"));
    format!(
        "{host}{runs} offers only {}, and the policy \"{policy}\" allows none of these. {UPGRADE}",
        offers.join(", ")
    )
}

fn not_accepted(host: &str, allowed: &[Suite]) -> String {
    let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    format!(
        "{host} will connect to this machine, and this machine's ssh server accepts none of the secure ciphers that {host} has: {}. Nothing was changed. If \
         your rules allow one, add it to Ciphers and MACs in /etc/ssh/sshd_config (sshd -T shows the lists)",
        names.join(", ")
    )
}

fn all_excluded(host: &str, excluded: &[Suite]) -> String {
    let names: Vec<String> = excluded.iter().map(ToString::to_string).collect();
    format!(
        "ssh's configuration on this machine excludes all secure ciphers that {host} offers: {}. Nothing was changed. If your rules allow one, add it to \
         Ciphers and MACs there (ssh -G {host} shows the lists)",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_ltsp_without_an_ssh_server_is_told_ltsps_lines() {
        let of = |message: &str| {
            let refusal = Refusal::Unreachable(message.into());
            Error::Refused { host: "h".into(), refusal, may_ask: false }.of_ltsp_client().to_string()
        };
        let refused = of("connect to host h port 22: Connection refused");
        assert!(
            refused.contains("KEEP_SYSTEM_SERVICES=\"ssh\"") && refused.contains("ltsp initrd"),
            "{refused}"
        );
        assert!(of("connect to host h port 22: No route to host").contains("Is it on"));
    }

    #[test]
    fn each_message_has_a_remedy() {
        let refused = |refusal, may_ask| Error::Refused { host: "h".into(), refusal, may_ask }.to_string();
        assert!(refused(Refusal::Unreachable("Connection refused".into()), false).contains("Is it on"));
        assert!(
            refused(Refusal::NotAuthenticated("Permission denied".into()), false).contains("ssh-copy-id h")
        );
        assert!(
            !refused(Refusal::NotAuthenticated("Permission denied".into()), true).contains("on a terminal")
        );
        let old = refused(
            Refusal::NoneInCommon { what: "cipher".into(), offers: vec!["aes128-cbc".into()] },
            false,
        );
        assert!(old.contains("offers only aes128-cbc") && old.contains("upgrade"));
        let nothing = Error::NothingAllowed {
            host: "h".into(),
            software: Some("OpenSSH_5.3".into()),
            policy: Policy::Modern,
            offers: vec!["arcfour".into()],
        };
        assert!(nothing.to_string().starts_with("h runs OpenSSH_5.3 and offers only arcfour"));
        let excluded =
            Error::Excluded { host: "h".into(), excluded: vec![Suite::new("aes128-gcm@openssh.com", None)] };
        assert!(excluded.to_string().contains("h offers: aes128-gcm. Nothing was changed"), "{excluded}");
    }
}
