//! The oracle knows the next starts: no predictor is better.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::predict::{Bid, Chance, Maps, Predictor};
use crate::trace::Trace;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Number of future starts that it uses.
const AHEAD: usize = 32;

/// Knows the starts of a trace. It observes them in order, and predicts the later ones.
#[derive(Debug, Clone)]
pub struct Oracle {
    maps: Arc<Maps>,
    coming: VecDeque<ProgramId>,
}

impl Oracle {
    /// The oracle of a trace.
    pub fn new(trace: &Trace) -> Self {
        let starts = trace.happened.iter().filter_map(|happened| match happened.event {
            Event::Start(program) => Some(program),
            Event::Session | Event::Stop(_) => None,
        });
        Self { maps: Arc::new(trace.maps.clone()), coming: starts.collect() }
    }

    /// The next programs in order, each once.
    fn next(&self) -> Vec<ProgramId> {
        let mut next = Vec::new();
        for program in self.coming.iter().take(AHEAD) {
            if !next.contains(program) {
                next.push(*program);
            }
        }
        next
    }
}

impl Predictor for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn observe(&mut self, happened: &UserEvent) {
        if matches!(happened.event, Event::Start(_)) {
            self.coming.pop_front();
        }
    }

    fn chances(&mut self, _now_s: f64, _horizon_s: f64) -> Vec<Chance> {
        let next = self.next().into_iter().enumerate();
        next.map(|(at, program)| Chance { program, probability: 1.0 / (1.0 + at as f64) }).collect()
    }

    fn ranks_maps(&self) -> bool {
        true
    }

    fn bids(&mut self, _now_s: f64) -> Option<Vec<Bid>> {
        let mut taken = vec![false; self.maps.all().len()];
        let mut order = Vec::new();
        for program in self.next() {
            let mut its: Vec<usize> =
                self.maps.of(program).iter().copied().filter(|map| !taken[*map]).collect();
            its.sort_by_key(|map| (self.maps.all()[*map].bytes(), *map));
            its.iter().for_each(|map| taken[*map] = true);
            order.extend(its);
        }
        let count = order.len() as f64;
        let bid = |(at, map)| Bid { map, lnprob: at as f64 - count };
        Some(order.into_iter().enumerate().map(bid).collect())
    }
}
