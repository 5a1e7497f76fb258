//! What helps where a cipher does not: several connections, other tunnels, compression; and what encryption costs.

use super::{Advice, Topic, say};
use crate::decide::Limit;
use crate::measure::Link;
use crate::parse::facts::Facts;

/// What helps where one core is the limit.
pub(super) fn one_thread(link: &Link) -> Vec<Advice> {
    let end = match link.decision.limit {
        Limit::ThisThread => &link.met.here,
        Limit::ThatThread => &link.met.there,
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    if end.has_aes == Some(false) {
        let name = end.processor.as_deref().unwrap_or("the processor");
        found.push(say(
            Topic::Limit,
            format!("{name} has no AES instructions, so AES costs it more than ChaCha20 does"),
        ));
    }
    found.extend(several(link));
    if end.cpus > 1 {
        found.push(hpn(link));
        found.push(wireguard(link));
    }
    found
}

fn several(link: &Link) -> Option<Advice> {
    let sessions = link.sessions.as_ref()?;
    let one = link.measured.iter().find(|m| m.suite == sessions.suite)?.to_here.rate();
    let times = sessions.mb_per_s / one.max(1e-9);
    let text = format!(
        "{} connections at once carried {:.0} MB/s together, {times:.1} times one: a copy in several parts (one ssh each) is faster",
        sessions.count, sessions.mb_per_s
    );
    (times >= 1.2).then(|| say(Topic::Sessions, text))
}

/// Shown, never chosen.
pub(super) fn encryption(link: &Link) -> Option<Advice> {
    let bare = link.bare?;
    let share = 1.0 - link.decision.mb_per_s / bare.rate().max(1e-9);
    let text = format!(
        "without ssh the link carries {:.1} MB/s to here and {:.1} to there, {} streams together {:.1} and {:.1}; encryption costs {:.0} % of that. eke never \
         chooses to go without",
        bare.to_here,
        bare.to_there,
        bare.streams,
        bare.together_to_here,
        bare.together_to_there,
        100.0 * share.max(0.0)
    );
    Some(say(Topic::Encryption, text))
}

/// Decided by what a real session moved.
pub(super) fn compression(link: &Link) -> Option<Advice> {
    let x11 = link.x11.as_ref()?;
    let Some(found) = x11.compression else {
        let why = x11.why_not.as_deref().unwrap_or("it was not measured");
        return Some(say(
            Topic::Compression,
            format!("nothing is known of compression by `{}`: {why}", x11.command),
        ));
    };
    let what = format!(
        "`{}` moved {:.1} MB, compressed {:.2} of that; the slower end packs {:.0} MB/s, the link carries {:.0}",
        x11.command,
        x11.packed.raw_bytes as f64 / 1e6,
        found.factor,
        found.codec_mb_per_s,
        found.link_mb_per_s
    );
    let verdict = if found.is_worth {
        format!(
            "compression makes such a session {:.1} times as fast, and is in what is written",
            found.times
        )
    } else {
        format!("compression would make it {:.2} times as fast, which is not worth it", found.times)
    };
    Some(say(Topic::Compression, format!("{what}: {verdict}")))
}

fn has(facts: &Facts, tool: &str) -> bool {
    facts.tools.iter().any(|t| t == tool)
}

fn hpn(link: &Link) -> Advice {
    let met = &link.met;
    let there = met.software.as_deref().is_some_and(|s| s.to_ascii_lowercase().contains("hpn"))
        || has(&met.there, "hpnsshd");
    let state = match (has(&met.here, "hpnssh"), there) {
        (true, true) => "it is on both ends: hpnssh instead of ssh uses it",
        (true, false) => "it is here, and not there",
        (false, true) => "it is there, and not here",
        (false, false) => {
            "it is on neither end; it comes as packages of its own (hpnssh, hpnsshd on port 2222)"
        }
    };
    say(
        Topic::Hpn,
        format!("HPN-SSH encrypts AES-CTR and ChaCha20 in several threads; {state}. Not measured here"),
    )
}

fn wireguard(link: &Link) -> Advice {
    let met = &link.met;
    let missing: Vec<&str> = [(&met.here, "here"), (&met.there, "there")]
        .into_iter()
        .filter(|(facts, _)| !has(facts, "wg") && !facts.has_wireguard)
        .map(|(_, where_)| where_)
        .collect();
    let state = if missing.is_empty() {
        "both ends have it".to_owned()
    } else {
        format!("its tools (wireguard-tools) are missing {}", missing.join(" and "))
    };
    say(
        Topic::WireGuard,
        format!(
            "WireGuard encrypts on all cores, in the kernel (Linux 5.6); {state}. It needs root and a key on both ends, and what goes through it needs no ssh. Not measured here"
        ),
    )
}
