//! The cost of the agent: resident set and CPU time, idle and polled once a second.
//!
//! The agent runs on this machine's `/proc` and `/sys`, but with a run directory of its own, so it neither meets a running agent nor finds
//! a plan to maintain.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eke_agent::socket;
use eke_linux::Root;
use eke_model::snapshot::Request;
use eke_model::units::Nanos;
use rustix::process::{Pid, Signal, kill_process};

use eke_bench_core::process::{cpu_percent, cpu_time, mib};
use eke_results::report::{Machine, Report, Row};

use crate::provenance;

/// The agent's resident set must be below this, in MiB.
pub const MOST_MIB: f64 = 8.0;
/// Its idle CPU time must be below this, in percent of one CPU.
pub const MOST_IDLE_PERCENT: f64 = 0.2;
/// Runs of the agent, each idle and polled.
pub const REPEATS: usize = 3;
const START_WITHIN: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);
const IDLE: &str = "idle";
const ASKED: &str = "one status a second";

/// Why the agent could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not start or answer.
    #[error("the agent {} cannot be measured: {source}", program.display())]
    Agent {
        /// The program.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Its directory cannot be made.
    #[error("cannot make {} for the agent to run in: {source}", path.display())]
    Directory {
        /// Its path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// One run of the agent.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Usage {
    resident_mib: f64,
    peak_mib: f64,
    proportional_mib: f64,
    idle_percent: f64,
    asked_percent: f64,
}

/// Measures `program` (`eke-agent`) three times, `seconds` idle and `seconds` with one status a second each.
///
/// # Errors
/// It cannot be started or does not answer.
pub fn run(program: &Path, seconds: u64) -> Result<Report, Error> {
    let place = Place::new()?;
    let failed = |source| Error::Agent { program: program.to_owned(), source };
    let usage = (0..REPEATS)
        .map(|_| measure(program, &place.0, seconds))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    Ok(Report {
        experiment: "agent".into(),
        provenance: Some(provenance::now(&Root::host())),
        machine: Machine::of(&Root::host()),
        rows: rows(&usage, seconds),
        ..Report::default()
    })
}

/// Rows above the limits, as sentences.
pub fn excesses(report: &Report) -> Vec<String> {
    let most = |row: &Row| match (row.metric.as_str(), row.variant.as_str()) {
        ("resident set", _) => Some(MOST_MIB),
        ("CPU", IDLE) => Some(MOST_IDLE_PERCENT),
        _ => None,
    };
    let beyond =
        report.rows.iter().filter_map(|row| Some((row, most(row).filter(|most| row.median >= *most)?)));
    beyond
        .map(|(r, most)| {
            format!(
                "The agent's {} ({}) is {:.3} {}, but must be below {most}.",
                r.metric, r.variant, r.median, r.unit
            )
        })
        .collect()
}

fn rows(usage: &[Usage], seconds: u64) -> Vec<Row> {
    let params = BTreeMap::from([("seconds".to_owned(), seconds.into())]);
    let row = |variant: &str, metric: &str, unit: &str, value: fn(&Usage) -> f64| {
        Row::new(variant, &params, metric, unit, usage.iter().map(value).collect())
    };
    vec![
        row(IDLE, "CPU", "% of one CPU", |f| f.idle_percent),
        row(ASKED, "CPU", "% of one CPU", |f| f.asked_percent),
        row(ASKED, "resident set", "MiB", |f| f.resident_mib),
        row(ASKED, "peak resident set", "MiB", |f| f.peak_mib),
        row(ASKED, "proportional set", "MiB", |f| f.proportional_mib),
    ]
}

fn measure(program: &Path, dir: &Path, seconds: u64) -> io::Result<Usage> {
    let agent = Running::start(program, dir)?;
    let idle_percent = agent.cpu_percent(|| {
        std::thread::sleep(SECOND * u32::try_from(seconds).unwrap_or(u32::MAX));
        Ok(())
    })?;
    let asked_percent = agent.cpu_percent(|| {
        (0..seconds).try_for_each(|_| {
            std::thread::sleep(SECOND);
            agent.status()
        })
    })?;
    let (status, rollup) = (agent.proc("status")?, agent.proc("smaps_rollup").unwrap_or_default());
    let of_status = |key| mib(&status, key).unwrap_or(f64::NAN);
    let proportional_mib = mib(&rollup, "Pss").unwrap_or(f64::NAN);
    Ok(Usage {
        resident_mib: of_status("VmRSS"),
        peak_mib: of_status("VmHWM"),
        proportional_mib,
        idle_percent,
        asked_percent,
    })
}

/// An agent that ends when dropped.
struct Running {
    child: Child,
    socket: PathBuf,
}

impl Running {
    fn start(program: &Path, dir: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("--root").arg(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut agent = Self { child: command.spawn()?, socket: dir.join(socket::FILE) };
        let until = Instant::now() + START_WITHIN;
        while agent.status().is_err() {
            if let Some(status) = agent.child.try_wait()? {
                return Err(io::Error::other(format!("it ended at once ({status})")));
            }
            if Instant::now() > until {
                return Err(io::Error::other(format!(
                    "it does not answer within {} s",
                    START_WITHIN.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(agent)
    }

    fn status(&self) -> io::Result<()> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(START_WITHIN))?;
        let mut line = serde_json::to_vec(&Request::Status)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        if answer.ends_with('\n') { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn proc(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))
    }

    fn cpu_time(&self) -> io::Result<Nanos> {
        let time = cpu_time(&self.proc("schedstat").unwrap_or_default(), &self.proc("stat")?);
        time.ok_or_else(|| io::Error::other("the kernel does not report its CPU time"))
    }

    fn cpu_percent(&self, during: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
        let (before, start) = (self.cpu_time()?, Instant::now());
        during()?;
        Ok(cpu_percent(before, self.cpu_time()?, start.elapsed().into()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A directory with this machine's `/proc` and `/sys`, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("eke-bench-agent-{}", std::process::id()));
        let make = fs::create_dir(&path).map(|()| Self(path.clone()));
        let linked = make.and_then(|place| {
            symlink("/proc", path.join("proc"))?;
            symlink("/sys", path.join("sys"))?;
            Ok(place)
        });
        linked.map_err(|source| Error::Directory { path, source })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Symbolic links are removed, not followed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(resident_mib: f64, idle_percent: f64) -> Usage {
        Usage { resident_mib, peak_mib: 4.0, proportional_mib: 2.0, idle_percent, asked_percent: 9.0 }
    }

    fn report(usage: &[Usage]) -> Report {
        Report { experiment: "agent".into(), rows: rows(usage, 30), ..Report::default() }
    }

    #[test]
    fn medians_above_the_limits_are_reported() {
        assert_eq!(excesses(&report(&[usage(3.0, 0.01), usage(99.0, 9.0), usage(3.1, 0.02)])), [""; 0]);
        let messages = excesses(&report(&[usage(8.0, 0.3)]));
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0], "The agent's CPU (idle) is 0.300 % of one CPU, but must be below 0.2.");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_leaves_nothing() {
        let error = run(Path::new("/nowhere/eke-agent"), 1).unwrap_err().to_string();
        assert!(error.starts_with("the agent /nowhere/eke-agent cannot be measured: "), "{error}");
        assert!(!std::env::temp_dir().join(format!("eke-bench-agent-{}", std::process::id())).exists());
    }
}
