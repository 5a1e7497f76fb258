//! The cipher, and its bottleneck. Pure.
//!
//! A session is as fast as the slowest of the link, the CPU that encrypts and the CPU that decrypts: bound = min(link, encrypt, decrypt).
//! A measurement through ssh is that minimum already. Which of the three it is shows in the CPU use of ssh and sshd, and in whether another
//! cipher, or several sessions, moved more.

use serde::Serialize;

use crate::evidence::Evidence;
pub use crate::limit::Limit;
use crate::limit::limit;
use crate::suite::Suite;
use crate::throughput::{CipherMeasurement, overlap};

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// The cipher, and its MAC.
    pub chosen: Suite,
    /// MB/s, with equal amounts in both directions.
    pub mb_per_s: f64,
    /// The reason of the choice.
    pub why: String,
    /// The bottleneck.
    pub limit: Limit,
    /// The bottleneck of each measured cipher, in the order of measuring.
    pub limits: Vec<Limit>,
    /// Ciphers for ssh's configuration: the chosen one, then all others that are allowed.
    pub ciphers: Vec<String>,
    /// MACs for it; empty if no allowed cipher needs one.
    pub macs: Vec<String>,
}

/// Rates are equal from this ratio on.
const SAME: f64 = 0.97;
/// A cipher is cheaper if it needs at most this share of the other's CPU time.
const CHEAPER: f64 = 0.9;
/// The configured cipher stays unless another is this much faster.
const CHANGE_AT: f64 = 1.10;

/// Chooses the fastest allowed cipher; among equally fast ones the one with the least CPU time. The configured cipher stays unless another
/// one is clearly better. `None` if no allowed cipher was measured.
pub fn decide(evidence: &Evidence<'_>) -> Option<Decision> {
    let candidates: Vec<&CipherMeasurement> =
        evidence.measured.iter().filter(|m| evidence.allowed.contains(&m.suite)).collect();
    let fastest = candidates.iter().copied().max_by(|a, b| a.rate().total_cmp(&b.rate()))?;
    let (mut chosen, mut why) = cheapest(&candidates, fastest);
    let kept = evidence.configured.and_then(|s| candidates.iter().copied().find(|m| m.suite == *s));
    let stays = |k: &&CipherMeasurement| {
        k.suite != chosen.suite && !is_clearly_better(chosen, k) && !is_clearly_faster(fastest, k)
    };
    if let Some(kept) = kept.filter(stays) {
        why = format!(
            "it is configured already, and {} is no more than {:.0} % faster",
            chosen.suite,
            gain(chosen, kept)
        );
        chosen = kept;
    }
    let limits = evidence.measured.iter().map(|m| limit(m, evidence)).collect();
    Some(Decision {
        mb_per_s: chosen.rate(),
        limit: limit(chosen, evidence),
        limits,
        why,
        ciphers: preferring(&chosen.suite.cipher, evidence.allowed.iter().map(|s| &s.cipher)),
        macs: macs(&chosen.suite, evidence.allowed),
        chosen: chosen.suite.clone(),
    })
}

fn gain(chosen: &CipherMeasurement, kept: &CipherMeasurement) -> f64 {
    (100.0 * (chosen.rate() / kept.rate() - 1.0)).max(0.0).ceil()
}

/// Is `other` so much better than the configured cipher?
fn is_clearly_better(other: &CipherMeasurement, kept: &CipherMeasurement) -> bool {
    let bounds = other.bound_per_mb().zip(kept.bound_per_mb()).is_some_and(|(a, b)| a <= b * CHEAPER);
    if bounds && other.rate() < kept.rate() * CHANGE_AT && overlap(&other.rates(), &kept.rates()) {
        return true;
    }
    let is_cheaper = other.cpu_per_mb().zip(kept.cpu_per_mb()).is_some_and(|(a, b)| a <= b * CHEAPER);
    other.rate() >= kept.rate() * CHANGE_AT || (other.rate() >= kept.rate() * SAME && is_cheaper)
}

/// Is `other` that much faster, and not only by chance?
fn is_clearly_faster(other: &CipherMeasurement, kept: &CipherMeasurement) -> bool {
    other.rate() >= kept.rate() * CHANGE_AT && !overlap(&other.rates(), &kept.rates())
}

/// Among ciphers as fast as the fastest, the one with the least CPU time of both ends.
///
/// On busy machines rates vary so much that their 95 % intervals overlap. Then it takes the one whose busier end needs the least time for each
/// byte: all ciphers get the same share of a CPU, so the order of their rates is that of these times.
fn cheapest<'a>(
    candidates: &[&'a CipherMeasurement],
    fastest: &'a CipherMeasurement,
) -> (&'a CipherMeasurement, String) {
    let share = |m: &CipherMeasurement| m.rate() / fastest.rate().max(1e-9);
    let is_unclear = |m: &&CipherMeasurement| share(m) < SAME && overlap(&m.rates(), &fastest.rates());
    let unclear = candidates.iter().copied().filter(is_unclear);
    if let Some((other, cheaper)) = least(unclear, fastest, CipherMeasurement::bound_per_mb) {
        let why = format!(
            "its rate varies as that of {} does, and it needs {cheaper:.0} % less CPU",
            fastest.suite
        );
        return (other, why);
    }
    let same = candidates.iter().copied().filter(|m| share(m) >= SAME);
    match least(same, fastest, CipherMeasurement::cpu_per_mb) {
        Some((other, cheaper)) => {
            (other, format!("as fast as {}, with {cheaper:.0} % less CPU", fastest.suite))
        }
        None => (fastest, why_fastest(candidates, fastest)),
    }
}

/// The one with the least cost, and its saving in percent, if that is clearly less than the cost of the fastest.
fn least<'a>(
    among: impl Iterator<Item = &'a CipherMeasurement>,
    fastest: &CipherMeasurement,
    cost: fn(&CipherMeasurement) -> Option<f64>,
) -> Option<(&'a CipherMeasurement, f64)> {
    let own = cost(fastest)?;
    let (other, least) = among.filter_map(|m| Some((m, cost(m)?))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    (least <= own * CHEAPER).then(|| (other, 100.0 * (1.0 - least / own)))
}

fn why_fastest(candidates: &[&CipherMeasurement], fastest: &CipherMeasurement) -> String {
    let others = candidates.iter().filter(|m| m.suite != fastest.suite);
    let Some(next) = others.max_by(|a, b| a.rate().total_cmp(&b.rate())) else {
        return "it is the only one that was measured".to_owned();
    };
    let percent = 100.0 * (fastest.rate() / next.rate().max(1e-9) - 1.0);
    if percent >= 1.0 {
        return format!("{percent:.0} % faster than the next, {}", next.suite);
    }
    format!("as fast as {}, and no other needs clearly less CPU", next.suite)
}

/// The chosen cipher, then the others in their order, each once.
fn preferring<'a>(first: &str, others: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names = vec![first.to_owned()];
    let mut others: Vec<&String> = others.collect();
    // first those that are safer without strict key exchange and cheap on most machines
    others.sort_by_key(|n| (!n.contains("gcm"), !n.starts_with("chacha"), (*n).clone()));
    for name in others {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn macs(chosen: &Suite, allowed: &[Suite]) -> Vec<String> {
    let mut names: Vec<String> = chosen.mac.iter().cloned().collect();
    for mac in allowed.iter().filter_map(|s| s.mac.as_ref()) {
        if !names.contains(mac) {
            names.push(mac.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sessions;
    use crate::parse::sample::Used;
    use crate::throughput::Flow;

    const GCM: &str = "aes128-gcm@openssh.com";
    const CHACHA: &str = "chacha20-poly1305@openssh.com";

    /// Both directions at `rate` MB/s, with so many CPU seconds per MB at each end.
    fn measured(cipher: &str, rate: f64, here: f64, there: f64) -> CipherMeasurement {
        let flow = Flow {
            mb_per_s: vec![rate * 0.99, rate, rate * 1.01],
            bytes: (rate * 1e6) as u64,
            seconds: 1.0,
            here: Used { cpu_s: Some(here * rate), ..Used::default() },
            there: Used { cpu_s: Some(there * rate), ..Used::default() },
            ..Flow::default()
        };
        CipherMeasurement {
            suite: Suite::new(cipher, None),
            to_here: flow.clone(),
            to_there: flow,
            echo_us: None,
        }
    }

    fn decision(all: &[CipherMeasurement], configured: Option<&str>) -> Decision {
        let allowed: Vec<Suite> = all.iter().map(|m| m.suite.clone()).collect();
        let configured = configured.map(|c| Suite::new(c, None));
        let evidence = Evidence {
            measured: all,
            configured: configured.as_ref(),
            sessions: None,
            bare: None,
            allowed: &allowed,
        };
        decide(&evidence).unwrap()
    }

    #[test]
    fn the_fastest_wins_where_the_cpu_is_the_limit() {
        let all = [measured(GCM, 30.0, 1.0 / 31.0, 0.001), measured(CHACHA, 61.0, 1.0 / 62.0, 0.001)];
        let decision = decision(&all, Some(GCM));
        assert_eq!((decision.chosen.cipher.as_str(), decision.limit), (CHACHA, Limit::ThisThread));
        assert_eq!(decision.limits, [Limit::ThisThread; 2]);
        assert_eq!(decision.ciphers, [CHACHA, GCM]);
        assert!(decision.why.contains("103 % faster"), "{}", decision.why);
    }

    #[test]
    fn on_a_full_link_the_cheapest_wins() {
        let all = [measured(CHACHA, 112.5, 0.003, 0.003), measured(GCM, 112.0, 0.002, 0.002)];
        let decision = decision(&all, None);
        assert_eq!((decision.chosen.cipher.as_str(), decision.limit), (GCM, Limit::Link));
        assert!(decision.why.contains("33 % less CPU"), "{}", decision.why);
    }

    #[test]
    fn the_configured_cipher_stays_unless_another_is_clearly_better() {
        let all = [measured(CHACHA, 100.0, 0.009, 0.001), measured(GCM, 108.0, 0.0088, 0.001)];
        assert_eq!(decision(&all, Some(CHACHA)).chosen.cipher, CHACHA);
        assert_eq!(decision(&all, None).chosen.cipher, GCM);
        let all = [measured(CHACHA, 100.0, 0.009, 0.001), measured(GCM, 112.0, 0.0088, 0.001)];
        assert_eq!(decision(&all, Some(CHACHA)).chosen.cipher, GCM);
    }

    #[test]
    fn the_far_end_may_be_the_limit_and_a_quota_too() {
        let far = [measured(GCM, 50.0, 0.001, 0.0195)];
        assert_eq!(decision(&far, None).limit, Limit::ThatThread);
        let mut throttled = [measured(GCM, 50.0, 0.006, 0.001), measured(CHACHA, 25.0, 0.012, 0.001)];
        throttled.iter_mut().for_each(|m| m.to_here.here.throttled_s = Some(1.5));
        assert_eq!(decision(&throttled, None).limits, [Limit::ThisMachine; 2]);
    }

    #[test]
    fn several_sessions_that_move_more_show_that_the_link_is_not_the_limit() {
        let all = [measured(GCM, 50.0, 0.008, 0.015)];
        let allowed = [all[0].suite.clone()];
        let sessions =
            Sessions { count: 4, suite: all[0].suite.clone(), mb_per_s: 90.0, bytes: 0, there_busy: None };
        let evidence = Evidence {
            measured: &all,
            configured: None,
            sessions: Some(&sessions),
            bare: None,
            allowed: &allowed,
        };
        assert_eq!(decide(&evidence).unwrap().limit, Limit::ThatThread);
        assert_eq!(decide(&Evidence { sessions: None, ..evidence }).unwrap().limit, Limit::Link);
    }

    #[test]
    fn where_rates_vary_the_cpu_decides() {
        let noisy = |cipher: &str, rates: [f64; 4], cost: f64| {
            let mut m = measured(cipher, 50.0, cost, 0.001);
            m.to_here.mb_per_s = rates.to_vec();
            m.to_there.mb_per_s = rates.to_vec();
            m
        };
        let all =
            [noisy(GCM, [60.0, 20.0, 90.0, 70.0], 0.016), noisy(CHACHA, [5.0, 15.0, 80.0, 55.0], 0.008)];
        let decision = decision(&all, None);
        assert_eq!(decision.chosen.cipher, CHACHA);
        assert!(decision.why.contains("50 % less CPU"), "{}", decision.why);
        assert_eq!(self::decision(&all, Some(GCM)).chosen.cipher, CHACHA);
        // but not where it is clearly slower
        let all =
            [noisy(GCM, [60.0, 61.0, 62.0, 60.0], 0.016), noisy(CHACHA, [50.0, 51.0, 52.0, 50.0], 0.008)];
        assert_eq!(self::decision(&all, None).chosen.cipher, GCM);
    }

    #[test]
    fn the_configured_cipher_goes_where_the_fastest_is_clearly_better_and_a_third_as_fast_is_cheaper() {
        let all = [
            measured("c0", 870.0, 0.0001, 0.0001),
            measured("c1", 964.0, 0.09, 0.09),
            measured("c2", 936.0, 0.0001, 0.0001),
        ];
        assert_eq!(decision(&all, Some("c0")).chosen.cipher, "c2");
    }

    #[test]
    fn nothing_that_is_not_allowed_is_chosen() {
        let all = [measured("aes128-cbc", 500.0, 0.001, 0.001), measured(GCM, 100.0, 0.001, 0.001)];
        let allowed = [all[1].suite.clone()];
        let evidence =
            Evidence { measured: &all, configured: None, sessions: None, bare: None, allowed: &allowed };
        assert_eq!(decide(&evidence).unwrap().chosen.cipher, GCM);
        assert_eq!(decide(&Evidence { allowed: &[], ..evidence }), None);
    }

    proptest::proptest! {
        #[test]
        fn the_choice_is_within_ten_percent_of_the_fastest(
            rates in proptest::collection::vec((1.0f64..1000.0, 0.0001f64..0.1), 1..6),
            configured in proptest::option::of(0usize..6),
        ) {
            let all: Vec<CipherMeasurement> =
                rates.iter().enumerate().map(|(n, (rate, cost))| measured(&format!("c{n}"), *rate, *cost, *cost)).collect();
            let name = configured.map(|n| format!("c{n}"));
            let best = rates.iter().map(|r| r.0).fold(0.0, f64::max);
            proptest::prop_assert!(decision(&all, name.as_deref()).mb_per_s >= best / CHANGE_AT - 1e-6);
        }
    }
}
