//! Runs fio, the usual program to measure disks: its command line and its output.

use std::path::Path;

use serde::Deserialize;

use super::device::command;
use super::error::{Error, Result};

/// One job with direct I/O on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// fio's `rw`.
    pub rw: &'static str,
    /// fio's `bs`.
    pub block: &'static str,
    /// fio's `iodepth`.
    pub depth: usize,
    /// The share of reads, if it does both.
    pub read_percent: Option<u32>,
}

/// The result of a job, both directions together.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
pub struct FioResult {
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
}

#[derive(Deserialize)]
struct Output {
    jobs: Vec<Directions>,
}

#[derive(Deserialize)]
struct Directions {
    read: FioResult,
    write: FioResult,
}

impl Job {
    fn args(&self, device: &Path, seconds: u32) -> Vec<String> {
        let mut args = [
            "--name=eke".to_owned(),
            format!("--filename={}", device.display()),
            format!("--rw={}", self.rw),
            format!("--bs={}", self.block),
            format!("--iodepth={}", self.depth),
            format!("--runtime={seconds}"),
            "--time_based".to_owned(),
            "--direct=1".to_owned(),
            "--ioengine=libaio".to_owned(),
            "--norandommap".to_owned(),
            "--output-format=json".to_owned(),
        ]
        .to_vec();
        args.extend(self.read_percent.map(|percent| format!("--rwmixread={percent}")));
        args
    }

    /// Runs the job.
    ///
    /// # Errors
    /// fio fails, or its output has no result.
    pub fn run(&self, device: &Path, seconds: u32) -> Result<FioResult> {
        let args = self.args(device, seconds);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let text = command("fio", &args)?;
        result(&text).ok_or_else(|| Error::Command {
            command: format!("fio {}", args.join(" ")),
            answer: format!("printed no results: {}", text.lines().next().unwrap_or_default()),
        })
    }
}

/// fio may print messages before its JSON.
fn result(text: &str) -> Option<FioResult> {
    let json = &text[text.find('{')?..];
    let output: Output = serde_json::from_str(json).ok()?;
    let Directions { read, write } = output.jobs.first()?;
    Some(FioResult { iops: read.iops + write.iops, bw_bytes: read.bw_bytes + write.bw_bytes })
}

/// Ensures that fio is installed. On Debian, root gets it installed.
///
/// # Errors
/// fio is missing; the error tells how to install it.
pub fn ensure() -> Result<()> {
    if command("fio", &["--version"]).is_ok() {
        return Ok(());
    }
    if rustix::process::geteuid().is_root() && command("apt-get", &["install", "-y", "fio"]).is_ok() {
        return Ok(());
    }
    Err(Error::Command {
        command: "fio --version".to_owned(),
        answer: "failed; install fio (Debian: apt-get install fio)".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_count() {
        let text = |r: f64, w: f64| {
            format!(
                "note: both iodepth\n{{\"fio version\":\"fio-3.33\",\"jobs\":[{{\"jobname\":\"eke\",\
                 \"read\":{{\"iops\":{r},\"bw_bytes\":{},\"bw\":1}},\"write\":{{\"iops\":{w},\"bw_bytes\":{}}}}}]}}",
                r * 4096.0,
                w * 4096.0
            )
        };
        assert_eq!(result(&text(100.0, 0.0)), Some(FioResult { iops: 100.0, bw_bytes: 409_600.0 }));
        assert_eq!(result(&text(0.0, 50.0)), Some(FioResult { iops: 50.0, bw_bytes: 204_800.0 }));
        assert_eq!(result(&text(70.0, 30.0)), Some(FioResult { iops: 100.0, bw_bytes: 409_600.0 }));
    }

    #[test]
    fn other_texts_have_no_result() {
        for text in ["", "fio: engine libaio not loadable", "{}", "{\"jobs\":[]}"] {
            assert_eq!(result(text), None, "{text}");
        }
    }

    #[test]
    fn jobs_use_direct_io() {
        let job = Job { rw: "randread", block: "4k", depth: 8, read_percent: None };
        let args = job.args(Path::new("/dev/loop3"), 5);
        for wanted in ["--filename=/dev/loop3", "--rw=randread", "--iodepth=8", "--direct=1"] {
            assert!(args.iter().any(|a| a == wanted), "{wanted} in {args:?}");
        }
    }
}
