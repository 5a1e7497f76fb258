//! Replaces a dictionary whose data has changed: asks for a training, and removes the device of an older dictionary when it may go.

use std::thread::{self, JoinHandle};

use eke_apply::swapoff::Interrupt;
use eke_linux::Error;
use eke_model::model::Model;
use eke_model::snapshot::Message;

use super::facts::{Facts, MachineLoad};
use super::generations::Own;
use super::{STACK_BYTES, Tick, act, gate, generations, relief, retrain};
use crate::retrain::{self as training, Record};

/// The pause after a device could not be removed.
const DRAIN_PAUSE_MS: u64 = 600_000;

/// The state from tick to tick.
#[derive(Debug, Default)]
pub struct Replacement {
    calm_since_ms: Option<u64>,
    ratio: retrain::State,
    /// What is known of the newest dictionary.
    known: Option<Known>,
    training: Training,
    /// A device being swapped off, which takes its time.
    drain: Option<Drain>,
    drain_not_before_ms: u64,
    /// Devices that are swapped off already, of a process that died before it removed them; `None`: not read.
    half_gone: Option<Vec<String>>,
}

#[derive(Debug)]
struct Drain {
    device: String,
    interrupt: Interrupt,
    thread: JoinHandle<Result<Option<String>, Error>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Training {
    #[default]
    None,
    /// The agent has to start it.
    Due,
    Runs,
}

/// The newest dictionary.
#[derive(Debug)]
struct Known {
    /// Its first device.
    device: String,
    /// `None`: nobody predicted a ratio.
    chosen_for: Option<f64>,
    tried_ms: Option<u64>,
    ratio_then: Option<f64>,
}

impl Replacement {
    /// Decides and acts on the devices that eke made, by the journal.
    pub fn tick(&mut self, tick: &Tick<'_>, facts: &Facts, load: &MachineLoad, own: &[Own]) -> Vec<Message> {
        let now_ms = tick.now.time_ms;
        let (older, newest) = generations::split(own);
        let is_calm = self.is_calm(facts, load, now_ms);
        let mut messages: Vec<Message> = self.end_of_drain(now_ms).into_iter().collect();
        if let Some((device, spec)) = newest.first().filter(|(_, spec)| spec.dictionary.is_some()) {
            messages.extend(self.learn(tick, device));
            if tick.settings.retrain && training::may_replace(spec).is_ok() {
                let may_train =
                    is_calm && older.is_empty() && load.available_share >= relief::LITTLE_AVAILABLE;
                messages.extend(self.train(tick, newest, may_train));
            }
        }
        self.begin_drain(tick, facts, (older, newest), is_calm);
        messages
    }

    /// Whether the agent has to start a training; it says when that has ended.
    pub fn takes_training(&mut self) -> bool {
        let is_due = self.training == Training::Due;
        if is_due {
            self.training = Training::Runs;
        }
        is_due
    }

    /// The training has ended: its record says how.
    pub fn training_ended(&mut self) {
        self.training = Training::None;
        self.known = None;
    }

    /// The device being swapped off.
    pub fn draining(&self) -> Option<&str> {
        self.drain.as_ref().map(|drain| drain.device.as_str())
    }

    /// The machine needs its memory: the device being swapped off stays for now.
    pub fn interrupt_drain(&self) {
        self.drain.iter().for_each(|drain| drain.interrupt.set());
    }

    /// As new, but for what still runs.
    pub fn renewed(&mut self) -> Self {
        Self { drain: self.drain.take(), training: std::mem::take(&mut self.training), ..Self::default() }
    }

    fn is_calm(&mut self, facts: &Facts, load: &MachineLoad, now_ms: u64) -> bool {
        let is_open = gate::closed_by(facts, load).is_none();
        self.calm_since_ms = self.calm_since_ms.or(Some(now_ms)).filter(|_| is_open);
        self.calm_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= gate::CALM_MS)
    }

    /// Reads the record when the newest device is another one, or a training has ended; says what it says, unless it is not complete yet.
    fn learn(&mut self, tick: &Tick<'_>, device: &str) -> Option<Message> {
        if self.known.as_ref().is_some_and(|known| known.device == device) {
            return None;
        }
        let record = Record::load(tick.root);
        self.known = Some(Known {
            device: device.to_owned(),
            chosen_for: training::chosen_for(tick.root, device),
            tried_ms: record.as_ref().map(|record| record.tried_ms),
            ratio_then: record.as_ref().and_then(|record| record.ratio_then),
        });
        record.filter(|_| self.training == Training::None).map(|record| record.sentence().into())
    }

    fn train(&mut self, tick: &Tick<'_>, newest: &[Own], is_calm: bool) -> Option<Message> {
        let known = self.known.as_mut()?;
        let chosen_for = known.chosen_for.filter(|_| self.training == Training::None)?;
        let stored = retrain::Stored::of(tick.now, newest.iter().map(|(name, _)| name.as_str()));
        let Known { tried_ms, ratio_then, .. } = *known;
        let now = retrain::Now { ms: tick.now.time_ms, is_calm, tried_ms, ratio_then };
        let (why, ratio) = retrain::decide(stored, chosen_for, now, self.ratio);
        self.ratio = ratio;
        let why = why?;
        (known.tried_ms, known.ratio_then) = (Some(now.ms), stored.ratio());
        Some(match training::begin(tick.root, now.ms, tick.unix_s, stored.ratio()) {
            Ok(()) => {
                self.training = Training::Due;
                why.into()
            }
            Err(e) => Message::important(format!("No new dictionary is trained: {e}.")),
        })
    }

    fn begin_drain(&mut self, tick: &Tick<'_>, facts: &Facts, generations: (&[Own], &[Own]), is_calm: bool) {
        if self.drain.is_some() || tick.now.time_ms < self.drain_not_before_ms {
            return;
        }
        let half_gone = self.half_gone.get_or_insert_with(|| act::half_gone(tick.root));
        let Model { ram, available, .. } = *tick.model;
        let next = half_gone.first().map(String::as_str);
        let next =
            next.or_else(|| generations::to_drain(generations, &facts.devices, (ram, available), is_calm));
        let Some(device) = next.map(str::to_owned) else { return };
        let (root, name, interrupt) = (tick.root.clone(), device.clone(), Interrupt::default());
        let interrupted = interrupt.clone();
        let builder = thread::Builder::new().name("drain".into()).stack_size(STACK_BYTES);
        let thread = builder.spawn(move || act::drain(&root, &name, &interrupted));
        self.drain = thread.ok().map(|thread| Drain { device, interrupt, thread });
    }

    fn end_of_drain(&mut self, now_ms: u64) -> Option<Message> {
        let Drain { device: name, thread, .. } = self.drain.take_if(|drain| drain.thread.is_finished())?;
        self.half_gone = None;
        let message = match thread.join().ok()? {
            Ok(None) => {
                return Some(
                    format!("{name} is removed: its pages are no longer in swap with the older dictionary.")
                        .into(),
                );
            }
            // Another eke has the journal, for seconds.
            Err(Error::Locked(_)) => return None,
            Ok(Some(why)) => format!("{name}, which has an older dictionary, stays for now: {why}.").into(),
            Err(e) => Message::important(format!(
                "{name}, which has an older dictionary, could not be removed: {e}."
            )),
        };
        self.drain_not_before_ms = now_ms + DRAIN_PAUSE_MS;
        Some(message)
    }
}
