//! A trace as text, row by row: which user started which program when, and which parts of which files programs use. `docs/prefetch-trace.md`
//! specifies the format.

mod name;

pub use name::{Names, escaped, unescaped};

use crate::pages::Span;
use crate::user_event::{Event, UserEvent};

/// The first line, without its newline.
pub const HEADER: &str = "eke-prefetch-trace,1";

/// The first line of a trace.
pub fn header() -> String {
    format!("{HEADER}\n")
}

/// The row of an event; `program` is the name of its program, unused for a session. Times have milliseconds.
pub fn event_row(happened: &UserEvent, program: &[u8], names: Names) -> String {
    let UserEvent { at_s, user, event } = happened;
    let at = format!("{at_s:.3}");
    let program = names.field(program);
    match event {
        Event::Session => format!("session,{at},{user}\n"),
        Event::Start(_) => format!("start,{at},{user},{program}\n"),
        Event::Stop(_) => format!("stop,{at},{user},{program}\n"),
    }
}

/// The row for a part of a file that a program uses.
pub fn map_row(program: &[u8], file: &[u8], span: Span, names: Names) -> String {
    format!("map,{},{},{},{}\n", names.field(program), names.field(file), span.first, span.pages())
}
