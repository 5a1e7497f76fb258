//! The agent's work while a plan is applied: maintenance of eke's zram devices, and growth.
//!
//! # Layout
//! - [`facts`]: the devices and the machine's load, as data; read by [`facts::read`]
//! - [`action`]: actions on a device, as data
//! - [`maintain`]: what to recompress or write back and when; pure, with its state as data
//! - [`gate`]: may maintenance use CPU and disk now; pure
//! - [`relief`]: what to write back at once while memory is short; pure
//! - [`proactive`]: how many idle pages to swap out before memory is short; pure
//! - [`grow`]: whether to add a device; pure
//! - [`retrain`]: when to train the dictionary anew; [`generations`]: which device of an older one to remove; both pure
//! - [`replacement`]: does both
//! - [`ledger`]: bytes written to the backing device today; pure
//! - [`act`]: performs actions through the kernel
//!
//! Invariants: only eke's devices, by the journal, are touched. Never more than the day's budget is written to a disk, not even across a crash. While
//! the gate is closed nothing is recompressed or swapped out early, and nothing written back but by [`relief`].

pub mod act;
pub mod action;
pub mod facts;
pub mod gate;
pub mod generations;
pub mod grow;
pub mod ledger;
pub mod maintain;
pub mod proactive;
pub mod relief;
mod replacement;
pub mod retrain;

use std::thread::{self, JoinHandle};

use eke_apply::swapped_off::Off;
use eke_linux::{Error, Root};
use eke_model::config::SwapSettings;
use eke_model::model::Model;
use eke_model::sample::{Sample, SwapArea};
use eke_model::snapshot::Message;
use eke_model::step::{PlannedStep, ZramSpec};
use eke_model::units::Bytes;

use act::ActionOutcome;
use action::Action;
use facts::{Facts, MachineLoad};
use grow::Like;
use maintain::Now;

use crate::measure::Dictionary;

/// The pause after an attempt to add a device.
const GROW_PAUSE_MS: u64 = 600_000;

/// A round needs hardly any stack.
const STACK_BYTES: usize = 128 << 10;

/// One tick of the agent.
#[derive(Debug)]
pub struct Tick<'a> {
    /// The machine.
    pub root: &'a Root,
    /// The user's settings.
    pub settings: &'a SwapSettings,
    /// The tick's sample.
    pub now: &'a Sample,
    /// The sample of the tick before.
    pub before: &'a Sample,
    /// The rates between both samples.
    pub model: &'a Model,
    /// Seconds since 1970, for the wear ledger's day.
    pub unix_s: u64,
}

/// The state from tick to tick.
#[derive(Debug, Default)]
pub struct Live {
    maintenance: maintain::State,
    proactive: proactive::State,
    relief: relief::State,
    /// A round of relief. It has a thread of its own: while memory is short a disk may take long, and the guard must not wait for it.
    round: Option<JoinHandle<(Action, ActionOutcome)>>,
    replacement: replacement::Replacement,
    grow_not_before_ms: u64,
    /// The zram devices in use as swap when the journal was last read, with their sizes; `None` before that.
    known: Option<Vec<(String, Bytes)>>,
    /// Those of them that eke made.
    own: Vec<(String, ZramSpec)>,
    /// Those that eke made and somebody else swapped off or removed.
    off: Vec<Off>,
    /// The kept dictionary of the newest of `own`: this keeps it in RAM, and for the devices that follow.
    dictionary: Option<Dictionary>,
}

impl Live {
    /// Decides and acts; returns messages for the log.
    pub fn tick(&mut self, tick: &Tick<'_>) -> Vec<Message> {
        let mut messages = self.find_own(tick);
        if self.own.is_empty() {
            return messages;
        }
        messages.extend(self.relieve(tick));
        let mut facts = facts::read(tick.root, tick.settings, tick.now, &self.own);
        self.draining().into_iter().for_each(|name| facts.leaves(name));
        let load = MachineLoad::new(tick.now, tick.before, tick.model);
        if self.round.is_none() {
            messages.extend(self.maintain(tick, &facts, &load));
            if tick.settings.proactive {
                messages.extend(self.swap_idle_out(tick, &facts, &load));
            }
        }
        messages.extend(self.grow(tick, &facts, &load));
        messages.extend(self.replacement.tick(tick, &facts, &load, &self.own));
        messages
    }

    /// Writes back at once if memory is short; also called between ticks, then `before` and `model` are those of the last tick.
    pub fn relieve(&mut self, tick: &Tick<'_>) -> Vec<Message> {
        let mut messages = self.end_of_round(tick.now.time_ms);
        let load = MachineLoad::new(tick.now, tick.before, tick.model);
        let is_short = relief::is_short(&load);
        if is_short {
            self.interrupt_drain();
        } else {
            self.relief.end_pass();
        }
        let is_needed = is_short && !self.own.is_empty() && self.round.is_none();
        let day = tick.unix_s / 86_400;
        let action = is_needed.then(|| {
            let facts = facts::read(tick.root, tick.settings, tick.now, &self.own);
            let left_units = act::ledger(tick.root, day).left_units(day, facts.writeback_a_day);
            self.relief.next(&facts, &load, left_units, tick.now.time_ms)
        });
        if let Some(action) = action.flatten() {
            let root = tick.root.clone();
            let round = thread::Builder::new().name("relief".into()).stack_size(STACK_BYTES);
            // Without memory for a thread there is none for a round.
            self.round = round
                .spawn(move || {
                    let outcome = act::perform(&root, &action, day);
                    (action, outcome)
                })
                .ok();
        }
        if self.round.is_none() {
            messages.extend(self.relief.told().map(Message::from));
        }
        messages
    }

    /// Notes a round that has ended.
    fn end_of_round(&mut self, now_ms: u64) -> Vec<Message> {
        let Some(round) = self.round.take_if(|round| round.is_finished()) else { return Vec::new() };
        let Ok((action, outcome)) = round.join() else { return Vec::new() };
        self.relief.note(&action, &outcome, now_ms);
        let failed = failure(&action, &outcome);
        failed.into_iter().collect()
    }

    /// The device being swapped off: it takes no more pages.
    pub fn draining(&self) -> Option<&str> {
        self.replacement.draining()
    }

    /// The machine needs its memory: the device being swapped off stays for now.
    pub fn interrupt_drain(&self) {
        self.replacement.interrupt_drain();
    }

    /// Whether the agent has to start a training ([`crate::retrain`]) now.
    pub fn takes_training(&mut self) -> bool {
        self.replacement.takes_training()
    }

    /// The training has ended.
    pub fn training_ended(&mut self) {
        self.replacement.training_ended();
    }

    /// As new, but for what still runs: a second round beside the first would count wrongly what was written.
    pub fn renew(&mut self) {
        *self = Self { round: self.round.take(), replacement: self.replacement.renewed(), ..Self::default() };
    }

    /// Reads the journal again only if the zram devices changed; returns a message for each of eke's that is newly off.
    fn find_own(&mut self, tick: &Tick<'_>) -> Vec<Message> {
        let named = |area: &SwapArea| Some((area.zram_name()?.to_owned(), area.size));
        let areas: Vec<_> = tick.now.swaps.iter().filter_map(named).collect();
        if self.known.as_ref() != Some(&areas) {
            let names: Vec<String> = areas.iter().map(|(name, _)| name.clone()).collect();
            self.own = act::made_by_eke(tick.root, &names);
            act::forget_older_dictionaries(tick.root, &self.own);
            self.dictionary = act::dictionary(tick.root, &self.own);
            self.known = Some(areas);
        } else if self.off.is_empty() {
            return Vec::new();
        }
        // What is off already may still be removed.
        let before = std::mem::replace(&mut self.off, act::swapped_off(tick.root));
        let newly = self.off.iter().filter(|off| !before.contains(off));
        newly.map(|off| Message::important(sentence_of(off))).collect()
    }

    fn maintain(&mut self, tick: &Tick<'_>, facts: &Facts, load: &MachineLoad) -> Vec<Message> {
        let now = Now { ms: tick.now.time_ms, day: tick.unix_s / 86_400 };
        let ledger = act::ledger(tick.root, now.day);
        let decision = maintain::decide(facts, load, &ledger, &self.maintenance, now);
        self.maintenance = decision.state;
        let messages = decision.actions.iter().filter_map(|action| self.perform(tick, action, now));
        decision.message.into_iter().map(Message::from).chain(messages).collect()
    }

    fn perform(&mut self, tick: &Tick<'_>, action: &Action, now: Now) -> Option<Message> {
        let outcome = act::perform(tick.root, action, now.day);
        failure(action, &outcome).or(self.maintenance.note(action, &outcome, now.ms).map(Message::from))
    }

    fn swap_idle_out(&mut self, tick: &Tick<'_>, facts: &Facts, load: &MachineLoad) -> Option<Message> {
        let now = proactive::Now {
            ms: tick.now.time_ms,
            out_pages: tick.now.vm.pswpout,
            returned_pages: tick.now.vm.refault_anon,
            page_bytes: tick.now.page_bytes,
            in_use: tick.model.ram.saturating_sub(tick.model.available),
            interval_s: tick.model.interval_s,
        };
        let decision = proactive::decide(facts, load, &self.proactive, now);
        self.proactive = decision.state;
        let noted = decision.request.and_then(|request| {
            let outcome = act::reclaim(tick.root, request);
            self.proactive.note(request, &outcome, now.ms)
        });
        noted.or(decision.message)
    }

    fn grow(&mut self, tick: &Tick<'_>, facts: &Facts, load: &MachineLoad) -> Option<Message> {
        if tick.now.time_ms < self.grow_not_before_ms {
            return None;
        }
        let may_wait = self.maintenance.is_busy() && gate::closed_by(facts, load).is_none();
        let (added, planned) = self.add(tick, facts, may_wait)?;
        self.grow_not_before_ms = tick.now.time_ms + GROW_PAUSE_MS;
        Some(match added {
            Ok(device) => format!("Swap on {device} was added. {}", planned.reason.text).into(),
            Err(e) => Message::important(format!("No further zram device could be added: {e}.")),
        })
    }

    /// Adds a device like the newest one. If that fails with its dictionary, without: until Linux 6.15 the kernel takes the memory for one without
    /// reclaiming any (zstd_custom_alloc, backend_zstd.c), and answers EINVAL while memory is short, which it is when areas are full.
    fn add(
        &self,
        tick: &Tick<'_>,
        facts: &Facts,
        may_wait: bool,
    ) -> Option<(Result<String, Error>, PlannedStep)> {
        let (_, newest) = generations::split(&self.own);
        let (device, spec) = newest.first()?;
        let kept = self.dictionary.as_ref().map(Dictionary::path);
        let mut like =
            Like { device, spec, dictionary: kept.as_deref().ok_or("its copy in /run/eke is gone") };
        let planned = grow::decide(facts, tick.model, like, may_wait)?;
        let added = act::grow(tick.root, &planned).transpose()?;
        let refused = added.as_ref().err().filter(|_| like.dictionary.is_ok()).map(ToString::to_string);
        let Some(why) = refused else { return Some((added, planned)) };
        like.dictionary = Err(&why);
        let planned = grow::decide(facts, tick.model, like, may_wait)?;
        Some((act::grow(tick.root, &planned).transpose()?, planned))
    }
}

fn sentence_of(off: &Off) -> String {
    let name = &off.name;
    match off.is_removed {
        true => {
            format!("{name} was removed by somebody else; `eke down` and then `eke up` set swap up again.")
        }
        false => format!("{name} was swapped off by somebody else; `eke up` swaps it on again."),
    }
}

fn failure(action: &Action, outcome: &ActionOutcome) -> Option<Message> {
    let ActionOutcome::Failed(why) = outcome else { return None };
    Some(Message::important(format!("Maintenance of {} stopped at \"{action}\": {why}.", action.device())))
}
