//! Applies a variant's setting until it is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use eke_bench_core::Environment;
use eke_io::compare::setting::Setting;
use eke_io::knobs::named;
use rustix::process::{Pid, Signal, kill_process};

use super::plan::Variant;
use super::{Error, SENSOR};

/// A variant in force. Drop restores the old setting.
#[derive(Debug)]
pub enum Applied {
    /// The kernel's defaults: nothing to restore.
    Nothing,
    /// A changed setting.
    Setting(Setting),
    /// The governor, which restores everything when it ends.
    Governor(Governor),
}

/// The governor's process, and the thread that reads its events.
#[derive(Debug)]
pub struct Governor {
    child: Child,
    changes: Option<JoinHandle<Vec<String>>>,
}

impl Applied {
    /// Applies a variant to a disk.
    ///
    /// # Errors
    /// This kernel lacks the setting, or the governor cannot be started.
    pub fn apply(environment: &Environment<'_>, variant: Variant, device: &str) -> Result<Self, Error> {
        let set = |knob: &str, value: &str| {
            let knob = named(knob).map_err(Error::Usage)?;
            let setting = Setting::new(environment.root, knob, device)?;
            setting.set(value)?;
            Ok(Self::Setting(setting))
        };
        match variant {
            Variant::Default => Ok(Self::Nothing),
            Variant::Scheduler(name) => set("scheduler", name),
            Variant::Idle => set("scheduler", "bfq"),
            Variant::NoThrottle => set("wbt_lat_usec", "0"),
            Variant::Throttle => set("wbt_lat_usec", "2000"),
            Variant::Eke => govern(environment, device).map(Self::Governor),
        }
    }
}

fn govern(environment: &Environment<'_>, device: &str) -> Result<Governor, Error> {
    let program = environment.installed(SENSOR);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(&program).args([
        "govern",
        "--now-only",
        "--device",
        device,
    ]);
    if !environment.root.is_host() {
        command.arg("--root").arg(environment.root.path(""));
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child =
        child.map_err(|e| Error::Program { program: program.display().to_string(), why: e.to_string() })?;
    let changes =
        child.stdout.take().map(|out| std::thread::spawn(move || read_changes(BufReader::new(out))));
    Ok(Governor { child, changes })
}

/// The governor's changes with their reasons: `what` of `{"event": "changed", "disk": "loop0", "what": "..."}`.
fn read_changes(out: impl BufRead) -> Vec<String> {
    let lines = out.lines().map_while(Result::ok);
    lines
        .filter_map(|line| {
            let event: serde_json::Value = serde_json::from_str(&line).ok()?;
            (event["event"] == "changed").then(|| event["what"].as_str().map(str::to_owned))?
        })
        .collect()
}

impl Applied {
    /// Restores the old setting. Returns the governor's changes, in order.
    pub fn end(mut self) -> Vec<String> {
        let Self::Governor(governor) = &mut self else { return Vec::new() };
        governor.end();
        governor.changes.take().and_then(|changes| changes.join().ok()).unwrap_or_default()
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        if let Self::Governor(governor) = self {
            governor.end();
        }
    }
}

impl Governor {
    fn end(&mut self) {
        let child = &mut self.child;
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        // Changing a setting waits until the queue is empty.
        for _ in 0..1_500 {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_read() {
        let output = concat!(
            "{\"event\":\"ready\",\"source\":\"bpf\"}\n",
            "{\"event\":\"changed\",\"disk\":\"loop0\",\"what\":\"a: 1 -> 2\"}\nno JSON\n",
            "{\"event\":\"trouble\",\"what\":\"b\"}\n"
        );
        assert_eq!(read_changes(output.as_bytes()), ["a: 1 -> 2"]);
    }
}
