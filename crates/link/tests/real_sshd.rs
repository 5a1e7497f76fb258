//! A link to a real ssh server on this machine: its own port, keys and configuration.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use eke_link::measure::{self, MeasureOptions, OwnBlock, Ssh};
use eke_link::parse::refusal::Refusal;
use eke_link::policy::Policy;
use eke_link::{Error, Suite};
use eke_testkit::real::{lock_machine, skip};
use eke_testkit::sshd::{HOST, Server, lacks};
use eke_testkit::tree::put;

static ON: AtomicBool = AtomicBool::new(false);

fn ssh(server: &Server) -> Ssh {
    Ssh { config: Some(server.config()), ..Ssh::default() }
}

fn run(ssh: &Ssh, options: &MeasureOptions) -> Result<measure::Link, Error> {
    measure::run(ssh, options, &ON, &|_| {})
}

#[test]
fn a_link_is_measured_and_a_cipher_is_chosen() {
    let name = "a_link_is_measured";
    if let Some(why) = lacks() {
        return skip(name, &why);
    }
    let _machine = lock_machine();
    let server = Server::start("");
    let options = MeasureOptions { sessions: Some(3), ..MeasureOptions::new(HOST) };
    let link = run(&ssh(&server), &options).unwrap();
    assert!(link.ends.is_strict && link.ends.ciphers.contains(&"aes128-gcm@openssh.com".to_owned()));
    assert!(link.ends.software.as_deref().unwrap().starts_with("OpenSSH"));
    assert!(link.measured.len() >= 3, "{:?}", link.left_out);
    for m in &link.measured {
        assert!(link.ends.policy.allows(&m.suite, true), "{}", m.suite);
        assert!(m.rate() > 0.0 && m.cpu_per_mb().unwrap() > 0.0 && m.echo_us.unwrap() > 0.0, "{m:?}");
    }
    assert!(link.measured.iter().any(|m| m.suite == link.decision.chosen));
    assert_eq!(link.decision.ciphers[0], link.decision.chosen.cipher);
    assert!(link.bytes <= options.budget.bytes, "{} bytes", link.bytes);
    let sessions = link.sessions.unwrap();
    assert!(sessions.count == 3 && sessions.mb_per_s > 0.0);
    let cards = link.ends.there.connection.map(|(_, own)| link.ends.there.interface(own).is_some());
    assert_eq!(cards, Some(true), "the loop device has the address");
    eprintln!(
        "{:.1} s, {} MB: {} {:?}",
        link.seconds,
        link.bytes / 1_000_000,
        link.decision.chosen,
        link.decision.limit
    );
}

#[test]
fn the_configured_cipher_is_found_and_only_an_allowed_one_is_chosen() {
    if let Some(why) = lacks() {
        return skip("the_configured_cipher_is_found_and_only_an_allowed_one_is_chosen", &why);
    }
    let _machine = lock_machine();
    let server = Server::start("Ciphers aes128-cbc,aes256-gcm@openssh.com\nMACs hmac-sha1");
    server.set("Ciphers aes128-cbc,aes256-gcm@openssh.com");
    let options = MeasureOptions { sessions: Some(1), policy: Policy::Fips, ..MeasureOptions::new(HOST) };
    let link = run(&ssh(&server), &options).unwrap();
    assert_eq!(link.ends.configured, Some(Suite::new("aes128-cbc", Some("hmac-sha1"))));
    assert_eq!(link.decision.chosen, Suite::new("aes256-gcm@openssh.com", None));
    assert!(link.ends.refused.iter().any(|r| r.name == "aes128-cbc"));
    assert!(link.sessions.is_none() && link.decision.macs.is_empty());
}

/// The names of the ciphers that were measured, and of those that the configuration excludes.
fn measured_and_excluded(link: &measure::Link) -> [Vec<String>; 2] {
    let measured = link.measured.iter().map(|m| m.suite.cipher.clone()).collect();
    let excluded = link.left_out.iter().filter(|l| l.why.contains("configuration on this machine"));
    [measured, excluded.map(|l| l.suite.cipher.clone()).collect()]
}

#[test]
fn a_cipher_that_the_configuration_excludes_stays_excluded() {
    if let Some(why) = lacks() {
        return skip("a_cipher_that_the_configuration_excludes_stays_excluded", &why);
    }
    let _machine = lock_machine();
    let (strong, weaker) = ("aes256-gcm@openssh.com", "aes128-gcm@openssh.com");
    let server = Server::start("");
    server.set(&format!("Ciphers {strong}"));
    let options = MeasureOptions { sessions: Some(1), ..MeasureOptions::new(HOST) };
    let link = run(&ssh(&server), &options).unwrap();
    let [measured, excluded] = measured_and_excluded(&link);
    assert_eq!(measured, [strong]);
    assert!(excluded.contains(&weaker.to_owned()), "{excluded:?}");
    assert_eq!((link.decision.ciphers, link.decision.macs), (vec![strong.to_owned()], vec![]));
    // a list that eke wrote is no limit, and what stands behind it is
    let own = OwnBlock {
        ciphers: vec![strong.into()],
        macs: Vec::new(),
        rest: format!("Match final all\n  Ciphers {weaker}\n"),
    };
    let again = run(&ssh(&server), &MeasureOptions { own: Some(own), ..options.clone() }).unwrap();
    assert_eq!(measured_and_excluded(&again)[0], [weaker]);
}

/// As after `update-crypto-policies`, whose file ssh reads after eke's.
#[test]
fn what_a_block_allows_beyond_a_new_policy_is_found() {
    if let Some(why) = eke_testkit::real::no_program(&["ssh"]) {
        return skip("what_a_block_allows_beyond_a_new_policy_is_found", &why);
    }
    let dir = tempfile::tempdir().unwrap();
    let ciphers = "aes128-gcm@openssh.com,aes256-gcm@openssh.com";
    put(dir.path(), "config", &format!("Host web1\n  Ciphers {ciphers}\n  MACs hmac-sha2-256\n"));
    let ssh = Ssh { config: Some(dir.path().join("config")), ..Ssh::default() };
    let own = |rest: &str| OwnBlock {
        ciphers: ciphers.split(',').map(str::to_owned).collect(),
        macs: vec!["hmac-sha2-256".to_owned()],
        rest: rest.to_owned(),
    };
    let found = |host: &str, rest: &str| measure::outlived(&ssh, host, &own(rest)).unwrap();
    assert_eq!(found("web1", ""), [""; 0]);
    let stricter = "Match all\n  Ciphers aes256-gcm@openssh.com\n  MACs hmac-sha2-512\n";
    assert_eq!(found("web1", stricter), ["aes128-gcm@openssh.com", "hmac-sha2-256"]);
    assert_eq!(found("web2", stricter), [""; 0], "another file's list is in force");
    put(dir.path(), "config", "Host web1\n  Ciphers unknown\n");
    let rejected = measure::outlived(&ssh, "web2", &own("")).unwrap_err();
    assert!(matches!(rejected, Error::Refused { refusal: Refusal::Configuration(_), .. }), "{rejected}");
}

#[test]
fn the_error_for_a_configuration_that_excludes_all_secure_ciphers_names_them() {
    if let Some(why) = lacks() {
        return skip("the_error_for_a_configuration_that_excludes_all_secure_ciphers_names_them", &why);
    }
    let _machine = lock_machine();
    let server = Server::start("Ciphers aes128-cbc,aes256-gcm@openssh.com");
    server.set("Ciphers aes128-cbc");
    let error = run(&ssh(&server), &MeasureOptions::new(HOST)).unwrap_err();
    assert!(matches!(error, Error::Excluded { .. }) && error.to_string().contains("aes256-gcm"), "{error}");
}

#[test]
fn the_error_for_a_host_with_old_ciphers_alone_is_to_upgrade() {
    if let Some(why) = lacks() {
        return skip("the_error_for_a_host_with_old_ciphers_alone_is_to_upgrade", &why);
    }
    let _machine = lock_machine();
    let server = Server::start("Ciphers aes128-cbc");
    let error = run(&ssh(&server), &MeasureOptions::new(HOST)).unwrap_err();
    let old = |e: &Error| matches!(e, Error::Refused { refusal: Refusal::NoneInCommon { offers, .. }, .. } if offers == &["aes128-cbc"]);
    assert!(old(&error), "{error}");
    // ssh itself can be configured to accept it; eke does not
    server.set("Ciphers +aes128-cbc");
    let error = run(&ssh(&server), &MeasureOptions::new(HOST)).unwrap_err();
    assert!(
        matches!(error, Error::NothingAllowed { .. }) && error.to_string().contains("upgrade"),
        "{error}"
    );
}

#[test]
fn each_refusal_has_its_remedy() {
    if let Some(why) = lacks() {
        return skip("each_refusal_has_its_remedy", &why);
    }
    let _machine = lock_machine();
    let mut server = Server::start("");
    put(server.dir(), "user.pub", "");
    let error = run(&ssh(&server), &MeasureOptions::new(HOST)).unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NotAuthenticated(_), .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("password")
            && message.contains("--preserve-env=SSH_AUTH_SOCK")
            && message.contains("ssh-copy-id"),
        "{message}"
    );
    put(server.dir(), "known", "");
    let error = run(&ssh(&server), &MeasureOptions::new(HOST)).unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::HostKey(_), .. }), "{error}");
    server.end();
    let error = run(&ssh(&server), &MeasureOptions::new(HOST)).unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::Unreachable(_), .. }), "{error}");
    assert!(matches!(run(&ssh(&server), &MeasureOptions::new("-oProxyCommand=x")), Err(Error::Host(_))));
    let broken = Ssh { config: Some("/nowhere".into()), ..Ssh::default() };
    assert!(matches!(
        run(&broken, &MeasureOptions::new(HOST)),
        Err(Error::Refused { refusal: Refusal::Configuration(_), .. })
    ));
    let none = Ssh { words: vec!["/nowhere/ssh".into()], ..Ssh::default() };
    assert!(matches!(run(&none, &MeasureOptions::new(HOST)), Err(Error::Start { .. })));
}

/// A false client would be told the password, since nobody can know its key.
#[test]
fn by_the_documented_lines_ssh_asks_for_no_password_of_an_ltsp_client() {
    if let Some(why) = eke_testkit::real::no_program(&["ssh"]) {
        return skip("by_the_documented_lines_ssh_asks_for_no_password_of_an_ltsp_client", &why);
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/link.md");
    let page = std::fs::read_to_string(page).unwrap();
    let from_head = page.lines().skip_while(|line| *line != "    Host 192.168.67.*");
    let lines: Vec<&str> = from_head.take_while(|line| line.starts_with("    ")).collect();
    let set = Ssh::default().ask_configured(&lines.join("\n"), "192.168.67.21").unwrap();
    for line in ["user root", "stricthostkeychecking false", "preferredauthentications publickey"] {
        assert!(set.lines().any(|l| l == line), "{line} lacks in\n{set}");
    }
}

/// Processes of ssh whose command line has this directory.
fn left(dir: &Path) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| {
        let line = std::fs::read(e.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(dir.to_str()?) && line.starts_with("ssh ")).then_some(line)
    });
    lines.collect()
}

#[test]
fn a_stalled_link_and_a_signal_end_it_and_leave_no_ssh() {
    if let Some(why) = lacks() {
        return skip("a_stalled_link", &why);
    }
    let _machine = lock_machine();
    let server = Server::start("");
    let stop = AtomicBool::new(false);
    let report = |line: &str| {
        if line.starts_with("sending") {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let error = measure::run(&ssh(&server), &MeasureOptions::new(HOST), &stop, &report).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert_eq!(left(server.dir()), Vec::<String>::new());
    let frozen = std::sync::Mutex::new(Vec::new());
    let report = |line: &str| {
        if line.starts_with("sending") {
            frozen.lock().unwrap().extend(stop_children(server.pid()));
        }
    };
    let error = measure::run(&ssh(&server), &MeasureOptions::new(HOST), &ON, &report).unwrap_err();
    for pid in frozen.lock().unwrap().iter() {
        signal(*pid, "KILL");
    }
    assert!(matches!(error, Error::Stalled { .. }), "{error}");
    assert_eq!(left(server.dir()), Vec::<String>::new());
}

/// Stops the server's sessions: for the other end the link is dead.
fn stop_children(server: u32) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        text.split_whitespace().filter_map(|p| p.parse().ok()).collect()
    };
    let first = children(server);
    let all: Vec<u32> = first.iter().copied().chain(first.iter().flat_map(|p| children(*p))).collect();
    all.iter().for_each(|pid| signal(*pid, "STOP"));
    all
}

fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status();
}
