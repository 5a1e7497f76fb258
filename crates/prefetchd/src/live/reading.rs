//! What the process reads: at an exec, and ahead.

use std::collections::BTreeMap;
use std::mem::discriminant;

use eke_model::units::Bytes;

use super::ahead::{self, Going, Weighed};
use super::at_exec::Cold;
use super::clock::unix_s;
use super::process::{DISKS, Error, Process};
use super::say::{Said, name};
use crate::fetch::glance::Seen;
use crate::fetch::{Ended, Haste};
use eke_prefetch_model::choose::{Limit, Occasion};
use eke_prefetch_model::learn::{Exec, Now};
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::predict::eke::HORIZONS_S;
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_store::{Decision, DecisionId};

impl Process<'_> {
    /// Most launches are warm, and a glance says so. Else all that is missing is read.
    pub(super) fn read_at_exec(&mut self, program: &Program, exec: &Exec, now: Now) {
        let id = program.id();
        if !self.options.settings.at_exec || !self.at_exec.is_due(id, now.mono) {
            return;
        }
        let seen = self.glances.look_if_whole(&self.fetcher, id);
        if seen != Some(Seen::There) {
            self.read_missing(program, exec, seen == Some(Seen::Missing), now);
        }
        // What it needs it reads itself, if nobody does.
        self.glances.set_whole(id, true);
    }

    fn read_missing(&mut self, program: &Program, exec: &Exec, is_cold: bool, now: Now) {
        let id = program.id();
        self.disks.refresh();
        let Some(known) = self.library.program(id, now) else { return };
        let allowance = self.looks.allowance(self.root, &self.options.settings, Occasion::Exec, now);
        let weighed = Weighed::certain([known]);
        let choice = weighed.choose(&self.disks, allowance.budget);
        if choice.wishes.is_empty() {
            self.decided(weighed.decisions(&choice, Occasion::Exec, allowance, unix_s(now)));
            return;
        }
        let wants = ahead::wants_by_use(choice);
        weighed.sets().for_each(|(id, set)| self.glances.remember(id, set, &wants));
        if !is_cold && self.is_there(id) {
            return;
        }
        let cold = Cold { program: id, name: name(program), pid: exec.pid, executed: exec.at.min(now.mono) };
        if let Err(e) = self.at_exec.begin(&self.fetcher, cold, wants, self.clock.now().mono) {
            self.said.push(Said::Trouble { what: Error::Begin(e).to_string() });
        }
    }

    /// A file that is another one now is learned again.
    fn is_there(&mut self, program: ProgramId) -> bool {
        let seen = self.glances.look(&self.fetcher, program);
        if seen == Some(Seen::Changed) {
            self.library.changed(program);
        }
        seen == Some(Seen::There)
    }

    pub(super) fn look_after_reading(&mut self, now: Now) {
        for over in self.at_exec.turn(now.mono) {
            self.state.at_exec = self.state.at_exec + Bytes(over.report.fetched_bytes);
            if over.report.changed > 0 {
                self.library.changed(over.program);
            }
            self.said.extend(over.said);
        }
        if let Some(going) = self.ahead.take_if(|going| going.fetch.is_over()) {
            self.read_ahead(&going, now);
        }
    }

    pub(super) fn read_ahead(&mut self, going: &Going, now: Now) {
        let report = going.fetch.report();
        self.state.ahead = self.state.ahead + Bytes(report.fetched_bytes);
        if report.changed > 0 {
            going.programs.iter().for_each(|(id, ..)| self.library.changed(*id));
        }
        if report.ended == Some(Ended::Done) && report.left_bytes == 0 && !going.was_short {
            going.programs.iter().for_each(|(id, ..)| self.glances.set_whole(*id, true));
        }
        self.said.push(ahead::said(going));
        // What was in memory already took no budget: there is more to choose.
        if going.was_short && report.fetched_bytes > 0 && report.there_bytes > report.fetched_bytes {
            self.due = self.due.or(Some(Occasion::Ahead));
        }
        self.done.choice = now.mono;
    }

    pub(super) fn measure(&mut self, now: Now) {
        if self.ahead.is_some() || self.at_exec.is_busy() {
            return;
        }
        if let Some(said) = self.disks.turn(now.mono) {
            self.fetcher.know(self.disks.figures());
            self.library.put_state(DISKS.0, DISKS.1, &self.disks.to_state());
            self.said.push(said);
            self.due = self.due.or(Some(Occasion::Ahead));
        }
    }

    pub(super) fn is_choice_due(&self, now: Now) -> bool {
        let since = now.mono.saturating_sub(self.done.choice);
        let is_due = self.due.is_some() && since >= self.options.between_choices || since >= ahead::AGAIN;
        // While a launch is read at exec, or learned, the disk is that one's.
        is_due && self.options.settings.ahead && !self.at_exec.is_busy()
    }

    /// What is under way goes on unless something else is wanted now.
    pub(super) fn choose(&mut self, now: Now) {
        let occasion = self.due.take().unwrap_or(Occasion::Ahead);
        self.done.choice = now.mono;
        self.disks.refresh();
        let allowance = self.looks.allowance(self.root, &self.options.settings, occasion, now);
        self.state.off = allowance.limit.map(why_off);
        if allowance.budget.0 == 0 {
            self.ahead = None;
            return;
        }
        let chances = self.predictor.chances(self.local_s(now), HORIZONS_S[1]);
        let likely = ahead::likely(&chances, &self.library);
        let there = self.glances.there(&self.fetcher, likely.iter().map(|chance| chance.program));
        let (there, rest): (Vec<_>, Vec<_>) = likely.iter().partition(|c| there.contains(&c.program));
        let weighed = Weighed::of(&rest, &mut self.library, now);
        let choice = weighed.choose(&self.disks, allowance.budget);
        let programs = weighed.chosen(&choice);
        let mut decisions = weighed.decisions(&choice, occasion, allowance, unix_s(now));
        let is_there = |c: &Chance| ahead::is_there(c, occasion, allowance, unix_s(now));
        decisions.extend(there.iter().map(is_there));
        there.iter().for_each(|c| self.pending.is_chosen_still(c.program, unix_s(now)));
        let numbers = self.decided(decisions);
        for (id, _, bytes) in &programs {
            self.pending.chosen(*id, *bytes, unix_s(now), numbers.get(id).copied());
        }
        let wants = ahead::wants(&choice);
        weighed.sets().for_each(|(id, set)| self.glances.remember(id, set, &wants));
        if wants.is_empty() {
            return;
        }
        match self.fetcher.start(wants, Haste::Ahead) {
            Ok(fetch) => self.ahead = Some(Going { fetch, programs, was_short: ahead::is_short(&choice) }),
            Err(e) => self.said.push(Said::Trouble { what: Error::Begin(e).to_string() }),
        }
    }

    /// Keeps what is new among decisions: each event brings a dozen, most of them as before.
    pub(super) fn decided(&mut self, mut decisions: Vec<Decision>) -> BTreeMap<ProgramId, DecisionId> {
        decisions.retain(|new| {
            let kind = discriminant(&new.verdict);
            self.verdicts.insert(new.program, kind) != Some(kind)
        });
        let numbers = self.library.decided(&decisions);
        decisions.iter().map(|decision| decision.program).zip(numbers).collect()
    }
}

fn why_off(limit: Limit) -> String {
    match limit {
        Limit::Battery => "on battery (`on_battery` in [prefetch])".to_owned(),
        Limit::Refaults { per_s, .. } => {
            format!("memory is short: {per_s:.0} pages a second are read again that were dropped")
        }
        Limit::Memory { available, reserve } => {
            format!("{available} of memory is available, and {reserve} of that is left alone")
        }
    }
}
