//! Replays one trace through one predictor.

use std::collections::VecDeque;

use super::choose::{Choice, by_bids, fill, ranking};
use super::memory::Memory;
use super::rank::Ranks;
use super::{Order, Row, Settings};
use crate::predict::{Predictor, Reading};
use crate::trace::Trace;
use eke_prefetch_model::predict::running::Running;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Number of cycles to decide after an event, in addition to the last one before the next event.
const AFTER_EVENT: i64 = 3;

/// The orders of the choice that all predictors share.
const COMMON: [Order; 2] = [Order::Probability, Order::PerByte];

/// The effect of an event on memory.
pub enum Life {
    /// The machine boots: memory is empty.
    Boot,
    /// A program starts that was not running.
    Start(ProgramId),
    /// Anything else.
    Other,
}

/// Each event with its effect.
pub fn lives(trace: &Trace) -> impl Iterator<Item = (&UserEvent, Life)> {
    let mut running = Running::default();
    trace.happened.iter().map(move |happened| {
        let none = running.all().next().is_none();
        let changed = running.observe(happened);
        let life = match happened.event {
            Event::Session if none => Life::Boot,
            Event::Start(program) if changed => Life::Start(program),
            _ => Life::Other,
        };
        (happened, life)
    })
}

/// The results of one predictor that starts without knowledge.
pub fn run(predictor: &mut dyn Predictor, trace: &Trace, settings: &Settings) -> Vec<Row> {
    run_with_progress(predictor, trace, settings, &mut || {})
}

/// The same; calls `progress` after each event.
pub fn run_with_progress(
    predictor: &mut dyn Predictor,
    trace: &Trace,
    settings: &Settings,
    progress: &mut dyn FnMut(),
) -> Vec<Row> {
    let mut run = Replay::new(predictor, trace, settings);
    let mut lives = lives(trace).peekable();
    while let Some((happened, life)) = lives.next() {
        run.take(happened, &life);
        // Simultaneous events get one decision, because reading takes time.
        if run.predictor.cycle_s().is_none()
            && lives.peek().is_none_or(|(next, _)| next.at_s != happened.at_s)
        {
            run.decide(happened.at_s);
        }
        progress();
    }
    run.memories.iter_mut().for_each(Memory::clear);
    let name = run.predictor.name();
    run.ranks.rows(name).into_iter().chain(run.memories.iter().flat_map(|memory| memory.rows(name))).collect()
}

struct Replay<'a> {
    predictor: &'a mut dyn Predictor,
    trace: &'a Trace,
    settings: &'a Settings,
    memories: Vec<Memory>,
    /// Choices that are being read: the time at which they are in memory, and one choice for each memory.
    coming: VecDeque<(f64, Vec<Choice>)>,
    ranks: Ranks,
    last_s: Option<f64>,
}

impl<'a> Replay<'a> {
    fn new(predictor: &'a mut dyn Predictor, trace: &'a Trace, settings: &'a Settings) -> Self {
        let own = predictor.ranks_maps().then_some(Order::Own);
        let orders = own.into_iter().chain(COMMON);
        let count = trace.maps.all().len();
        let of_order = |order: Order| {
            settings.budgets_bytes.iter().map(|budget| Memory::new(*budget, order, count)).collect::<Vec<_>>()
        };
        let memories = orders.flat_map(of_order).collect();
        Self {
            predictor,
            trace,
            settings,
            memories,
            coming: VecDeque::new(),
            ranks: Ranks::default(),
            last_s: None,
        }
    }

    fn take(&mut self, happened: &UserEvent, life: &Life) {
        let at_s = happened.at_s;
        if let Life::Boot = life {
            self.coming.clear();
            self.memories.iter_mut().for_each(Memory::clear);
        } else if let Some(cycle_s) = self.predictor.cycle_s() {
            cycles(self.last_s, at_s, cycle_s).into_iter().for_each(|tick_s| self.decide(tick_s));
        }
        self.land(at_s);
        if let Life::Start(program) = life {
            let chances = self.predictor.chances(at_s, self.settings.horizon_s);
            self.ranks.start(*program, &chances);
            let needs = self.trace.maps.of(*program);
            self.memories.iter_mut().for_each(|memory| memory.start(needs, &self.trace.maps));
        }
        self.predictor.observe(happened);
        self.last_s = Some(at_s);
    }

    /// Decides; the choice is in memory after the lead.
    fn decide(&mut self, now_s: f64) {
        let maps = &self.trace.maps;
        let chances = self.predictor.chances(now_s, self.settings.horizon_s);
        let own =
            self.predictor.bids(now_s).map(|bids| (Order::Own, by_bids(&bids), self.predictor.reading()));
        let common = COMMON.map(|order| (order, ranking(&chances, maps, order), Reading::default()));
        let ranked: Vec<_> = own.into_iter().chain(common).collect();
        let choose = |memory: &Memory| {
            let (ranking, reading) = ranked
                .iter()
                .find(|(order, ..)| *order == memory.order)
                .map_or((&[][..], Reading::default()), |(_, ranking, reading)| (ranking, *reading));
            fill(ranking, maps, memory.budget_bytes, reading)
        };
        let choices = self.memories.iter().map(choose).collect();
        self.coming.push_back((now_s + self.settings.lead_s, choices));
    }

    /// Moves choices that have been read into memory. A clock that jumped back delays nothing.
    fn land(&mut self, now_s: f64) {
        let there = |there_s: f64| there_s <= now_s || there_s > now_s + self.settings.lead_s;
        let count = self.coming.iter().take_while(|(there_s, _)| there(*there_s)).count();
        for (_, choices) in self.coming.drain(..count) {
            self.memories.iter_mut().zip(&choices).for_each(|(memory, choice)| memory.fill(choice));
        }
    }
}

/// The cycles to decide between two events: the first few, and the last.
fn cycles(last_s: Option<f64>, at_s: f64, cycle_s: f64) -> Vec<f64> {
    let Some(last_s) = last_s.filter(|last_s| *last_s <= at_s) else { return Vec::new() };
    let first = (last_s / cycle_s).floor() as i64 + 1;
    let last = (at_s / cycle_s).floor() as i64;
    let early = first..=last.min(first.saturating_add(AFTER_EVENT - 1));
    let late = (last > *early.end()).then_some(last);
    early.chain(late).map(|tick| tick as f64 * cycle_s).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cycles_after_an_event_and_the_last_before_one() {
        assert_eq!(cycles(Some(0.0), 200.0, 20.0), [20.0, 40.0, 60.0, 200.0]);
        assert_eq!(cycles(Some(5.0), 45.0, 20.0), [20.0, 40.0]);
        assert_eq!(cycles(Some(20.0), 20.0, 20.0), [] as [f64; 0]);
        assert_eq!(cycles(Some(50.0), 20.0, 20.0), [] as [f64; 0]);
        assert_eq!(cycles(None, 20.0, 20.0), [] as [f64; 0]);
    }
}
