//! A trace as text: whole, or row by row while it is recorded.

use super::name::Names;
use super::{HEADER, Trace};
use crate::happened::{Event, Happened};
use crate::pages::Span;

/// The line that a trace begins with.
pub fn header() -> String {
    format!("{HEADER}\n")
}

/// The row of an event; `program` is the name of its program, which a session has none of. Times are written to the millisecond.
pub fn happened_row(happened: &Happened, program: &[u8], names: Names) -> String {
    let Happened { at_s, user, event } = happened;
    let at = format!("{at_s:.3}");
    let program = names.field(program);
    match event {
        Event::Session => format!("session,{at},{user}\n"),
        Event::Start(_) => format!("start,{at},{user},{program}\n"),
        Event::Stop(_) => format!("stop,{at},{user},{program}\n"),
    }
}

/// The row of a part of a file that a program uses.
pub fn map_row(program: &[u8], file: &[u8], span: Span, names: Names) -> String {
    format!("map,{},{},{},{}\n", names.field(program), names.field(file), span.first, span.pages())
}

/// A whole trace: events in order, then maps by program. A trace that was read and had its names hashed keeps those hashes if they are written
/// plain.
pub fn write(trace: &Trace, names: Names) -> String {
    let name = |program| trace.names.get(&program).map_or(&b"?"[..], Vec::as_slice);
    let mut text = header();
    for happened in &trace.happened {
        let program = match happened.event {
            Event::Start(program) | Event::Stop(program) => name(program),
            Event::Session => b"",
        };
        text.push_str(&happened_row(happened, program, names));
    }
    for program in trace.maps.programs() {
        for map in trace.maps.of(program).iter().map(|map| trace.maps.all()[*map]) {
            let file = super::unescaped(&trace.maps.files()[map.file]).unwrap_or_default();
            text.push_str(&map_row(name(program), &file, map.span, names));
        }
    }
    text
}
