//! What a variant changes, until it is dropped.

use std::process::{Child, Command, Stdio};
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
    Governor(Child),
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

fn govern(bench: &Bench<'_>, device: &str) -> Result<Child, Error> {
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
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    child.map_err(|e| Error::Program { program: program.display().to_string(), why: e.to_string() })
}

impl Drop for InForce {
    fn drop(&mut self) {
        let Self::Governor(child) = self else { return };
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
