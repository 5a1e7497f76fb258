//! What a variant changes, until it is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use eke_io::compare::setting::Setting;
use eke_io::knobs::named;
use rustix::process::{Pid, Signal, kill_process};

use super::plan::Variant;
use super::{Bench, Error};

/// What is in force.
#[derive(Debug)]
pub enum InForce {
    /// Nothing.
    Nothing,
    /// A setting, which goes back.
    Setting(Setting),
    /// The governor, which puts everything back when it ends.
    Governor(Governor),
}

/// The process, and what it says of the levers that it turns.
#[derive(Debug)]
pub struct Governor {
    child: Child,
    heard: Option<JoinHandle<Vec<String>>>,
}

impl InForce {
    /// Puts a variant in force on a disk.
    ///
    /// # Errors
    /// This kernel has no such setting, or the governor cannot be started.
    pub fn put(bench: &Bench<'_>, variant: Variant, device: &str) -> Result<Self, Error> {
        let set = |knob: &str, value: &str| {
            let knob = named(knob).map_err(Error::Usage)?;
            let setting = Setting::new(bench.root, knob, device)?;
            setting.set(value)?;
            Ok(Self::Setting(setting))
        };
        match variant {
            Variant::Default => Ok(Self::Nothing),
            Variant::Scheduler(name) => set("scheduler", name),
            Variant::Idle => set("scheduler", "bfq"),
            Variant::NoThrottle => set("wbt_lat_usec", "0"),
            Variant::Throttle => set("wbt_lat_usec", "2000"),
            Variant::Eke => govern(bench, device).map(Self::Governor),
        }
    }
}

fn govern(bench: &Bench<'_>, device: &str) -> Result<Governor, Error> {
    let program = &bench.sensor;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program).args([
        "govern",
        "--now-only",
        "--device",
        device,
    ]);
    if !bench.root.is_host() {
        command.arg("--root").arg(bench.root.path(""));
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child =
        child.map_err(|e| Error::Program { program: program.display().to_string(), why: e.to_string() })?;
    let heard = child.stdout.take().map(|out| std::thread::spawn(move || hear(BufReader::new(out))));
    Ok(Governor { child, heard })
}

/// What the governor changed, and why: `what` of `{"event": "changed", "disk": "loop0", "what": "..."}`.
fn hear(out: impl BufRead) -> Vec<String> {
    let said = out.lines().map_while(Result::ok);
    said.filter_map(|line| {
        let said: serde_json::Value = serde_json::from_str(&line).ok()?;
        (said["event"] == "changed").then(|| said["what"].as_str().map(str::to_owned))?
    })
    .collect()
}

impl InForce {
    /// Ends it; what the governor changed, in order.
    pub fn end(mut self) -> Vec<String> {
        let Self::Governor(governor) = &mut self else { return Vec::new() };
        governor.end();
        governor.heard.take().and_then(|heard| heard.join().ok()).unwrap_or_default()
    }
}

impl Drop for InForce {
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
        // a setting of a full queue takes as long as the queue is
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
    fn what_is_turned_is_heard_and_nothing_else() {
        let said = concat!(
            "{\"event\":\"ready\",\"source\":\"bpf\"}\n",
            "{\"event\":\"changed\",\"disk\":\"loop0\",\"what\":\"a: 1 -> 2\"}\nno JSON\n",
            "{\"event\":\"trouble\",\"what\":\"b\"}\n"
        );
        assert_eq!(hear(said.as_bytes()), ["a: 1 -> 2"]);
    }
}
