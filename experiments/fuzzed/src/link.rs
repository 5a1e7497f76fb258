//! Output of ssh and of the far end, and configuration files for both.

use eke_link::parse::{config, facts, handshake, refusal, sample, ssh_config as config_file, traffic};
use eke_link::policy::{Offers, Policy};
use eke_link::write::{Setting, diff, host_block, ltsp_section};
use eke_ltsp_conf as ltsp_conf;

use crate::input::{Input, text};

/// `ssh -vv`, `-G`, `-Q`, and the output of `ends.sh` on the far end.
pub fn ssh_output(data: &[u8]) {
    let text = text(data);
    let found = handshake::handshake(&text);
    let offers = Offers {
        ciphers: found.server.ciphers.clone(),
        macs: found.server.macs.clone(),
        is_strict: found.is_strict(),
    };
    for policy in [Policy::Modern, Policy::Fips] {
        for suite in policy.allowed(&offers) {
            assert!(policy.allows(&suite, offers.is_strict), "{suite:?} is not allowed");
        }
        let _ = (policy.refused(&offers), found.was_interactive());
    }
    let _ = (refusal::refusal(&text), config::config(&text), config::supported(&text));
    let facts = facts::facts(&text);
    let _ = facts
        .connection
        .map(|(one, other)| (facts.interface(one).is_some(), facts.interface(other).is_some()));
    let _ = traffic::traffic(&text);
    let mut samples = text.split("--\n").map(sample::sample);
    if let (Some(before), Some(after)) = (samples.next(), samples.next()) {
        let mut spent = after.since(&before);
        spent += before.since(&after);
        let _ = spent.used();
    }
}

fn with_setting<T>(which: u8, act: impl FnOnce(&Setting<'_>) -> T) -> T {
    let ciphers = ["chacha20-poly1305@openssh.com".to_owned(), "aes128-ctr".to_owned()];
    let macs = ["umac-128-etm@openssh.com".to_owned()];
    let compression = [None, Some(true), Some(false)][usize::from(which % 3)];
    let macs = if which & 4 == 0 { &macs[..] } else { &[] };
    act(&Setting { ciphers: &ciphers, macs, compression, about: "fast\nenough" })
}

/// `ssh_config`: parses it, and writes a host's block into it.
pub fn ssh_config(data: &[u8]) {
    let mut input = Input(data);
    let which = input.u8();
    let host = input.u8();
    let host = text(input.bytes(usize::from(host))).replace(char::is_control, "");
    let before = text(input.0);
    let _ = (config_file::blocks(&before), config_file::includes_drop_ins(&before));
    let _ = config_file::ciphers_set(&before, &host);
    let Ok(after) = with_setting(which, |s| host_block::with_block(&before, &host, s)) else { return };
    let again = with_setting(which, |s| host_block::with_block(&after, &host, s));
    assert_eq!(again.as_ref(), Ok(&after), "twice is not once");
    let block = with_setting(which, |s| host_block::block(&host, s));
    let (head, tail) = after.split_once(&block).expect("the block is there");
    assert!(
        before.starts_with(head.trim_end_matches('\n')) && before.ends_with(tail),
        "others' lines have changed"
    );
    let _ = diff::diff("f", &before, &after);
}

const MAC: &str = "52:54:00:aa:bb:cc";

/// `ltsp.conf`: parses it, and writes options into a client's section.
pub fn ltsp(data: &[u8]) {
    let mut input = Input(data);
    let which = input.u8();
    let before = text(input.0);
    let Ok(entries) = ltsp_conf::entries(&before) else { return };
    assert_eq!(entries.iter().map(|e| e.text.as_str()).collect::<String>(), before);
    let Ok(after) = with_setting(which, |s| ltsp_section::with_options(&before, MAC, s)) else { return };
    let _ = ltsp_section::overruled(&after, MAC, Some("192.168.67.21".to_owned()));
    let again = with_setting(which, |s| ltsp_section::with_options(&after, MAC, s));
    assert_eq!(again.as_ref(), Ok(&after), "twice is not once");
    let written = ltsp_conf::entries(&after).expect("written text is parsed");
    let is_ours = |e: &&ltsp_conf::Entry| {
        let is_options =
            matches!(&e.kind, ltsp_conf::EntryKind::Assignment { name, .. } if name == "SSH_OPTIONS");
        is_options || e.text.starts_with("# eke link: ")
    };
    let mut left = written.iter();
    for entry in entries.iter().filter(|e| !is_ours(e)) {
        let is_there = left.any(|e| e.kind == entry.kind && e.text.trim_end() == entry.text.trim_end());
        assert!(is_there, "{entry:?} is missing");
    }
}
