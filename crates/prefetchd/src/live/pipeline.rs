//! The pipeline for both occasions of reading, at a program's start and ahead of it: probe, choose, schedule, read. Stages exchange plain data.
//!
//! ```text
//! program ─> probe ─ Residency ─> choose ─ ReadRequests ─> schedule ─ Jobs ─> read ─> FetchReport
//! ```

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::time::Duration;

use eke_linux::parse::cpu_list;
use eke_model::units::Bytes;

use super::ahead::Ahead;
use super::clock::unix_s;
use super::error::Error;
use super::launches::{ColdLaunch, cpu_so_far};
use super::notice::Notice;
use super::process::{CPU, DISKS, Process};
use super::starters_group;
use crate::choose::Candidates;
use crate::choose::candidates::{self, first, likely};
use crate::probe::prober::Residency;
use crate::read::FetchReport;
use crate::request::{Priority, ReadRequest};
use crate::trace::process;
use eke_prefetch_model::choose::{Allowance, Choice, ChoiceOutcome, Limit, Limits, Occasion, cpu_share};
use eke_prefetch_model::learn::{Exec, Now};
use eke_prefetch_model::pages::PAGE_BYTES;
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::predict::eke::HORIZONS_S;
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_store::{Decision, DecisionId};

/// Without any event a new choice is made after this, for pages that were evicted meanwhile.
const AGAIN: Duration = Duration::from_secs(600);
/// A choice ahead reads the store for at most this long: starts wait for it, and at a log-in it has 64 programs to read from a disk that is busy.
const LOADS_WITHIN: Duration = Duration::from_millis(100);

impl Process<'_> {
    /// A program has started: reads its missing pages, unless the start is left alone to measure the others. Most launches are warm, and end after the
    /// probe: whether these are left alone makes no difference, so they do not count.
    pub(super) fn prefetch_launch(&mut self, program: &Program, exec: &Exec, is_recorded: bool, now: Now) {
        let (id, cpu) = (program.id(), cpu_so_far());
        let chosen = self.choose_missing(id, exec, is_recorded, now);
        let was_missing = chosen.is_some() || self.reads.for_start.get(&id).is_some_and(|bytes| *bytes > 0);
        let is_outdated = self.is_changed(id) || self.library.is_first_of(id, self.owners.account(exec.uid));
        if self.effect.started(id, was_missing && !is_outdated) && was_missing {
            self.decided(vec![candidates::left_alone(id, unix_s(now))]);
        } else if let Some((requests, decisions)) = chosen.filter(|_| self.options.settings.at_exec) {
            let executed = exec.at.min(now.mono);
            let (name, exe) = (program.to_string(), program.exe.clone());
            let (pid, user) = (exec.pid, exec.uid);
            let cold = ColdLaunch { program: id, name, pid, exe, user, executed, cpu };
            self.schedule_launch(cold, requests);
            // For `explain`. The launch waits for the reads, not for this.
            self.decided(decisions);
        }
        // If nothing prefetches it, the program reads it itself.
        self.probe.set_whole(id, self.owners.account(exec.uid));
    }

    /// The reads for a start, with their decision; `None` if nothing is missing. A recorded start shows what eke gains, also if nothing is read at exec.
    fn choose_missing(
        &mut self,
        id: ProgramId,
        exec: &Exec,
        is_recorded: bool,
        now: Now,
    ) -> Option<(Vec<ReadRequest>, Vec<Decision>)> {
        let is_of_use = self.options.settings.at_exec || is_recorded;
        if !is_of_use || !self.reads.launches.is_due(id, now.mono) {
            return None;
        }
        let account = self.owners.account(exec.uid);
        let residency = self.probe.program(id, account);
        if residency == Some(Residency::Resident) {
            return None;
        }
        let room = starters_group::room(self.root, exec.pid).unwrap_or(Bytes(u64::MAX));
        let chosen = self.choose_launch(id, exec.uid, room, now)?;
        (residency == Some(Residency::Missing) || !self.is_resident(id, account)).then_some(chosen)
    }

    /// The default limits, with what eke costs the launch on this CPU.
    fn limits(&self, budget: Bytes, occasion: Occasion) -> Limits {
        let online = self.root.read("sys/devices/system/cpu/online").unwrap_or_default();
        let share = cpu_share(occasion, cpu_list::count(&online));
        let at_exec = if occasion == Occasion::Exec { self.cpu.at_exec.page_s() } else { 0.0 };
        let limits =
            if occasion == Occasion::Exec { Limits::at_exec(budget.0) } else { Limits::of(budget.0) };
        Limits { cpu_page_s: share * self.cpu.threads.page_s().max(at_exec), ..limits }
    }

    /// The memory that may be filled now.
    fn allowance(&mut self, occasion: Occasion, now: Now) -> Allowance {
        let root = self.root;
        let running = self.reads.ahead.as_ref().map_or(0, |going| going.fetch.report().fetched_bytes);
        let own = self.state.ahead.0 + self.state.at_exec.0 + running + self.reads.launches.fetched_bytes();
        let by_programs = self.reads.starting.read_bytes(now.mono, |pid| process::read_bytes(root, pid));
        self.memory.allowance(root, &self.options.settings, occasion, now, own + by_programs)
    }

    fn take_cpu_cost(&mut self, report: &FetchReport) {
        let (fetched, resident) = pages(report);
        if self.cpu.threads.push(Duration::from_micros(report.cpu_us), fetched, resident) {
            self.library.put_json_state(CPU, &self.cpu.threads);
        }
    }

    fn choose_at_exec(&mut self, program: &Candidates, budget: Bytes) -> Choice {
        let limits = self.limits(budget, Occasion::Exec);
        let choice = program.choose(&self.disks, &limits);
        let is_refused =
            choice.outcomes.iter().any(|(_, outcome)| matches!(outcome, ChoiceOutcome::CostsCpu { .. }));
        if is_refused && self.cpu.refusals.is_read() {
            return program.choose(&self.disks, &Limits { cpu_page_s: 0.0, ..limits });
        }
        choice
    }

    /// The reads with their decision, which holds if they are done; `None` if there is nothing to read. `room` is what the starter may read.
    pub(super) fn choose_launch(
        &mut self,
        id: ProgramId,
        user: u32,
        room: Bytes,
        now: Now,
    ) -> Option<(Vec<ReadRequest>, Vec<Decision>)> {
        self.disks.refresh();
        let account = self.owners.account(user);
        let mut known = self.library.program(id, now)?.for_account(account);
        self.disks.locate(&mut known.set);
        if self.is_changed(id) {
            self.effect.leave_out(id);
        }
        let allowance = self.allowance(Occasion::Exec, now);
        let program = Candidates::certain([known]);
        let choice = self.choose_at_exec(&program, allowance.budget.min(room));
        let decisions = program.decisions(&choice, Occasion::Exec, allowance, unix_s(now));
        if choice.reads.is_empty() {
            self.decided(decisions);
            return None;
        }
        let requests = program.requests_by_use(choice, user);
        self.probe.remember(program.sets(), account, &requests);
        Some((requests, decisions))
    }

    /// Probes the sample of the latest choice. A changed file makes the program due for learning.
    fn is_resident(&mut self, program: ProgramId, account: u32) -> bool {
        let residency = self.probe.sample_of(program, account);
        if residency == Some(Residency::Changed) {
            self.set_changed(program);
        }
        residency == Some(Residency::Resident)
    }

    pub(super) fn schedule_launch(&mut self, cold: ColdLaunch, requests: Vec<ReadRequest>) {
        self.disks.stop_watching();
        self.cpu.refusals.measured();
        if let Err(e) = self.reads.launches.begin(&self.scheduler, cold, requests, self.clock.now().mono) {
            self.notices.push(Notice::Trouble { what: Error::Begin(e).to_string() });
        }
    }

    pub(super) fn take_reports(&mut self, now: Now) {
        let (over, begun) = self.reads.launches.poll(&self.scheduler, now.mono);
        self.notices.extend(begun.err().map(|e| Notice::Trouble { what: Error::Begin(e).to_string() }));
        for over in over {
            self.take_cpu_cost(&over.report);
            // All of this process's work takes CPU time from the launch, not only the threads that read.
            let (fetched, resident) = pages(&over.report);
            self.cpu.at_exec.push(over.cpu, fetched, resident);
            self.state.at_exec = self.state.at_exec + Bytes(over.report.fetched_bytes);
            self.add_read_for(over.program, over.report.fetched_bytes);
            if !over.report.changed.is_empty() {
                self.set_changed(over.program);
            }
            self.notices.extend(over.notice);
        }
        if self.reads.ahead.as_ref().is_some_and(|going| going.fetch.is_over()) {
            let over = self.end_ahead(now);
            over.into_iter().for_each(|going| self.take_ahead(&going, now));
        }
    }

    /// Ends the fetch, and counts what it has read.
    pub(super) fn end_ahead(&mut self, now: Now) -> Option<Ahead> {
        let mut going = self.reads.ahead.take()?;
        going.fetch.stop();
        let report = going.fetch.report();
        self.state.ahead = self.state.ahead + Bytes(report.fetched_bytes);
        self.set_changed_of(going.programs.iter().map(|(id, ..)| *id), &report, now);
        going.take_all_read().into_iter().for_each(|read| self.pending.read(read, now.mono));
        Some(going)
    }

    pub(super) fn take_ahead(&mut self, going: &Ahead, now: Now) {
        let report = going.fetch.report();
        self.take_cpu_cost(&report);
        if report.is_whole() && !going.was_short {
            going.programs.iter().for_each(|(id, ..)| self.probe.set_whole(*id, going.account));
        }
        self.notices.push(going.event());
        // Resident pages used none of the budget, so choose more.
        if going.was_short && report.fetched_bytes > 0 && report.resident_bytes > report.fetched_bytes {
            self.reads.due.change(now.mono);
        }
        self.done.choice = now.mono;
    }

    pub(super) fn measure(&mut self, now: Now) {
        if self.reads.ahead.is_some() || self.reads.launches.is_busy() {
            return;
        }
        let mut reports = self.disks.take_watched(now.mono);
        reports.extend(self.disks.poll(now.mono));
        if reports.iter().any(|report| report.is_new) {
            self.scheduler.set_profiles(self.disks.profiles());
            self.library.put_state(DISKS.0, DISKS.1, &self.disks.to_state());
            self.reads.due.change(now.mono);
        }
        self.notices.extend(reports.into_iter().map(Notice::from));
    }

    /// Any program's launch shows what reads cost, unless eke reads meanwhile.
    pub(super) fn watch_launch(&mut self, now: Now) {
        if self.reads.ahead.is_none() && !self.reads.launches.is_busy() {
            self.disks.watch_launch(now.mono);
        }
    }

    pub(super) fn is_choice_due(&self, now: Now) -> bool {
        let since = now.mono.saturating_sub(self.done.choice);
        let is_due =
            self.reads.due.is_due(now.mono) && since >= self.options.between_choices || since >= AGAIN;
        // During a fetch at exec the disk belongs to the launch.
        is_due && self.options.settings.ahead && !self.reads.launches.is_busy()
    }

    /// Reads what predicted launches will need. A running fetch continues unless there are new reads.
    pub(super) fn prefetch_ahead(&mut self, now: Now) {
        let occasion = self.reads.due.take().unwrap_or(Occasion::Ahead);
        self.done.choice = now.mono;
        self.disks.refresh();
        let allowance = self.allowance(occasion, now);
        self.state.off = allowance.limit.map(why_off).or_else(|| self.scheduler.stuck().why_off());
        if allowance.budget.0 == 0 {
            self.end_ahead(now);
            return;
        }
        let (resident, rest) = self.probe_likely(occasion, now);
        let candidates = self.candidates(&rest, occasion, now);
        let choice = candidates.choose(&self.disks.awake(now.mono), &self.limits(allowance.budget, occasion));
        let programs = candidates.chosen(&choice);
        let mut decisions = candidates.decisions(&choice, occasion, allowance, unix_s(now));
        let already = |c: &Chance| candidates::already_resident(c, occasion, allowance, unix_s(now));
        decisions.extend(resident.iter().map(already));
        let numbers = self.decided(decisions);
        let account = self.predictor.user();
        let requests = candidates.requests(&choice, account);
        self.probe.remember(candidates.sets(), account, &requests);
        if !requests.is_empty() {
            self.end_ahead(now);
            let begun = self.schedule_ahead(requests, programs, candidates::is_short(&choice));
            self.reads.ahead = begun.map(|begun| begun.with(numbers, account));
        }
    }

    /// The likeliest programs, split into those with resident files and the first of the others.
    fn probe_likely(&mut self, occasion: Occasion, now: Now) -> (Vec<Chance>, Vec<Chance>) {
        let chances = self.predictor.chances(self.local_s(now), HORIZONS_S[1]);
        let (library, effect, wrappers, user) =
            (&self.library, &mut self.effect, &self.wrappers, self.predictor.user());
        let mut cold = |id| {
            let cold = library.cold_launch(id).filter(|_| !library.seems_brief(id))?;
            (!wrappers.is_wrapper(id, user) && !effect.is_left_alone(id)).then_some(cold)
        };
        let likely = likely(&chances, occasion, &mut cold);
        let awake = self.disks.awake(now.mono);
        let may_open = |file: &ReadRequest| awake.have(&file.path, file.kind);
        let resident = self.probe.resident(likely.iter().map(|chance| chance.program), user, &may_open);
        resident.iter().for_each(|id| self.pending.is_chosen_still(*id, now.mono));
        let (resident, missing) =
            likely.into_iter().partition(|chance: &Chance| resident.contains(&chance.program));
        (resident, first(missing, occasion))
    }

    /// These programs with their stored file sets: the first ones, as many as are read within [`LOADS_WITHIN`]. The next choice has the others, too: then the
    /// first ones are in memory.
    pub(super) fn candidates(&mut self, chances: &[Chance], occasion: Occasion, now: Now) -> Candidates {
        let (mut known, began, user) = (Vec::new(), self.clock.now().mono, self.predictor.user());
        for (nth, chance) in chances.iter().enumerate() {
            if nth > 0 && self.clock.now().mono.saturating_sub(began) >= LOADS_WITHIN {
                self.reads.due.go_on(occasion, now.mono);
                break;
            }
            let Some(program) = self.library.program(chance.program, now) else { continue };
            let mut program = program.for_account(user);
            self.disks.locate(&mut program.set);
            known.push((chance.probability, program));
        }
        Candidates::new(known)
    }

    pub(super) fn schedule_ahead(
        &mut self,
        requests: Vec<ReadRequest>,
        programs: Vec<(ProgramId, String, u64)>,
        was_short: bool,
    ) -> Option<Ahead> {
        self.disks.stop_watching();
        let requested_bytes = requests.iter().map(|request| request.pages.bytes()).sum();
        match self.scheduler.start(requests, Priority::Ahead) {
            Ok(fetch) => Some(Ahead::new(fetch, requested_bytes, programs, was_short)),
            Err(e) => {
                self.notices.push(Notice::Trouble { what: Error::Begin(e).to_string() });
                None
            }
        }
    }

    /// Stores decisions whose outcome is new: each event brings a dozen, most of them unchanged.
    pub(super) fn decided(&mut self, mut decisions: Vec<Decision>) -> BTreeMap<ProgramId, DecisionId> {
        decisions.retain(|new| {
            let kind = discriminant(&new.outcome);
            self.reads.outcomes.insert(new.program, kind) != Some(kind)
        });
        let numbers = self.library.add_decisions(&decisions);
        decisions.iter().map(|decision| decision.program).zip(numbers).collect()
    }
}

/// Pages that were read from the disk, and that were in memory.
fn pages(report: &FetchReport) -> (u64, u64) {
    (report.fetched_bytes / PAGE_BYTES, report.resident_bytes / PAGE_BYTES)
}

fn why_off(limit: Limit) -> String {
    match limit {
        Limit::Battery => "on battery (`on_battery` in [prefetch])".to_owned(),
        Limit::Refaults { per_s, .. } => {
            format!("memory is short: the kernel rereads {per_s:.0} evicted pages a second")
        }
        Limit::Memory { available, reserve } => {
            format!("{available} of memory is available, and the reserve is {reserve}")
        }
    }
}
