//! Samples what a verdict needs besides the disk's window: CPU pressure, kernel threads, and the bytes of each process.

use std::collections::BTreeMap;
use std::time::Instant;

use eke_linux::parse::process_io::{self, ProcessIo};
use eke_linux::parse::{pressure, process_stat};
use eke_linux::{Root, read};
use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

use super::threads;

/// Samples activity, and keeps the last sample.
#[derive(Debug)]
pub struct ActivitySampler {
    root: Root,
    before: Sample,
    at: Instant,
}

#[derive(Debug, Clone, Default)]
struct Sample {
    cpu_some_us: Option<u64>,
    processes: BTreeMap<u32, Process>,
}

#[derive(Debug, Clone)]
struct Process {
    name: String,
    task: Option<&'static str>,
    ticks: u64,
    caused: Option<ProcessIo>,
}

/// The activity between two samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Activity {
    /// The share of the time in which some task waited for a CPU; `None` without `/proc/pressure`.
    pub cpu_some: Option<f64>,
    /// CPUs of the machine.
    pub cpus: f64,
    /// CPUs that kernel threads used to compress, checksum or encrypt data, with the task's name, most first.
    pub compression: Vec<(String, f64)>,
    /// The process that wrote most.
    pub writer: Option<Program>,
    /// The process that read most.
    pub reader: Option<Program>,
}

/// A process and its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// Bytes per second, on all disks together.
    pub bytes_per_s: Bytes,
}

impl ActivitySampler {
    /// Takes the first sample.
    pub fn new(root: &Root) -> Self {
        Self { root: root.clone(), before: sample(root), at: Instant::now() }
    }

    /// The activity since the last sample, without processes that started and ended in between.
    pub fn sample(&mut self) -> Activity {
        let (now, seconds) = (sample(&self.root), self.at.elapsed().as_secs_f64());
        let activity = between(&self.before, &now, seconds, rustix::param::clock_ticks_per_second() as f64);
        (self.before, self.at) = (now, Instant::now());
        activity
    }
}

fn sample(root: &Root) -> Sample {
    let pressure = root.read("proc/pressure/cpu").ok();
    let processes = read::answering(root).into_iter().filter_map(|pid| Some((pid, process(root, pid)?)));
    Sample {
        cpu_some_us: pressure.as_deref().and_then(pressure::parse).map(|p| p.some_total_us),
        processes: processes.collect(),
    }
}

fn process(root: &Root, pid: u32) -> Option<Process> {
    let stat = root.read(format!("proc/{pid}/stat")).ok()?;
    let thread = process_stat::parse(&stat)?;
    // only root and its user may read it; bytes never count for kernel threads
    let io = if thread.is_kernel_thread() { None } else { root.read(format!("proc/{pid}/io")).ok() };
    let (task, ticks) = (threads::task(&thread), thread.ticks());
    Some(Process {
        task,
        ticks,
        caused: io.as_deref().and_then(process_io::parse),
        name: thread.name.to_owned(),
    })
}

fn between(before: &Sample, now: &Sample, seconds: f64, ticks_per_s: f64) -> Activity {
    let waited_us = now.cpu_some_us.zip(before.cpu_some_us).map(|(now, then)| now.saturating_sub(then));
    let most = |of: fn(ProcessIo) -> u64| most(before, now, seconds, of);
    Activity {
        cpu_some: waited_us.map(|us| (us as f64 / 1e6 / seconds.max(1e-9)).min(1.0)),
        cpus: std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64),
        compression: compression(before, now, seconds * ticks_per_s),
        writer: most(|caused| caused.written),
        reader: most(|caused| caused.read),
    }
}

fn compression(before: &Sample, now: &Sample, ticks: f64) -> Vec<(String, f64)> {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for (pid, process) in &now.processes {
        let Some(what) = process.task else { continue };
        let then = before.processes.get(pid).map_or(0, |p| p.ticks);
        *all.entry(what).or_default() += process.ticks.saturating_sub(then) as f64 / ticks.max(1e-9);
    }
    let mut all: Vec<(String, f64)> = all.into_iter().map(|(what, cpus)| (what.to_owned(), cpus)).collect();
    all.retain(|(_, cpus)| *cpus > 0.0);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

fn most(before: &Sample, now: &Sample, seconds: f64, of: fn(ProcessIo) -> u64) -> Option<Program> {
    let caused = now.processes.iter().filter_map(|(pid, process)| {
        let then = before.processes.get(pid).and_then(|p| p.caused).map_or(0, of);
        let bytes = of(process.caused?).saturating_sub(then);
        let bytes_per_s = Bytes((bytes as f64 / seconds.max(1e-9)) as u64);
        (bytes > 0).then(|| Program { name: process.name.clone(), pid: *pid, bytes_per_s })
    });
    caused.max_by_key(|program| program.bytes_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, ticks: u64, written: u64, task: Option<&'static str>) -> Process {
        let caused = task.is_none().then_some(ProcessIo { read: 0, written });
        Process { name: name.to_owned(), task, ticks, caused }
    }

    #[test]
    fn the_greatest_writer_and_compressing_threads_are_found() {
        let before = Sample {
            cpu_some_us: Some(1_000_000),
            processes: BTreeMap::from([
                (5, process("dd", 1, 1_000_000, None)),
                (6, process("kworker", 100, 0, Some("zlib"))),
            ]),
        };
        let now = Sample {
            cpu_some_us: Some(2_000_000),
            processes: BTreeMap::from([
                (5, process("dd", 9, 9_000_000, None)),
                (6, process("kworker", 400, 0, Some("zlib"))),
                (7, process("kworker", 100, 0, Some("zlib"))),
                (8, process("cc", 50, 10, None)),
            ]),
        };
        let activity = between(&before, &now, 2.0, 100.0);
        assert_eq!(
            (activity.cpu_some, activity.compression.as_slice()),
            (Some(0.5), &[("zlib".to_owned(), 2.0)][..])
        );
        let writer = activity.writer.unwrap();
        assert_eq!((writer.name.as_str(), writer.pid, writer.bytes_per_s), ("dd", 5, Bytes(4_000_000)));
        assert_eq!(activity.reader, None);
    }

    #[test]
    fn a_machine_without_these_files_is_no_error() {
        let mut sampler = ActivitySampler::new(&Root::at("/nonexistent"));
        let activity = sampler.sample();
        assert_eq!((activity.cpu_some, activity.writer, activity.compression.len()), (None, None, 0));
    }
}
