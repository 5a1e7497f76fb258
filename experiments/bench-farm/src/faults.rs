//! Faults during a run, and what clients see in each second. Pure.

use std::time::Duration;

use eke_results::report::groups::quantile;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing, for comparison.
    None,
    /// A member of the engine is killed.
    EngineKilled,
    /// It is started again, empty.
    EngineStarted,
    /// The link of another member is cut.
    LinkCut,
    /// The link is connected again.
    LinkMended,
    /// A node is killed with everything on it.
    NodeKilled,
    /// It is started again, with empty caches.
    NodeStarted,
}

impl Fault {
    /// In their order. Each has a phase.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::EngineKilled,
        Self::EngineStarted,
        Self::LinkCut,
        Self::LinkMended,
        Self::NodeKilled,
        Self::NodeStarted,
    ];

    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::EngineKilled => "engine member killed",
            Self::EngineStarted => "engine member started again",
            Self::LinkCut => "link to another member cut",
            Self::LinkMended => "link connected again",
            Self::NodeKilled => "node killed",
            Self::NodeStarted => "node started again",
        }
    }
}

/// What clients saw in one second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Second {
    /// Response times in milliseconds of the requests answered in it.
    pub response_ms: Vec<f64>,
    /// Attempts that failed; the client then asked another node.
    pub failed: u64,
    /// Bytes that the origin's disk read.
    pub origin: u64,
    /// Bytes of bodies.
    pub bytes: u64,
}

impl Second {
    /// The 99th percentile; `None` if nothing was answered.
    pub fn p99_ms(&self) -> Option<f64> {
        quantile(&self.response_ms, 0.99)
    }
}

/// A phase: a fault and the seconds after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// The fault at its begin.
    pub fault: Fault,
    /// How long the fault's own action took: a start waits until the part is ready.
    pub action: Duration,
    /// Its seconds.
    pub seconds: Vec<Second>,
}

/// The fault part of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faulted {
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// Replies with other bytes than their files. All were compared.
    pub wrong: u64,
    /// Blocks of the tier that were refused: they were not as they were offered.
    pub refused: u64,
}

impl Faulted {
    /// The usual 99th percentile: that of the phase without a fault, all its requests together.
    pub fn usual_ms(&self) -> Option<f64> {
        let of = self.phases.iter().filter(|p| p.fault == Fault::None);
        let all: Vec<f64> = of.flat_map(|p| &p.seconds).flat_map(|s| s.response_ms.iter().copied()).collect();
        quantile(&all, 0.99)
    }

    /// The seconds of a phase in which the 99th percentile was above twice the usual one, or nothing was answered.
    pub fn slow_seconds(&self, phase: &Phase) -> Option<usize> {
        let most = 2.0 * self.usual_ms()?;
        Some(phase.seconds.iter().filter(|s| s.p99_ms().is_none_or(|ms| ms > most)).count())
    }

    /// All seconds in lines: second, fault, requests, MB, median, p99, failed attempts, MB of the origin's disk.
    pub fn lines(&self) -> Vec<String> {
        let mut number = 0;
        let mut lines = Vec::new();
        for phase in &self.phases {
            for (nth, second) in phase.seconds.iter().enumerate() {
                let fault = if nth == 0 { phase.fault.name() } else { "" };
                lines.push(line(number, fault, second));
                number += 1;
            }
        }
        lines
    }
}

fn line(number: usize, fault: &str, second: &Second) -> String {
    let ms = |q| quantile(&second.response_ms, q).map_or("-".to_owned(), |ms| format!("{ms:.0}"));
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let cells = [
        number.to_string(),
        fault.to_owned(),
        second.response_ms.len().to_string(),
        mb(second.bytes),
        ms(0.5),
        ms(0.99),
        second.failed.to_string(),
        mb(second.origin),
    ];
    cells.join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(ms: &[f64]) -> Second {
        Second { response_ms: ms.to_vec(), ..Second::default() }
    }

    #[test]
    fn a_second_is_slow_above_twice_the_usual_or_without_answers() {
        let phase = |fault, seconds| Phase { fault, action: Duration::ZERO, seconds };
        let faulted = Faulted {
            phases: vec![
                phase(Fault::None, vec![second(&[5.0, 10.0]), second(&[9.0])]),
                phase(Fault::NodeKilled, vec![second(&[19.0]), second(&[21.0]), second(&[]), second(&[1.0])]),
            ],
            ..Faulted::default()
        };
        assert_eq!(faulted.usual_ms(), Some(10.0));
        assert_eq!(faulted.slow_seconds(&faulted.phases[1]), Some(2));
        assert_eq!(faulted.slow_seconds(&faulted.phases[0]), Some(0));
        let lines = faulted.lines();
        assert_eq!((lines.len(), lines[2].as_str()), (6, "2\tnode killed\t1\t0.0\t19\t19\t0\t0.0"));
        assert_eq!(Faulted::default().usual_ms(), None);
    }
}
