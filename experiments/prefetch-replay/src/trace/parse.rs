//! Parses a trace.

use std::collections::BTreeMap;

use thiserror::Error;

use super::Trace;
use crate::predict::{MapsBuilder, maps::span_of_bytes};
use eke_prefetch_model::pages::Span;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::trace_text::{HEADER, escaped, unescaped};
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Pages of the largest file: 16 TiB, the limit of ext4.
const MOST_PAGES: u64 = 1 << 32;

/// The first invalid line.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line} of the trace, {text:?}: {why}")]
pub struct TraceError {
    /// Its number, from 1.
    pub line: usize,
    /// Its beginning.
    pub text: String,
    /// What is wrong, and what would be valid.
    pub why: String,
}

/// Parses a trace in the format of `docs/prefetch-trace.md`.
///
/// # Errors
/// The first invalid line, with its number and the reason.
pub fn parse(text: &str) -> Result<Trace, TraceError> {
    let mut rows = Rows::default();
    let mut lines = text.lines().enumerate();
    let first = lines.next().map_or("", |(_, line)| line.trim_end());
    if first != HEADER {
        return Err(wrong(0, first, format!("a trace must begin with the line {HEADER}")));
    }
    for (at, line) in lines {
        let line = line.trim_end();
        if !line.is_empty() && !line.starts_with('#') {
            rows.take(line).map_err(|why| wrong(at, line, why))?;
        }
    }
    Ok(Trace::new(rows.happened, rows.names, rows.maps))
}

fn wrong(at: usize, line: &str, why: String) -> TraceError {
    TraceError { line: at + 1, text: line.chars().take(80).collect(), why }
}

#[derive(Default)]
struct Rows {
    happened: Vec<UserEvent>,
    names: BTreeMap<ProgramId, Vec<u8>>,
    maps: MapsBuilder,
}

impl Rows {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let fields: Vec<&str> = line.split(',').collect();
        match fields.as_slice() {
            ["session", at, user] => self.event(at, user, Event::Session),
            ["start", at, user, program] => {
                let program = self.program(program)?;
                self.event(at, user, Event::Start(program))
            }
            ["stop", at, user, program] => {
                let program = self.program(program)?;
                self.event(at, user, Event::Stop(program))
            }
            ["map", program, file, first, pages] => {
                let span =
                    span_of_pages(number("the first page", first)?, number("the number of pages", pages)?);
                self.map(program, file, span)
            }
            ["bytes", program, file, offset, length] => {
                let span = span_of_bytes(number("the offset", offset)?, number("the length", length)?);
                self.map(program, file, span.filter(|span| span.end <= MOST_PAGES))
            }
            [kind @ ("session" | "start" | "stop" | "map" | "bytes"), ..] => Err(format!(
                "{kind} is followed by {} fields; the format is {}",
                fields.len() - 1,
                form(kind)
            )),
            _ => Err("rows are session, start, stop, map or bytes".to_owned()),
        }
    }

    fn event(&mut self, at: &str, user: &str, event: Event) -> Result<(), String> {
        let at_s: f64 = at.parse().map_err(|_| format!("the time {at:?} is not a number of seconds"))?;
        if !at_s.is_finite() || at_s.abs() > 1e15 {
            return Err(format!("the time {at} is not within 1e15 seconds of 1970"));
        }
        let user =
            user.parse().map_err(|_| format!("the user {user:?} is not a number from 0 to 4294967295"))?;
        self.happened.push(UserEvent { at_s, user, event });
        Ok(())
    }

    fn program(&mut self, field: &str) -> Result<ProgramId, String> {
        let name = bytes(field)?;
        let id = ProgramId::of_name(&name);
        self.names.entry(id).or_insert(name);
        Ok(id)
    }

    fn map(&mut self, program: &str, file: &str, span: Option<Span>) -> Result<(), String> {
        let program = self.program(program)?;
        let file = escaped(&bytes(file)?);
        let span = span.ok_or("it has no pages, or ends beyond 16 TiB")?;
        self.maps.add(program, &file, span);
        Ok(())
    }
}

fn form(kind: &str) -> &'static str {
    match kind {
        "session" => "session,TIME,USER",
        "start" => "start,TIME,USER,PROGRAM",
        "stop" => "stop,TIME,USER,PROGRAM",
        "map" => "map,PROGRAM,FILE,FIRST PAGE,PAGES",
        _ => "bytes,PROGRAM,FILE,OFFSET,LENGTH",
    }
}

fn bytes(field: &str) -> Result<Vec<u8>, String> {
    match unescaped(field) {
        Some(bytes) if !bytes.is_empty() => Ok(bytes),
        Some(_) => Err("a name is empty".to_owned()),
        None => {
            Err(format!("in the name {field:?}, a percent sign is not followed by two hexadecimal digits"))
        }
    }
}

fn number(what: &str, field: &str) -> Result<u64, String> {
    field.parse().map_err(|_| format!("{what}, {field:?}, is not a number from 0 to 18446744073709551615"))
}

fn span_of_pages(first: u64, pages: u64) -> Option<Span> {
    let end = first.checked_add(pages).filter(|end| *end <= MOST_PAGES)?;
    Span::new(first, end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace::{Names, write};

    const GOOD: &str = "eke-prefetch-trace,1\n# a remark\n\nsession,10.5,1000\nstart,11,1000,/usr/bin/a%2cb\n\
        stop,12,1000,/usr/bin/a%2cb\nmap,/usr/bin/a%2cb,/lib/x,0,3\nbytes,/usr/bin/a%2cb,/lib/x,12288,1\n";

    #[test]
    fn rows_are_parsed() {
        let trace = parse(GOOD).unwrap();
        let program = ProgramId::of_name(b"/usr/bin/a,b");
        assert_eq!(trace.happened.len(), 3);
        assert_eq!(trace.happened[1], UserEvent { at_s: 11.0, user: 1000, event: Event::Start(program) });
        assert_eq!(trace.names[&program], b"/usr/bin/a,b");
        assert_eq!(trace.maps.bytes_of(program), 4 * 4096);
    }

    #[test]
    fn errors_name_the_line_and_the_valid_format() {
        let cases = [
            ("", "line 1 of the trace, \"\": a trace must begin with the line eke-prefetch-trace,1"),
            (
                "eke-prefetch-trace,2\n",
                "line 1 of the trace, \"eke-prefetch-trace,2\": a trace must begin with the line eke-prefetch-trace,1",
            ),
            (
                "eke-prefetch-trace,1\nstart,1,2\n",
                "line 2 of the trace, \"start,1,2\": start is followed by 2 fields; the format is start,TIME,USER,PROGRAM",
            ),
            (
                "eke-prefetch-trace,1\n\nboot,1\n",
                "line 3 of the trace, \"boot,1\": rows are session, start, stop, map or bytes",
            ),
            (
                "eke-prefetch-trace,1\nsession,nan,1\n",
                "line 2 of the trace, \"session,nan,1\": the time nan is not within 1e15 seconds of 1970",
            ),
            (
                "eke-prefetch-trace,1\nsession,soon,1\n",
                "line 2 of the trace, \"session,soon,1\": the time \"soon\" is not a number of seconds",
            ),
            (
                "eke-prefetch-trace,1\nsession,1,-1\n",
                "line 2 of the trace, \"session,1,-1\": the user \"-1\" is not a number from 0 to 4294967295",
            ),
            ("eke-prefetch-trace,1\nstart,1,1,\n", "line 2 of the trace, \"start,1,1,\": a name is empty"),
            (
                "eke-prefetch-trace,1\nmap,a,b,0,0\n",
                "line 2 of the trace, \"map,a,b,0,0\": it has no pages, or ends beyond 16 TiB",
            ),
        ];
        for (text, error) in cases {
            assert_eq!(parse(text).unwrap_err().to_string(), error);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "(?s).*") {
            let _ = parse(&text);
            let _ = parse(&format!("{HEADER}\n{text}"));
        }

        #[test]
        fn any_row_is_taken_or_refused(
            kind in "session|start|stop|map|bytes|#|",
            fields in proptest::collection::vec("[0-9]{0,21}|-?[0-9]+(\\.[0-9e]+)?|[a-z%~/]{0,5}|inf", 0..6),
        ) {
            let text = format!("{HEADER}\n{kind},{}\n", fields.join(","));
            if let Ok(trace) = parse(&text) {
                let written = write(&trace, Names::Plain);
                prop_assert_eq!(write(&parse(&written).unwrap(), Names::Plain), written);
            }
        }
    }
}
