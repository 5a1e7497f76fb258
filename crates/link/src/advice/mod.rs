//! Advice: what else would help, and faults of the link. Pure: facts in, sentences out.
//!
//! - this module: cards, cables and old software; `beyond`: help beyond the cipher

mod beyond;

use serde::Serialize;

use crate::decide::Limit;
use crate::measure::Link;
use crate::parse::facts::Interface;

/// The topic of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Topic {
    /// A card, a port or a cable.
    Card,
    /// Several connections at once.
    Sessions,
    /// Another ssh.
    Hpn,
    /// Another tunnel.
    WireGuard,
    /// A cipher that needs newer software on one end.
    Upgrade,
    /// The cost of encryption.
    Encryption,
    /// Compression, decided by a session.
    Compression,
    /// The reason of the limit.
    Limit,
}

/// One sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// Its topic.
    pub topic: Topic,
    /// For people.
    pub text: String,
}

/// A card is faulty with more than one damaged packet in so many,
const ONE_ERROR_IN: u64 = 100_000;
/// and more than so many.
const MOST_ERRORS: u64 = 10;
/// The most that arrives of a card's rate: Ethernet, IP and TCP headers take the rest (1448 of 1538 bytes, with timestamps).
const PAYLOAD: f64 = 0.94;
/// A link below this share of its card's rate has a fault.
const FAR_BELOW: f64 = 0.75;

/// All advice, the most urgent first.
pub fn advice(link: &Link) -> Vec<Advice> {
    let mut found = cards(link);
    found.extend(upgrade(link));
    found.extend(beyond::one_thread(link));
    found.extend(beyond::encryption(link));
    found.extend(beyond::compression(link));
    found
}

fn advise(topic: Topic, text: String) -> Advice {
    Advice { topic, text }
}

/// The card of each end, if addresses show it.
fn ends(link: &Link) -> [Option<&Interface>; 2] {
    let Some((here, there)) = link.ends.there.connection else { return [None, None] };
    [link.ends.here.interface(here), link.ends.there.interface(there)]
}

fn cards(link: &Link) -> Vec<Advice> {
    let ends = ends(link);
    let whose = ["this machine".to_owned(), link.host.clone()];
    let mut found: Vec<Advice> = ends
        .iter()
        .zip(&whose)
        .flat_map(|(card, whose)| card.map(|c| of_card(c, whose)).unwrap_or_default())
        .collect();
    let speeds: Vec<Option<u32>> = ends.iter().map(|c| c.and_then(|c| c.speed_mbit)).collect();
    if let [Some(here), Some(there)] = speeds[..] {
        if here != there {
            let (slow, fast) = (here.min(there), here.max(there));
            let (owner, card) = if here < there { (&whose[0], ends[0]) } else { (&whose[1], ends[1]) };
            let name = card.map_or("", |c| c.name.as_str());
            found.push(advise(
                Topic::Card,
                format!(
                    "{name} of {owner} runs at {slow} Mb/s, the other end at {fast}: check the card, the port of the switch and the cable (1000 Mb/s needs all four pairs)"
                ),
            ));
        }
    }
    found.extend(below_rate(link, &speeds));
    found
}

fn of_card(card: &Interface, whose: &str) -> Vec<Advice> {
    let mut found = Vec::new();
    if card.is_full_duplex == Some(false) {
        let text = format!(
            "{} of {whose} is half duplex: probably only one end has a fixed rate; let both negotiate",
            card.name
        );
        found.push(advise(Topic::Card, text));
    }
    if card.errors > MOST_ERRORS && card.errors > card.packets / ONE_ERROR_IN {
        let text = format!(
            "{} of {whose} had {} errors or collisions in {} packets since it started: the cable, the port or a duplex mismatch",
            card.name, card.errors, card.packets
        );
        found.push(advise(Topic::Card, text));
    }
    found
}

fn below_rate(link: &Link, speeds: &[Option<u32>]) -> Option<Advice> {
    let slowest = speeds.iter().flatten().min()?;
    let could = f64::from(*slowest) / 8.0 * PAYLOAD;
    let did = best_rate(link);
    let is_below = link.decision.limit == Limit::Link && did < could * FAR_BELOW;
    is_below.then(|| {
        advise(
            Topic::Card,
            format!(
                "the link carries {did:.1} MB/s of the {could:.0} that {slowest} Mb/s allow, and no CPU is the limit: there is a slower port, cable or radio between, or other traffic"
            ),
        )
    })
}

/// The highest rate, of one session or of several.
fn best_rate(link: &Link) -> f64 {
    let one = link.measured.iter().map(|m| m.to_here.rate().max(m.to_there.rate())).fold(0.0, f64::max);
    let several = link.sessions.as_ref().map_or(one, |s| one.max(s.mb_per_s));
    link.bare.map_or(several, |b| several.max(b.most()))
}

/// A cipher that a newer ssh would allow.
fn upgrade(link: &Link) -> Option<Advice> {
    let terrapin = link.ends.refused.iter().find(|r| r.why.contains("Terrapin"))?;
    Some(advise(
        Topic::Upgrade,
        format!(
            "{} is left out: {} (here {}, there {})",
            terrapin.name,
            terrapin.why,
            link.ends.client.split(',').next().unwrap_or_default(),
            link.ends.software.as_deref().unwrap_or("unknown")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Decision;
    use crate::measure::{Ends, Sessions};
    use crate::parse::facts::Facts;
    use crate::policy::Policy;
    use crate::suite::Suite;
    use crate::throughput::{CipherMeasurement, Flow};

    fn card(speed: u32) -> Interface {
        Interface {
            name: "eth0".into(),
            speed_mbit: Some(speed),
            is_full_duplex: Some(true),
            packets: 10_000_000,
            ..Interface::default()
        }
    }

    fn link(limit: Limit, rate: f64, cards: [Interface; 2]) -> Link {
        let [mut here, mut there] = cards;
        here.addresses = vec!["10.0.0.1".parse().unwrap()];
        there.addresses = vec!["10.0.0.2".parse().unwrap()];
        let suite = Suite::new("aes128-gcm@openssh.com", None);
        let flow = Flow { mb_per_s: vec![rate], bytes: 1, seconds: 1.0, ..Flow::default() };
        let end = |card| Facts { cpus: 2, interfaces: vec![card], ..Facts::default() };
        let ends = Ends {
            policy: Policy::Modern,
            client: "OpenSSH_9.2p1, OpenSSL 3".into(),
            software: Some("OpenSSH_8.0".into()),
            is_strict: false,
            ciphers: vec![],
            macs: vec![],
            offered: vec![],
            refused: vec![],
            in_use: None,
            configured: None,
            was_interactive: false,
            has_proxy: false,
            address: None,
            excluded: vec![],
            here: end(here),
            there: Facts {
                connection: Some(("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap())),
                ..end(there)
            },
            round_trip_us: None,
        };
        Link {
            host: "far".into(),
            ends,
            measured: vec![CipherMeasurement {
                suite: suite.clone(),
                to_here: flow.clone(),
                to_there: flow,
                echo_us: None,
            }],
            left_out: vec![],
            bare: None,
            no_bare: None,
            sessions: None,
            x11: None,
            decision: Decision {
                chosen: suite,
                mb_per_s: rate,
                why: String::new(),
                limit,
                limits: vec![limit],
                ciphers: vec![],
                macs: vec![],
            },
            bytes: 0,
            seconds: 1.0,
        }
    }

    fn text_of(link: &Link) -> String {
        advice(link).iter().map(|a| a.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_link_at_its_rate_is_fine() {
        assert_eq!(text_of(&link(Limit::Link, 111.0, [card(1000), card(1000)])), "");
    }

    #[test]
    fn a_card_below_the_network_is_named() {
        let text = text_of(&link(Limit::Link, 11.5, [card(1000), card(100)]));
        assert!(text.starts_with("eth0 of far runs at 100 Mb/s, the other end at 1000"), "{text}");
        assert!(!text.contains(" Mb/s allow"), "it carries all that 100 Mb/s allow: {text}");
        let text = text_of(&link(Limit::Link, 11.5, [card(1000), card(1000)]));
        assert!(text.contains("carries 11.5 MB/s of the 118"), "{text}");
    }

    #[test]
    fn half_duplex_and_errors_are_named() {
        let bad = Interface { is_full_duplex: Some(false), errors: 5000, ..card(100) };
        let text = text_of(&link(Limit::Link, 11.5, [bad, card(100)]));
        assert!(
            text.contains("eth0 of this machine is half duplex") && text.contains("5000 errors"),
            "{text}"
        );
    }

    #[test]
    fn the_cost_of_encryption_is_shown_and_compression_is_decided_by_a_session() {
        use crate::compress::{Compression, Session};
        use crate::measure::{Bare, X11};
        let mut link = link(Limit::ThisThread, 60.0, [card(1000), card(1000)]);
        link.bare = Some(Bare { to_here: 118.0, to_there: 122.0, streams: 4, ..Bare::default() });
        assert!(text_of(&link).contains("encryption costs 50 % of that"), "{}", text_of(&link));
        let found = Compression {
            factor: 0.2,
            codec_mb_per_s: 40.0,
            link_mb_per_s: 11.0,
            times: 3.6,
            is_advised: true,
        };
        let x11 = |compression, why: Option<&str>| X11 {
            command: "xterm".into(),
            plain: Session::default(),
            compressed: Session { raw_bytes: 20_000_000, ..Session::default() },
            compression,
            why_not: why.map(str::to_owned),
        };
        link.x11 = Some(x11(Some(found), None));
        assert!(
            text_of(&link).contains("20.0 MB, compressed 0.20 of that")
                && text_of(&link).contains("3.6 times")
        );
        link.x11 = Some(x11(Some(Compression { times: 0.8, is_advised: false, ..found }), None));
        assert!(text_of(&link).contains("0.80 times as fast, which is too little"));
        link.x11 = Some(x11(None, Some("it ended with 127")));
        assert!(text_of(&link).ends_with("by `xterm`: it ended with 127"), "{}", text_of(&link));
    }

    #[test]
    fn one_thread_has_ways_out() {
        let mut link = link(Limit::ThatThread, 50.0, [card(1000), card(1000)]);
        link.ends.there.has_aes = Some(false);
        link.ends.there.tools = vec!["hpnsshd".into(), "wg".into()];
        let suite = link.decision.chosen.clone();
        link.sessions = Some(Sessions { count: 4, suite, mb_per_s: 95.0, bytes: 0, there_busy: None });
        let topics: Vec<Topic> = advice(&link).iter().map(|a| a.topic).collect();
        assert_eq!(topics, [Topic::Limit, Topic::Sessions, Topic::Hpn, Topic::WireGuard]);
        let text = text_of(&link);
        assert!(
            text.contains("1.9 times one")
                && text.contains("it is on the far end only")
                && text.contains("missing here."),
            "{text}"
        );
    }
}
