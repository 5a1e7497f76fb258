//! Why a link could not be measured, in words for people.

use std::io;

use crate::parse::refusal::Refusal;
use crate::policy::Policy;

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A host's name that ssh would take for something else.
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
    /// ssh did not come through.
    #[error("{}", refused(host, refusal, *may_ask))]
    Refused {
        /// To whom.
        host: String,
        /// Why.
        refusal: Refusal,
        /// Could ssh ask somebody?
        may_ask: bool,
    },
    /// ssh came through, and there is no shell.
    #[error(
        "ssh reaches {host}, but there is no POSIX shell to talk to ({said}); the far end needs `sh`, `head` and `dd`"
    )]
    NoShell {
        /// Who.
        host: String,
        /// What it said instead.
        said: String,
    },
    /// Nothing came any more.
    #[error(
        "the link to {host} stalled while {doing}: nothing came for {seconds} s. Nothing was changed; try again, or look at the cable, the radio or the VPN between"
    )]
    Stalled {
        /// With whom.
        host: String,
        /// What was under way.
        doing: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// The connection ended by itself.
    #[error("the connection to {host} ended while {doing}{}", behind(said))]
    Ended {
        /// With whom.
        host: String,
        /// What was under way.
        doing: &'static str,
        /// The end of what ssh said.
        said: String,
    },
    /// Both ends have nothing in common that is secure.
    #[error("{}", nothing_allowed(host, software.as_deref(), *policy, offers))]
    NothingAllowed {
        /// Who.
        host: String,
        /// Its software.
        software: Option<String>,
        /// By which policy.
        policy: Policy,
        /// What the far end offers.
        offers: Vec<String>,
    },
    /// What was asked for by name is not among what is allowed.
    #[error("nothing that the policy allows could be measured with {0}")]
    NoneMeasured(String),
    /// The far end says something that makes no sense here.
    #[error("{host} answered \"{said}\" while {doing}, which is not what was asked for")]
    Answer {
        /// Who.
        host: String,
        /// What was under way.
        doing: &'static str,
        /// What it said.
        said: String,
    },
    /// The system's answer about a pipe to ssh.
    #[error("cannot {what} ssh: {source}")]
    Pipe {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A signal came.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn missing(program: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound if program.ends_with("ssh") => {
            " (Debian, Fedora: the package openssh-client or openssh-clients)"
        }
        _ => "",
    }
}

fn behind(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

fn refused(host: &str, refusal: &Refusal, may_ask: bool) -> String {
    match refusal {
        Refusal::Unreachable(said) => {
            format!(
                "{host} cannot be reached: {said}. Is it on, is its name right, and does an ssh server listen there? Try: ssh {host}"
            )
        }
        Refusal::NotLetIn(said) if may_ask => {
            format!("{host} does not let this user in: {said}. Try: ssh {host}")
        }
        Refusal::NotLetIn(said) => format!(
            "{host} does not let this user in: {said}. There is no terminal here on which ssh could ask for a password: run this on one, or give {host} a key of yours (ssh-copy-id {host})"
        ),
        Refusal::HostKey(said) => format!(
            "the key of {host} is not known here, or has changed ({said}). Connect once by hand and look at what ssh says: ssh {host}"
        ),
        Refusal::NoneInCommon { what, offers } => format!(
            "ssh and {host} have no {what} in common; {host} offers only {}. {}",
            offers.join(", "),
            UPGRADE
        ),
        Refusal::Configuration(said) => format!("ssh does not take its configuration: {said}"),
        Refusal::Other(said) if said.is_empty() => {
            format!("ssh to {host} ended without a word. Try: ssh -v {host}")
        }
        Refusal::Other(said) => format!("ssh to {host} did not come through: {said}. Try: ssh -v {host}"),
    }
}

const UPGRADE: &str = "Nothing was changed, and eke will not choose one of those: upgrade the ssh server there (OpenSSH 6.5 of 2014 or newer has AES-GCM, \
                       ChaCha20-Poly1305 and AES-CTR with encrypt-then-MAC), or take the lines that narrow `Ciphers` and `MACs` out of its sshd_config";

fn nothing_allowed(host: &str, software: Option<&str>, policy: Policy, offers: &[String]) -> String {
    let runs = software.map_or(String::new(), |s| format!(" runs {s} and"));
    format!(
        "{host}{runs} offers only {}, and the policy \"{policy}\" allows none of these. {UPGRADE}",
        offers.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_to_do() {
        let refused = |refusal, may_ask| Error::Refused { host: "h".into(), refusal, may_ask }.to_string();
        assert!(refused(Refusal::Unreachable("Connection refused".into()), false).contains("Is it on"));
        assert!(refused(Refusal::NotLetIn("Permission denied".into()), false).contains("ssh-copy-id h"));
        assert!(!refused(Refusal::NotLetIn("Permission denied".into()), true).contains("no terminal"));
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
    }
}
