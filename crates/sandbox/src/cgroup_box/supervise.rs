//! Supervises a box while its command runs.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_apply::cgroup::{Group, GroupStats};
use eke_linux::cgroup::Hierarchy;
use eke_linux::{Root, parse};
use eke_model::sample::VmCounters;
use eke_model::units::Bytes;
use rustix::io::Errno;

use super::charge::{charge, read_pools};
use super::child::{self, Running};
use super::meter::{Judgement, Meter};
use super::{BoxReport, BoxSpec, Error, Scope, Stall, SwapTraffic};

const TICK: Duration = Duration::from_millis(100);

struct Supervisor<'a> {
    root: &'a Root,
    group: &'a Group,
    meter: Meter,
    begun: Instant,
    most_swapped: Bytes,
    charged_for_most_swapped: Bytes,
}

/// How a run ended.
struct End {
    status: ExitStatus,
    over_budget: bool,
    interrupted: bool,
}

/// Starts the command in the group and supervises it to its end. The caller removes the group.
pub(super) fn run(
    root: &Root,
    spec: &BoxSpec,
    group: &Group,
    shutdown: &AtomicBool,
) -> Result<BoxReport, Error> {
    let before = machine_counters(root);
    let begun = Instant::now();
    let mut running = child::start(spec, group)?;
    let mut supervisor = Supervisor {
        root,
        group,
        meter: Meter::new(spec.memory),
        begun,
        most_swapped: Bytes(0),
        charged_for_most_swapped: Bytes(0),
    };
    let end = supervisor.watch(&mut running, shutdown);
    let seconds = supervisor.begun.elapsed().as_secs_f64();
    if end.is_err() {
        let _ = stop(group, &mut running);
    }
    let end = end?;
    let counters = group.stats()?;
    let mut report =
        supervisor.report(spec, &end, &counters, traffic(&counters, before, machine_counters(root)));
    report.seconds = seconds;
    report.stdout = running.output().map_err(Error::Lost)?;
    Ok(report)
}

impl Supervisor<'_> {
    fn watch(&mut self, running: &mut Running, shutdown: &AtomicBool) -> Result<End, Error> {
        loop {
            if let Some(status) = running.child.try_wait().map_err(Error::Lost)? {
                return Ok(End { status, over_budget: false, interrupted: false });
            }
            let interrupted = shutdown.load(Ordering::Relaxed);
            if interrupted || self.tick()? == Judgement::Kill {
                let status = stop(self.group, running)?;
                return Ok(End { status, over_budget: !interrupted, interrupted });
            }
            running.wait_at_most(TICK);
        }
    }

    fn tick(&mut self) -> Result<Judgement, Error> {
        let begun = self.begun.elapsed();
        let mut counters = self.group.stats()?;
        let charge = charge(counters.swapped, read_pools(self.root, self.group.hierarchy())?);
        self.meter.note(counters.usage, charge);
        self.note_swapped(counters.swapped, charge);
        if let Some(limit) = self.meter.next_limit(charge) {
            self.limit(limit)?;
            counters = self.group.stats()?;
        }
        Ok(self.meter.judge(begun, self.begun.elapsed(), counters.usage, charge))
    }

    fn note_swapped(&mut self, swapped: Bytes, charge: Bytes) {
        if swapped > self.most_swapped {
            self.most_swapped = swapped;
            self.charged_for_most_swapped = charge;
        }
    }

    /// EBUSY: cgroup v1 could not swap enough out, although [`Group::limit`] tried for a second; EINTR: a signal came. In both cases the old limit
    /// stays, and the box is judged by its usage.
    fn limit(&mut self, limit: Bytes) -> Result<(), Error> {
        match self.group.limit(limit) {
            Ok(()) => self.meter.limited(limit),
            Err(eke_linux::Error::Io { source, .. }) if may_pass(&source) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }

    fn report(&self, spec: &BoxSpec, end: &End, counters: &GroupStats, swap: SwapTraffic) -> BoxReport {
        let killed = end.status.signal() == Some(rustix::process::Signal::KILL.as_raw());
        BoxReport {
            command: spec.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            memory: spec.memory,
            cgroup: if self.group.hierarchy() == Hierarchy::V1 { 1 } else { 2 },
            exit_code: end.status.code(),
            signal: end.status.signal(),
            oom_killed: end.over_budget || (killed && !end.interrupted && counters.oom_kills > 0),
            oom_kills: counters.oom_kills + u64::from(end.over_budget),
            over_budget: end.over_budget,
            interrupted: end.interrupted,
            peak: self.meter.peak().max(counters.peak_usage.unwrap_or_default()),
            most_swapped: self.most_swapped,
            charged_for_most_swapped: self.charged_for_most_swapped,
            swap,
            major_faults: counters.major_faults,
            pressure: counters.pressure.map(|p| Stall { some_us: p.some_total_us, full_us: p.full_total_us }),
            ..BoxReport::default()
        }
    }
}

fn may_pass(error: &std::io::Error) -> bool {
    let errno = error.raw_os_error();
    errno == Some(Errno::BUSY.raw_os_error()) || errno == Some(Errno::INTR.raw_os_error())
}

/// Kills the box and waits for its command.
fn stop(group: &Group, running: &mut Running) -> Result<ExitStatus, Error> {
    let killed = group.kill();
    let _ = running.child.kill();
    let status = running.child.wait().map_err(Error::Lost)?;
    killed?;
    Ok(status)
}

fn machine_counters(root: &Root) -> VmCounters {
    parse::vmstat::parse(&root.read("proc/vmstat").unwrap_or_default())
}

fn traffic(counters: &GroupStats, before: VmCounters, after: VmCounters) -> SwapTraffic {
    match counters.swap_pages {
        Some((pages_in, pages_out)) => SwapTraffic { scope: Scope::Box, pages_in, pages_out },
        None => SwapTraffic {
            scope: Scope::Machine,
            pages_in: (after.pswpin + after.zswpin).saturating_sub(before.pswpin + before.zswpin),
            pages_out: (after.pswpout + after.zswpout).saturating_sub(before.pswpout + before.zswpout),
        },
    }
}
