//! A trace: who started what and when, and which parts of which files programs use. The form is in `docs/prefetch-trace.md`.

mod parse;
mod write;

use std::collections::BTreeMap;

pub use parse::{TraceError, parse};
pub use write::write;

pub use eke_prefetch_model::trace_text::Names;

use crate::predict::{Maps, MapsBuilder};
use eke_prefetch_model::happened::{Event, Happened};
use eke_prefetch_model::program::ProgramId;

/// What happened, and what programs use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// Events, in the order in which they were seen.
    pub happened: Vec<Happened>,
    /// The names of programs, any bytes.
    pub names: BTreeMap<ProgramId, Vec<u8>>,
    /// What programs use; of those that are not in it nothing is known.
    pub maps: Maps,
}

impl Trace {
    /// A trace of events with names; `maps` says what each program uses.
    pub fn new(happened: Vec<Happened>, names: BTreeMap<ProgramId, Vec<u8>>, maps: MapsBuilder) -> Self {
        Self { happened, names, maps: maps.build() }
    }

    /// How many starts it has.
    pub fn starts(&self) -> usize {
        self.happened.iter().filter(|happened| matches!(happened.event, Event::Start(_))).count()
    }
}
