//! Applies a variant's settings until they are dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use eke_apply::session::Session;
use eke_bench_core::Environment;
use eke_io::compare::OWNER;
use eke_linux::Root;
use eke_model::step::{PlannedStep, Reason, Step};
use eke_model::units::Bytes;
use rustix::process::{Pid, Signal, kill_process};

use super::plan::Variant;
use super::{Error, SENSOR};

/// Dirty memory of a machine of 1 GiB, a tenth and a fifth of it: then writers meet the limits within seconds, on any machine.
pub const BACKGROUND: Bytes = Bytes::mib(80);
/// Above this, writers wait.
pub const DIRTY: Bytes = Bytes::mib(160);
/// The same in the variants with little dirty memory.
pub const LITTLE: (Bytes, Bytes) = (Bytes::mib(4), Bytes::mib(16));

/// A variant in force. Drop restores the old settings.
#[derive(Debug)]
pub struct Applied {
    #[expect(dead_code, reason = "restores the old settings when it is dropped")]
    settings: Settings,
    governor: Option<Governor>,
}

/// Changed settings, in the journal.
#[derive(Debug)]
struct Settings(Root);

/// The governor's process, and the thread that reads its events.
#[derive(Debug)]
pub struct Governor {
    child: Child,
    changes: Option<JoinHandle<Vec<String>>>,
}

impl Applied {
    /// Applies a variant to a disk. Every variant has its limits of dirty memory.
    ///
    /// # Errors
    /// This kernel lacks a setting, or the governor cannot be started.
    pub fn apply(environment: &Environment<'_>, variant: Variant, device: &str) -> Result<Self, Error> {
        let settings = Settings::set(environment.root, &settings(variant, device))?;
        let governor = if variant == Variant::Eke { Some(govern(environment, device)?) } else { None };
        Ok(Self { settings, governor })
    }

    /// Restores the old settings. Returns the governor's changes, in order.
    pub fn end(mut self) -> Vec<String> {
        let Some(governor) = &mut self.governor else { return Vec::new() };
        governor.end();
        governor.changes.take().and_then(|changes| changes.join().ok()).unwrap_or_default()
    }
}

/// The settings of a variant: knob, its target, value.
fn settings(variant: Variant, device: &str) -> Vec<(&'static str, &str, String)> {
    let (background, dirty) = match variant {
        Variant::Dirty | Variant::DirtyBfq => LITTLE,
        _ => (BACKGROUND, DIRTY),
    };
    let of_queue: &[(&str, &str)] = match variant {
        Variant::Default | Variant::Again | Variant::Dirty | Variant::Eke => &[],
        Variant::Scheduler(name) => &[("queue.scheduler", name)],
        Variant::Strict => &[("queue.scheduler", "bfq"), ("iosched.strict_guarantees", "1")],
        Variant::Idle | Variant::DirtyBfq => &[("queue.scheduler", "bfq")],
        Variant::NoThrottle => &[("queue.wbt_lat_usec", "0")],
        Variant::Throttle(_) => &[],
    };
    let mut all = vec![
        ("vm.dirty_bytes", "", dirty.0.to_string()),
        ("vm.dirty_background_bytes", "", background.0.to_string()),
    ];
    all.extend(of_queue.iter().map(|(knob, value)| (*knob, device, (*value).to_owned())));
    if let Variant::Throttle(us) = variant {
        all.push(("queue.wbt_lat_usec", device, us.to_string()));
    }
    all
}

impl Settings {
    fn set(root: &Root, all: &[(&str, &str, String)]) -> Result<Self, Error> {
        let settings = Self(root.clone());
        let mut session = Session::open(root, OWNER).map_err(eke_io::compare::Error::from)?;
        for (knob, target, value) in all {
            let reason = Reason::new("compared with other settings by eke bench io");
            let planned = PlannedStep { step: Step::set_at(knob, target, value), reason };
            session.apply(&planned).map_err(eke_io::compare::Error::from)?;
        }
        Ok(settings)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        if let Ok(mut session) = Session::open(&self.0, OWNER) {
            let _ = session.undo_own();
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

impl Drop for Applied {
    fn drop(&mut self) {
        if let Some(governor) = &mut self.governor {
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
    fn every_variant_has_limits_of_dirty_memory_and_what_its_name_says() {
        let of = |variant| {
            let all = settings(variant, "loop0").into_iter();
            all.map(|(knob, target, value)| format!("{knob} {target} {value}")).collect::<Vec<_>>()
        };
        let base = ["vm.dirty_bytes  167772160", "vm.dirty_background_bytes  83886080"];
        assert_eq!(
            (of(Variant::Default), of(Variant::Again), of(Variant::Eke)),
            (base.map(str::to_owned).into(), of(Variant::Default), of(Variant::Default))
        );
        let strict = ["queue.scheduler loop0 bfq", "iosched.strict_guarantees loop0 1"];
        assert_eq!(of(Variant::Strict)[2..], strict);
        assert_eq!(of(Variant::Throttle(500))[2..], ["queue.wbt_lat_usec loop0 500"]);
        let little =
            ["vm.dirty_bytes  16777216", "vm.dirty_background_bytes  4194304", "queue.scheduler loop0 bfq"];
        assert_eq!(of(Variant::DirtyBfq), little);
        for variant in Variant::ALL {
            assert!(settings(variant, "loop0").iter().all(|(name, ..)| eke_io::knobs::named(name).is_ok()));
        }
    }

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
