//! One run.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use eke_bench_startup::launcher::Task;
use eke_bench_startup::reader::{self, Read, Spec};
use eke_io::figures::Window;
use eke_io::sense::Windows;
use eke_io::sense::local::Wanted;
use eke_io::sense::remote::Remote;
use eke_io::target;
use eke_io::{Device, Operation};
use eke_model::units::Nanos;

use super::load::Load;
use super::place::Place;
use super::plan::{Run, Variant};
use super::setting::InForce;
use super::{Bench, Error};

/// From the begin of one program start to the begin of the next.
const BETWEEN_STARTS: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// What was seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trial {
    /// Each read's time, in milliseconds.
    pub reads_ms: Vec<f64>,
    /// Each start's, in seconds.
    pub starts_s: Vec<f64>,
    /// How long it was, in seconds.
    pub seconds: f64,
    /// What the disk wrote, a piece of some seconds after the other, in MB/s.
    pub written_mb_s: Vec<f64>,
    /// What the disk did meanwhile.
    pub device: Device,
    /// Where the disk's figures are from.
    pub source: String,
    /// What the governor turned, and why.
    pub turned: Vec<String>,
    /// The time within which it wants reads answered.
    pub target: Nanos,
}

/// Makes the disk, the load and the setting, waits, measures, and takes everything down.
///
/// # Errors
/// See [`Error`]; nothing is left then.
pub fn hold(bench: &Bench<'_>, run: &Run) -> Result<Trial, Error> {
    let place = Place::make(bench, run.writer)?;
    let device = place.device();
    let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let in_force = InForce::put(bench, run.variant, &name)?;
    let load = Load::start(run.writer, &place.written(), &place.dir(), run.variant == Variant::Idle)?;
    let made = beside(bench, &place, &name, load);
    let target = target::of(bench.root, &name, 0);
    let turned = in_force.end();
    let struck = place.strike();
    let trial = made?;
    struck?;
    Ok(Trial { turned, target, ..trial })
}

/// The reader is a process, and ends when its input does. It is no thread: this process serves the disk, and could not be killed while one
/// of its threads waits for it.
fn beside(bench: &Bench<'_>, place: &Place, name: &str, load: Load) -> Result<Trial, Error> {
    let failed = |why: String| Error::Program { program: "the reader".to_owned(), why };
    let spec = Spec {
        device: place.device(),
        bytes: place.bytes(),
        every_ms: u64::from(1_000 / bench.options.rate.clamp(1, 1_000)),
        seed: 11,
    };
    let mut command = Task::Read(spec).command(&bench.program);
    let reader = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn();
    let mut reader = reader.map_err(|e| failed(e.to_string()))?;
    let (input, output) = (reader.stdin.take(), reader.stdout.take());
    std::thread::scope(|scope| {
        // what it says is more than a pipe holds
        let heard = scope.spawn(move || output.map(std::io::read_to_string));
        let measured = measure(bench, place, name, load);
        drop(input);
        let lines = heard.join().ok().flatten().ok_or_else(|| failed("has no output".to_owned()))?;
        let (status, lines) = (reader.wait(), lines.map_err(|e| failed(e.to_string()))?);
        let (mut trial, from_s, to_s) = measured?;
        if !status.as_ref().is_ok_and(ExitStatus::success) {
            return Err(failed(format!("failed ({status:?}); what it said is above")));
        }
        let reads = lines.lines().filter_map(|line| serde_json::from_str::<Read>(line).ok());
        trial.reads_ms = reads.filter(|r| r.at_s >= from_s && r.at_s <= to_s).map(|r| r.ms).collect();
        Ok(trial)
    })
}

fn measure(bench: &Bench<'_>, place: &Place, name: &str, mut load: Load) -> Result<(Trial, f64, f64), Error> {
    let mut windows = Remote::start(&bench.sensor, Wanted::default())?;
    bench.progress.doing("warming up");
    wait(bench, Duration::from_secs(bench.options.warm_up_s))?;
    bench.progress.doing("measuring");
    windows.window()?;
    let (begun, from_s) = (Instant::now(), reader::now_s());
    let (mut starts_s, mut written_mb_s) = (Vec::new(), Vec::new());
    let mut whole = Window::default();
    let time = Duration::from_secs(bench.options.measured_s);
    while begun.elapsed() < time {
        load.check()?;
        let next = Instant::now() + BETWEEN_STARTS;
        starts_s.push(start(place)?);
        wait(
            bench,
            next.saturating_duration_since(Instant::now()).min(time.saturating_sub(begun.elapsed())),
        )?;
        let window = windows.window()?;
        written_mb_s.push(written_per_s(window.device(name), window.seconds) / 1e6);
        whole.merge(&window);
        whole.source = window.source;
    }
    let device = whole.device(name).cloned().unwrap_or_default();
    let (seconds, source) = (whole.seconds, whole.source);
    let trial = Trial { starts_s, written_mb_s, seconds, device, source, ..Trial::default() };
    Ok((trial, from_s, reader::now_s()))
}

/// Starts the program and waits for its end, in seconds.
fn start(place: &Place) -> Result<f64, Error> {
    let failed = |e: std::io::Error| Error::Program {
        program: "the program on the disk".to_owned(),
        why: e.to_string(),
    };
    let program = place.cold_program().map_err(failed)?;
    let begun = Instant::now();
    let mut command = Command::new(program);
    let status =
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status().map_err(failed)?;
    if status.success() {
        return Ok(begun.elapsed().as_secs_f64());
    }
    Err(Error::Program { program: "the program on the disk".to_owned(), why: format!("failed ({status})") })
}

fn wait(bench: &Bench<'_>, time: Duration) -> Result<(), Error> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if bench.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(PAUSE.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

fn written_per_s(device: Option<&Device>, seconds: f64) -> f64 {
    device.map_or(0.0, |device| device.of(Operation::Write).bytes.0 as f64 / seconds.max(1e-9))
}

impl Trial {
    /// Bytes that the disk wrote in a second.
    pub fn written_per_s(&self) -> f64 {
        written_per_s(Some(&self.device), self.seconds)
    }

    /// Its flushes' average, in milliseconds.
    pub fn flush_ms(&self) -> Option<f64> {
        self.device.of(Operation::Flush).whole.mean_ns().map(|ns| ns / 1e6)
    }
}
