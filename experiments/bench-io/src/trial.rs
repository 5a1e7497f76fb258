//! One run.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use eke_bench_core::Environment;
use eke_bench_startup::launcher::Task;
use eke_bench_startup::reader::{self, Read, Spec};
use eke_io::counters::Window;
use eke_io::sensor::remote::RemoteSensor;
use eke_io::sensor::{SensorOptions, WindowSource};
use eke_io::target;
use eke_io::{Device, Operation};
use eke_model::units::Nanos;
use serde::{Deserialize, Serialize};

use super::disk::TestDisk;
use super::load::Load;
use super::plan::{Run, Variant};
use super::setting::Applied;
use super::{Error, Options, SENSOR};

/// The interval between program starts.
const BETWEEN_STARTS: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// The measurements of one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// The latency of each read in milliseconds.
    pub reads_ms: Vec<f64>,
    /// The time of each program start in seconds.
    pub starts_s: Vec<f64>,
    /// The length of the run in seconds.
    pub seconds: f64,
    /// The disk's write rate in MB/s, one sample for each interval of some seconds.
    pub written_mb_s: Vec<f64>,
    /// The disk's latencies during the run.
    pub device: Device,
    /// The source of the latencies: `bpf` or the kernel's averages.
    pub source: String,
    /// The governor's changes with their reasons.
    pub changes: Vec<String>,
    /// The governor's target for read latency.
    pub target: Nanos,
}

/// Makes the disk, applies the setting, starts the load, warms up, measures, and tears everything down.
///
/// # Errors
/// See [`Error`]. Everything is torn down then, too.
pub fn run(environment: &Environment<'_>, options: &Options, run: &Run) -> Result<Trial, Error> {
    let disk = TestDisk::make(&options.disk, run.writer)?;
    let device = disk.device();
    let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let applied = Applied::apply(environment, run.variant, &name)?;
    let load = Load::start(run.writer, &disk.source(), &disk.dir(), run.variant == Variant::Idle)?;
    let measured = measure_with_reader(environment, options, &disk, &name, load);
    let target = target::of(environment.root, &name, 0);
    let changes = applied.end();
    let torn_down = disk.teardown();
    let trial = measured?;
    torn_down?;
    Ok(Trial { changes, target, ..trial })
}

/// Measures while the reader runs. The reader is a process that ends with its input, not a thread: this process serves the disk, and could
/// not be killed while one of its threads waits for the disk.
fn measure_with_reader(
    environment: &Environment<'_>,
    options: &Options,
    disk: &TestDisk,
    name: &str,
    load: Load,
) -> Result<Trial, Error> {
    let failed = |why: String| Error::Program { program: "the reader".to_owned(), why };
    let spec = Spec {
        device: disk.device(),
        bytes: disk.bytes(),
        every_ms: u64::from(1_000 / options.rate.clamp(1, 1_000)),
        seed: 11,
    };
    let mut command = Task::Read(spec).command(&environment.program);
    let reader = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn();
    let mut reader = reader.map_err(|e| failed(e.to_string()))?;
    let (input, output) = (reader.stdin.take(), reader.stdout.take());
    std::thread::scope(|scope| {
        // The reader's output is larger than a pipe's buffer.
        let lines = scope.spawn(move || output.map(std::io::read_to_string));
        let measured = measure(environment, options, disk, name, load);
        drop(input);
        let lines = lines.join().ok().flatten().ok_or_else(|| failed("has no output".to_owned()))?;
        let (status, lines) = (reader.wait(), lines.map_err(|e| failed(e.to_string()))?);
        let (mut trial, from_s, to_s) = measured?;
        if !status.as_ref().is_ok_and(ExitStatus::success) {
            return Err(failed(format!("failed ({status:?}); see its output above")));
        }
        let reads = lines.lines().filter_map(|line| serde_json::from_str::<Read>(line).ok());
        trial.reads_ms = reads.filter(|r| r.at_s >= from_s && r.at_s <= to_s).map(|r| r.ms).collect();
        Ok(trial)
    })
}

/// Measures the run. Also returns the times of its begin and end, on the reader's clock.
fn measure(
    environment: &Environment<'_>,
    options: &Options,
    disk: &TestDisk,
    name: &str,
    mut load: Load,
) -> Result<(Trial, f64, f64), Error> {
    let mut windows = RemoteSensor::start(&environment.installed(SENSOR), SensorOptions::default())?;
    environment.progress.doing("warming up");
    wait(environment, Duration::from_secs(options.warm_up_s))?;
    environment.progress.doing("measuring");
    windows.window()?;
    let (begun, from_s) = (Instant::now(), reader::now_s());
    let (mut starts_s, mut written_mb_s) = (Vec::new(), Vec::new());
    let mut whole = Window::default();
    let time = Duration::from_secs(options.measured_s);
    while begun.elapsed() < time {
        load.check()?;
        let next = Instant::now() + BETWEEN_STARTS;
        starts_s.push(start(disk)?);
        wait(
            environment,
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

/// Starts the program, waits for its end and returns the time in seconds.
fn start(disk: &TestDisk) -> Result<f64, Error> {
    let failed = |e: std::io::Error| Error::Program {
        program: "the program on the disk".to_owned(),
        why: e.to_string(),
    };
    let program = disk.cold_program().map_err(failed)?;
    let begun = Instant::now();
    let mut command = Command::new(program);
    let status =
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status().map_err(failed)?;
    if status.success() {
        return Ok(begun.elapsed().as_secs_f64());
    }
    Err(Error::Program { program: "the program on the disk".to_owned(), why: format!("failed ({status})") })
}

fn wait(environment: &Environment<'_>, time: Duration) -> Result<(), Error> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if environment.is_interrupted() {
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
    /// Bytes that the disk wrote per second.
    pub fn written_per_s(&self) -> f64 {
        written_per_s(Some(&self.device), self.seconds)
    }

    /// The mean time of a flush in milliseconds.
    pub fn flush_ms(&self) -> Option<f64> {
        self.device.of(Operation::Flush).whole.mean_ns().map(|ns| ns / 1e6)
    }
}
