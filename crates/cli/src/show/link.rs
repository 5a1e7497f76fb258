//! Links as text. Pure.

use std::fmt::Write as _;

use eke_link::advice::Advice;
use eke_link::measure::Link;
use eke_link::parse::facts::Facts;
use eke_link::suite::short;
use eke_present::table::Table;

use crate::documents::link::{self as documents, Host};

const COLUMNS: usize = 100;

/// One host in detail, several as one table.
pub fn link(document: &documents::Link) -> String {
    let mut out = String::new();
    if let [host] = document.hosts.as_slice() {
        if let Some(link) = &host.link {
            out += &one(link, &host.advice);
        }
    } else {
        out += &several(&document.hosts);
    }
    for note in &document.notes {
        out += &sentence("note: ", note);
    }
    out
}

fn one(link: &Link, advice: &[Advice]) -> String {
    let met = &link.ends;
    let mut out = String::new();
    out += &sentence(
        "",
        &format!(
            "{}: {}, {}",
            link.host,
            met.software.as_deref().unwrap_or("an ssh server"),
            end(&met.there)
        ),
    );
    out += &sentence("here: ", &format!("{}, {}", short_client(&met.client), end(&met.here)));
    let strict = if met.is_strict { "strict key exchange on both ends" } else { "no strict key exchange" };
    let there_and_back = met.round_trip_us.map_or(String::new(), |us| format!("round trip {}, ", time(us)));
    out += &sentence("link: ", &format!("{there_and_back}{strict}, policy {}", met.policy));
    let _ = write!(out, "\n{}", table(link));
    out.push('\n');
    if let Some(s) = &link.sessions {
        out += &sentence(
            "",
            &format!("{} sessions at once carried {} together ({}).", s.count, rate(s.mb_per_s), s.suite),
        );
    }
    out += &chosen(link);
    out += &left_out(link);
    for line in advice {
        out += &sentence("  - ", &format!("{}.", line.text.trim_end_matches('.')));
    }
    let _ = writeln!(out, "\n{:.0} MB in {:.1} s.", link.bytes as f64 / 1e6, link.seconds);
    out
}

/// `OpenSSH_9.2p1 Debian-2` of `ssh -V`.
fn short_client(client: &str) -> &str {
    client.split(',').next().unwrap_or_default()
}

fn end(facts: &Facts) -> String {
    let aes = match facts.has_aes {
        Some(true) => " with AES instructions",
        Some(false) => " without AES instructions",
        None => "",
    };
    let cpus = match facts.cpus {
        0 => String::new(),
        1 => format!(", 1 CPU{aes}"),
        n => format!(", {n} CPUs{aes}"),
    };
    format!("{}{cpus}", facts.system)
}

fn table(link: &Link) -> Table {
    let header = ["  cipher", "to here", "to there", "CPU here", "CPU there", "echo", "limit"];
    let mut table = Table::new(&header).ending_in_words();
    for (m, limit) in link.measured.iter().zip(&link.decision.limits) {
        let mark = if m.suite == link.decision.chosen { "*" } else { " " };
        let (to_here, to_there) = (m.to_here.cpu_per_mb(), m.to_there.cpu_per_mb());
        table.row([
            format!("{mark} {}", m.suite),
            rate(m.to_here.rate()),
            rate(m.to_there.rate()),
            cost(to_here.0, to_there.0),
            cost(to_here.1, to_there.1),
            m.echo_us.map_or("-".to_owned(), time),
            limit.to_string(),
        ]);
    }
    table
}

/// CPU time per MB, the mean of both directions.
fn cost(to_here: Option<f64>, to_there: Option<f64>) -> String {
    to_here.zip(to_there).map_or("-".to_owned(), |(a, b)| format!("{} ms/MB", three(1e3 * (a + b) / 2.0)))
}

fn chosen(link: &Link) -> String {
    let decision = &link.decision;
    let mut out = sentence(
        "",
        &format!("Chosen: {}: {}. The limit is {}.", decision.chosen, decision.why, decision.limit),
    );
    let met = &link.ends;
    let whose = if met.configured.is_some() { "set in ssh's configuration" } else { "ssh's own order" };
    match &met.in_use {
        Some(used) if *used == decision.chosen => {
            out += &sentence("", &format!("It is in use already ({whose})."))
        }
        Some(used) => {
            let why =
                if met.policy.allows(used, met.is_strict) { "" } else { ", which the policy does not allow" };
            out += &sentence("", &format!("In use until now: {used} ({whose}){why}."));
        }
        None => {}
    }
    out
}

fn left_out(link: &Link) -> String {
    let mut out = String::new();
    if !link.left_out.is_empty() {
        let mut whys: Vec<&str> = link.left_out.iter().map(|l| l.why.as_str()).collect();
        whys.dedup();
        for why in whys {
            let names = link.left_out.iter().filter(|l| l.why == why).map(|l| l.suite.to_string());
            out += &sentence("", &format!("Not measured: {} ({why}).", names.collect::<Vec<_>>().join(", ")));
        }
    }
    if let Some(why) = &link.no_bare {
        out += &sentence("", &format!("Not measured: the link without ssh ({why})."));
    }
    let refused: Vec<&str> = link.ends.refused.iter().map(|r| short(&r.name)).collect();
    if !refused.is_empty() {
        out += &sentence(
            "",
            &format!("Both ends have these, and the policy does not allow them: {}.", refused.join(", ")),
        );
    }
    out
}

fn several(hosts: &[Host]) -> String {
    let header = ["host", "in use", "chosen", "both ways", "together", "limit"];
    let mut table = Table::new(&header).ending_in_words();
    for host in hosts {
        let Some(link) = &host.link else { continue };
        table.row([
            host.host.clone(),
            link.ends.in_use.as_ref().map_or("-".to_owned(), ToString::to_string),
            link.decision.chosen.to_string(),
            rate(link.decision.mb_per_s),
            link.sessions.as_ref().map_or("-".to_owned(), |s| format!("{} in {}", rate(s.mb_per_s), s.count)),
            link.decision.limit.to_string(),
        ]);
    }
    let mut out = table.to_string();
    for host in hosts {
        for line in &host.advice {
            out += &sentence("  - ", &format!("{}: {}.", host.host, line.text.trim_end_matches('.')));
        }
    }
    out
}

/// `61.2 MB/s`.
fn rate(mb_per_s: f64) -> String {
    format!("{} MB/s", three(mb_per_s))
}

/// `310 µs`, `12.5 ms`.
fn time(us: f64) -> String {
    if us < 1000.0 { format!("{us:.0} µs") } else { format!("{} ms", three(us / 1e3)) }
}

/// Three significant digits.
fn three(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn sentence(first: &str, text: &str) -> String {
    // the far end's text must not control the terminal
    let text = text.replace(|c: char| c.is_control(), " ");
    let rest = " ".repeat(first.chars().count());
    let options = textwrap::Options::new(COLUMNS).initial_indent(first).subsequent_indent(&rest);
    textwrap::fill(&text, options) + "\n"
}

#[cfg(test)]
mod tests {
    use eke_link::Suite;
    use eke_link::advice::Topic;
    use eke_link::decide::{Decision, Limit};
    use eke_link::measure::{Ends, LeftOut, Sessions};
    use eke_link::parse::sample::Used;
    use eke_link::policy::{Policy, Refused};
    use eke_link::throughput::{CipherMeasurement, Flow};

    use super::*;

    fn measured(
        cipher: &str,
        mac: Option<&str>,
        rate: f64,
        here: f64,
        there: Option<f64>,
    ) -> CipherMeasurement {
        let used = |cost: Option<f64>| Used { cpu_s: cost.map(|c| c * 10.0), ..Used::default() };
        let flow = |rate: f64| Flow {
            mb_per_s: vec![rate],
            bytes: 10_000_000,
            seconds: 10.0 / rate,
            here: used(Some(here)),
            there: used(there),
            ..Flow::default()
        };
        CipherMeasurement {
            suite: Suite::new(cipher, mac),
            to_here: flow(rate),
            to_there: flow(rate * 0.98),
            echo_us: Some(412.0),
        }
    }

    fn thin_client() -> Host {
        let chacha = Suite::new("chacha20-poly1305@openssh.com", None);
        let machine =
            |system: &str, cpus, aes| Facts { system: system.into(), cpus, has_aes: aes, ..Facts::default() };
        let ends = Ends {
            policy: Policy::Modern,
            client: "OpenSSH_9.2p1 Debian-2+deb12u6, OpenSSL 3.0.19 27 Jan 2026".into(),
            software: Some("OpenSSH_9.9 \u{1b}[31m".into()),
            is_strict: true,
            ciphers: vec![],
            macs: vec![],
            offered: vec![],
            refused: vec![Refused { name: "aes128-cbc".into(), why: "CBC" }],
            in_use: Some(Suite::new("aes128-ctr", Some("umac-64-etm@openssh.com"))),
            configured: None,
            was_interactive: false,
            has_proxy: false,
            address: None,
            excluded: vec![],
            here: machine("Linux 6.1.0 x86_64", 8, Some(true)),
            there: machine("Linux 5.10.0 x86_64", 2, Some(false)),
            round_trip_us: Some(380.0),
        };
        let link = Link {
            host: "pc01".into(),
            ends,
            measured: vec![
                measured("aes128-gcm@openssh.com", None, 29.3, 0.002, Some(0.0331)),
                measured("chacha20-poly1305@openssh.com", None, 61.24, 0.003, Some(0.0158)),
                measured("aes128-ctr", Some("umac-128-etm@openssh.com"), 31.0, 0.003, None),
            ],
            left_out: vec![LeftOut {
                suite: Suite::new("aes256-ctr", Some("umac-128-etm@openssh.com")),
                why: "it does more work".into(),
            }],
            bare: None,
            no_bare: Some("eke is not installed on the far end".into()),
            x11: None,
            sessions: Some(Sessions {
                count: 4,
                suite: chacha.clone(),
                mb_per_s: 109.0,
                bytes: 0,
                there_busy: None,
            }),
            decision: Decision {
                chosen: chacha,
                mb_per_s: 60.6,
                why: "98 % faster than the next, aes128-ctr + umac-128-etm".into(),
                limit: Limit::ThatThread,
                limits: vec![Limit::ThatThread; 3],
                ciphers: vec![],
                macs: vec![],
            },
            bytes: 98_000_000,
            seconds: 9.4,
        };
        let advice = vec![Advice { topic: Topic::Hpn, text: "HPN-SSH encrypts in several threads".into() }];
        Host { host: "pc01".into(), link: Some(Box::new(link)), advice, error: None }
    }

    #[test]
    fn a_thin_client_reads_well() {
        let document = documents::Link { hosts: vec![thin_client()], ..documents::Link::default() };
        insta::assert_snapshot!(link(&document));
    }

    #[test]
    fn several_are_one_table() {
        let failed = Host { host: "pc03".into(), link: None, advice: vec![], error: Some("down".into()) };
        let hosts = vec![thin_client(), Host { host: "pc02".into(), ..thin_client() }, failed];
        insta::assert_snapshot!(link(&documents::Link {
            hosts,
            notes: vec!["run `ltsp initrd`".into()],
            ..documents::Link::default()
        }));
    }
}
