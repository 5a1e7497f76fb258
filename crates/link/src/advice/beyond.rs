//! Help beyond the cipher: several connections, other tunnels, compression; and the cost of encryption.

use super::{Advice, Topic, advise};
use crate::decide::Limit;
use crate::measure::Link;
use crate::parse::facts::Facts;

/// Advice if one core is the limit.
pub(super) fn one_thread(link: &Link) -> Vec<Advice> {
    let end = match link.decision.limit {
        Limit::ThisThread => &link.ends.here,
        Limit::ThatThread => &link.ends.there,
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    if end.has_aes == Some(false) {
        let name = end.processor.as_deref().unwrap_or("the processor");
        found.push(advise(
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
    (times >= 1.2).then(|| advise(Topic::Sessions, text))
}

/// The cost of encryption. eke shows it and never turns encryption off.
pub(super) fn encryption(link: &Link) -> Option<Advice> {
    let bare = link.bare?;
    let share = 1.0 - link.decision.mb_per_s / bare.rate().max(1e-9);
    let text = format!(
        "without ssh the link carries {:.1} MB/s to here and {:.1} to there, {} streams together {:.1} and {:.1}; encryption costs {:.0} % of that. eke never \
         turns it off",
        bare.to_here,
        bare.to_there,
        bare.streams,
        bare.together_to_here,
        bare.together_to_there,
        100.0 * share.max(0.0)
    );
    Some(advise(Topic::Encryption, text))
}

/// Compression, decided by a real session.
pub(super) fn compression(link: &Link) -> Option<Advice> {
    let x11 = link.x11.as_ref()?;
    let Some(found) = x11.compression else {
        let why = x11.why_not.as_deref().unwrap_or("it was not measured");
        return Some(advise(
            Topic::Compression,
            format!("compression could not be decided by `{}`: {why}", x11.command),
        ));
    };
    let what = format!(
        "`{}` moved {:.1} MB, compressed {:.2} of that; the slower end compresses {:.0} MB/s, the link carries {:.0}",
        x11.command,
        x11.compressed.raw_bytes as f64 / 1e6,
        found.factor,
        found.codec_mb_per_s,
        found.link_mb_per_s
    );
    let verdict = if found.is_advised {
        format!(
            "compression makes such a session {:.1} times as fast, so the written configuration has it",
            found.times
        )
    } else {
        format!("compression would make it {:.2} times as fast, which is too little", found.times)
    };
    Some(advise(Topic::Compression, format!("{what}: {verdict}")))
}

fn has(facts: &Facts, tool: &str) -> bool {
    facts.tools.iter().any(|t| t == tool)
}

fn hpn(link: &Link) -> Advice {
    let ends = &link.ends;
    let there = ends.software.as_deref().is_some_and(|s| s.to_ascii_lowercase().contains("hpn"))
        || has(&ends.there, "hpnsshd");
    let state = match (has(&ends.here, "hpnssh"), there) {
        (true, true) => "it is on both ends: use hpnssh instead of ssh",
        (true, false) => "it is on this end only",
        (false, true) => "it is on the far end only",
        (false, false) => {
            "it is on neither end; it comes as packages of its own (hpnssh, hpnsshd on port 2222)"
        }
    };
    advise(
        Topic::Hpn,
        format!("HPN-SSH encrypts AES-CTR and ChaCha20 in several threads; {state}. Not measured here"),
    )
}

fn wireguard(link: &Link) -> Advice {
    let ends = &link.ends;
    let missing: Vec<&str> = [(&ends.here, "here"), (&ends.there, "there")]
        .into_iter()
        .filter(|(facts, _)| !has(facts, "wg") && !facts.has_wireguard)
        .map(|(_, where_)| where_)
        .collect();
    let state = if missing.is_empty() {
        "both ends have it".to_owned()
    } else {
        format!("its tools (wireguard-tools) are missing {}", missing.join(" and "))
    };
    advise(
        Topic::WireGuard,
        format!(
            "WireGuard encrypts on all cores, in the kernel (Linux 5.6); {state}. It needs root and a key on both ends, and its traffic needs no ssh. Not measured here"
        ),
    )
}
