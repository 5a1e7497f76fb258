//! A trace: who started which program when, and which parts of files programs use. `docs/prefetch-trace.md` documents
//! the format.

mod parse;
mod write;

use std::collections::BTreeMap;

pub use parse::{TraceError, parse};
pub use write::write;

pub use eke_prefetch_model::trace_text::Names;

use crate::predict::{Maps, MapsBuilder};
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Events, and the files of programs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// Events in the order of observation.
    pub happened: Vec<UserEvent>,
    /// Names of programs, any bytes.
    pub names: BTreeMap<ProgramId, Vec<u8>>,
    /// The maps of programs; a program that is missing has none.
    pub maps: Maps,
}

impl Trace {
    /// A trace of events with names and maps.
    pub fn new(happened: Vec<UserEvent>, names: BTreeMap<ProgramId, Vec<u8>>, maps: MapsBuilder) -> Self {
        Self { happened, names, maps: maps.build() }
    }

    /// Its number of starts.
    pub fn starts(&self) -> usize {
        self.happened.iter().filter(|happened| matches!(happened.event, Event::Start(_))).count()
    }
}
