//! Writes a trace as text.

use eke_prefetch_model::trace_text::{Names, event_row, header, map_row, unescaped};
use eke_prefetch_model::user_event::Event;

use super::Trace;

/// Writes events in order, then maps by program. A trace that was read with hashed names keeps them if it is written
/// with plain names.
pub fn write(trace: &Trace, names: Names) -> String {
    let name = |program| trace.names.get(&program).map_or(&b"?"[..], Vec::as_slice);
    let mut text = header();
    for happened in &trace.happened {
        let program = match happened.event {
            Event::Start(program) | Event::Stop(program) => name(program),
            Event::Session => b"",
        };
        text.push_str(&event_row(happened, program, names));
    }
    for program in trace.maps.programs() {
        for map in trace.maps.of(program).iter().map(|map| trace.maps.all()[*map]) {
            let file = unescaped(&trace.maps.files()[map.file]).unwrap_or_default();
            text.push_str(&map_row(name(program), &file, map.span, names));
        }
    }
    text
}
