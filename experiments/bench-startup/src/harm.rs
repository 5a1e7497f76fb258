//! Latency of a second reader on the same disk, at a fixed rate: alone, during prefetching, and during a start.

use std::time::{Duration, Instant};

use super::child_process::ChildProcess;
use super::error::{Error, Result};
use super::fixture::{DiskFixture, How};
use super::launcher::Task;
use super::plan::Variant;
use super::prefetcher::Prefetcher;
use super::programs::Program;
use super::reader::{self, Read};
use super::trial;

/// 20 blocks per second: a sixth of what a laptop's disk can do.
const EVERY_MS: u64 = 50;
/// The time of the reader alone.
const ALONE: Duration = Duration::from_secs(5);
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// The reader's latencies, in milliseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Harm {
    /// Alone on the disk.
    pub alone_ms: Vec<f64>,
    /// During prefetching; empty without a prefetcher.
    pub ahead_ms: Vec<f64>,
    /// During the start.
    pub start_ms: Vec<f64>,
    /// The time of the start beside the reader, in seconds.
    pub seconds: f64,
}

/// The beginnings of the phases, by [`reader::now_s`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Phases {
    alone: f64,
    ahead: f64,
    start: f64,
    end: f64,
}

/// Makes one run from a cold disk.
///
/// # Errors
/// The launch, the prefetcher or the reader failed.
pub fn run(
    fixture: &DiskFixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<Harm> {
    let measured = go_through(fixture, prefetcher, program, variant);
    let rested = prefetcher.as_mut().map_or(Ok(()), |p| p.rest());
    let (phases, seconds, lines) = measured?;
    rested?;
    let reads: Vec<Read> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if reads.is_empty() {
        return Err(Error::Reader("read nothing; see its messages above".to_owned()));
    }
    Ok(harm(&reads, phases, variant, seconds))
}

fn start(fixture: &DiskFixture<'_>) -> Result<ChildProcess> {
    let unknown = || Error::Reader("has no device to read from".to_owned());
    let (device, bytes) =
        (fixture.disk.device().ok_or_else(unknown)?, fixture.disk.size().ok_or_else(unknown)?);
    let task = Task::Read(reader::Spec { device, bytes, every_ms: EVERY_MS, seed: 5 });
    ChildProcess::start("reader", &mut task.command(&fixture.environment.program), None)
}

fn go_through(
    fixture: &DiskFixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<(Phases, f64, Vec<String>)> {
    let (ready, _) = trial::begin(fixture, prefetcher, program, variant, How::default())?;
    let mut process = start(fixture)?;
    let alone = reader::now_s();
    fixture.sleep(ALONE)?;
    let ahead = reader::now_s();
    trial::ahead(fixture, prefetcher, program, variant)?;
    let start = reader::now_s();
    let running = ready.go()?;
    let seconds = running.started.seconds;
    let end = start + seconds;
    running.end()?;
    let lines = process.rest(Instant::now() + ENDS_WITHIN, fixture.environment.shutdown)?;
    process.end()?;
    Ok((Phases { alone, ahead, start, end }, seconds, lines))
}

/// Sorts the reads into phases by their beginnings. Pure.
fn harm(reads: &[Read], phases: Phases, variant: Variant, seconds: f64) -> Harm {
    let between = |from: f64, to: f64| {
        let of = reads.iter().filter(|r| r.at_s >= from && r.at_s < to);
        of.map(|r| r.ms).collect::<Vec<_>>()
    };
    let reads_ahead = matches!(variant, Variant::Preload | Variant::Ahead);
    Harm {
        alone_ms: between(phases.alone, phases.ahead),
        ahead_ms: if reads_ahead { between(phases.ahead, phases.start) } else { Vec::new() },
        start_ms: between(phases.start, phases.end),
        seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_belong_to_the_phase_in_which_they_began() {
        let reads: Vec<Read> = (0..10).map(|n| Read { at_s: f64::from(n), ms: f64::from(10 * n) }).collect();
        let phases = Phases { alone: 0.0, ahead: 3.0, start: 5.0, end: 8.0 };
        let all = harm(&reads, phases, Variant::Ahead, 3.0);
        assert_eq!(
            (all.alone_ms.len(), all.ahead_ms.as_slice(), all.start_ms.len()),
            (3, [30.0, 40.0].as_slice(), 3)
        );
        assert!(harm(&reads, phases, Variant::Cold, 3.0).ahead_ms.is_empty());
    }
}
