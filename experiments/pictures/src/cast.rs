//! A recorded terminal session (asciicast, version 2) as an SVG that plays it without a script.
//!
//! All screens stand below each other, and a style sheet moves them. Without animations (a printed page, or a user who wants none) the last screen
//! shows. Equal lines are stored once.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use serde_json::Value;

use crate::terminal::{self, EDGE, HEIGHT, WIDTH};
use crate::theme::Theme;

/// The recording of `make field FIELD=cast`.
const FILE: &str = "debian13.cast";
/// Screens nearer than this become one.
const LEAST_GAP_S: f64 = 0.2;
/// A longer wait is shown as this long; the clock below the screen jumps.
const MOST_GAP_S: f64 = 1.5;
/// The last screen stays for this long before the recording begins again.
const LAST_S: f64 = 6.0;
/// A larger terminal does not fit into a document.
const MOST_CELLS: u64 = 200;

/// A recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Cast {
    columns: u16,
    rows: u16,
    /// Seconds since the beginning, and what was printed.
    events: Vec<(f64, String)>,
}

/// A screen and its time.
#[derive(Debug, Clone, PartialEq)]
struct Screen {
    at_s: f64,
    buffer: Buffer,
}

/// The stored recording as a picture; `None` if there is none.
///
/// # Errors
/// The file cannot be read, or is no recording.
pub fn picture(results: &Path, theme: Theme) -> Result<Option<String>> {
    let file = results.join(FILE);
    if !file.exists() {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let cast = Cast::parse(&text).with_context(|| file.display().to_string())?;
    Ok(Some(svg(&cast, theme)))
}

impl Cast {
    /// Parses the header line and one line for each event; input and marks are left out.
    ///
    /// # Errors
    /// Another format, or times that go backwards.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let header: Value = serde_json::from_str(lines.next().unwrap_or_default()).context("no header")?;
        ensure!(header["version"] == 2, "not an asciicast of version 2");
        let size =
            |key: &str| header[key].as_u64().filter(|n| (1..=MOST_CELLS).contains(n)).map(|n| n as u16);
        let (columns, rows) = (size("width").context("no width")?, size("height").context("no height")?);
        let mut cast = Self { columns, rows, events: Vec::new() };
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let (at_s, kind, data): (f64, String, String) =
                serde_json::from_str(line).with_context(|| format!("no event: {line}"))?;
            let before = cast.events.last().map_or(0.0, |(at_s, _)| *at_s);
            ensure!(at_s >= before, "{at_s} s comes after {before} s");
            if kind == "o" {
                cast.events.push((at_s, data));
            }
        }
        Ok(cast)
    }

    /// When the last event was, in seconds.
    pub fn length_s(&self) -> Option<f64> {
        self.events.last().map(|(at_s, _)| *at_s)
    }

    /// The screens that differ, each with the time of its last event. A steady stream of events has one each [`LEAST_GAP_S`].
    fn screens(&self) -> Vec<Screen> {
        let mut parser = vt100::Parser::new(self.rows, self.columns, 0);
        let mut screens: Vec<Screen> = Vec::new();
        let mut first_s = None;
        for (nth, (at_s, data)) in self.events.iter().enumerate() {
            parser.process(data.as_bytes());
            let waited_s = at_s - *first_s.get_or_insert(*at_s);
            let more_follows =
                self.events.get(nth + 1).is_some_and(|(next_s, _)| next_s - at_s < LEAST_GAP_S);
            if more_follows && waited_s < LEAST_GAP_S {
                continue;
            }
            first_s = None;
            let buffer = buffer(parser.screen());
            if screens.last().is_none_or(|last| last.buffer != buffer) {
                screens.push(Screen { at_s: *at_s, buffer });
            }
        }
        screens
    }
}

fn buffer(screen: &vt100::Screen) -> Buffer {
    let (rows, columns) = screen.size();
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        if let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) {
            let contents = cell.contents();
            buffer[(column, row)].set_symbol(&contents).set_style(style(cell));
        }
    }
    buffer
}

fn style(cell: &vt100::Cell) -> Style {
    let colour = match cell.fgcolor() {
        vt100::Color::Idx(1 | 9) => Color::Red,
        vt100::Color::Idx(2 | 10) => Color::Green,
        vt100::Color::Idx(3 | 11) => Color::Yellow,
        vt100::Color::Idx(5 | 13) => Color::Magenta,
        vt100::Color::Idx(6 | 14) => Color::Cyan,
        _ => Color::Reset,
    };
    let mut modifier = Modifier::empty();
    modifier.set(Modifier::BOLD, cell.bold());
    modifier.set(Modifier::REVERSED, cell.inverse());
    Style::default().fg(colour).add_modifier(modifier)
}

/// When each screen is shown, in seconds, and the end.
fn shown(screens: &[Screen]) -> (Vec<f64>, f64) {
    let mut now = 0.0;
    let mut before = 0.0;
    let times = screens.iter().map(|screen| {
        now += (screen.at_s - before).min(MOST_GAP_S);
        before = screen.at_s;
        now
    });
    let times: Vec<f64> = times.collect();
    (times, now + LAST_S)
}

fn svg(cast: &Cast, theme: Theme) -> String {
    let screens = cast.screens();
    let (times, end_s) = shown(&screens);
    let height = f64::from(cast.rows + 1).mul_add(HEIGHT, 2.0 * EDGE);
    let mut frames = String::new();
    for (nth, at_s) in times.iter().enumerate() {
        // The first screen shows from the beginning.
        let percent = if nth == 0 { 0.0 } else { 100.0 * at_s / end_s };
        let _ = write!(frames, "{percent:.3}%{{transform:translateY({:.0}px)}}", -height * nth as f64);
    }
    let rules = format!(
        ".p{{animation:p {end_s:.2}s step-end infinite}}@keyframes p{{{frames}}}@media(prefers-reduced-motion){{.p{{animation:none}}}}"
    );
    let mut lines = Lines::default();
    let drawn: String = screens
        .iter()
        .enumerate()
        .map(|(nth, s)| lines.screen(s, height * nth as f64, cast, theme))
        .collect();
    let mut out = terminal::begin(cast.columns, cast.rows + 1, "a recorded terminal session", &rules, theme);
    let last = height * screens.len().saturating_sub(1) as f64;
    let _ = writeln!(
        out,
        "<defs>{}</defs><g class=\"p\" transform=\"translate(0,{:.0})\">{drawn}</g></svg>",
        lines.drawn, -last
    );
    out
}

/// The lines that were drawn so far, by their text.
#[derive(Default)]
struct Lines {
    known: BTreeMap<String, usize>,
    drawn: String,
}

impl Lines {
    /// A screen `top` pixels below the first, with its clock.
    fn screen(&mut self, screen: &Screen, top: f64, cast: &Cast, theme: Theme) -> String {
        let mut out = String::new();
        for row in 0..cast.rows {
            let mut line = String::new();
            terminal::line(&mut line, &screen.buffer, row, 0, theme);
            if !line.is_empty() {
                let y = f64::from(row).mul_add(HEIGHT, top);
                let _ = write!(out, "<use href=\"#l{}\" y=\"{y:.0}\"/>", self.number(line));
            }
        }
        let (x, y) = (
            f64::from(cast.columns).mul_add(WIDTH, EDGE),
            f64::from(cast.rows + 1).mul_add(HEIGHT, top + 5.0),
        );
        let ink = theme.terminal(Color::Cyan);
        let _ = write!(
            out,
            "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"end\" fill=\"{ink}\">{:.1} s</text>",
            screen.at_s
        );
        out
    }

    fn number(&mut self, line: String) -> usize {
        let next = self.known.len();
        if let Some(number) = self.known.get(&line) {
            return *number;
        }
        let _ = write!(self.drawn, "<g id=\"l{next}\">{line}</g>");
        self.known.insert(line, next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"{"version": 2, "width": 20, "height": 3, "timestamp": 0}
[0.0, "o", "# eke up\r\n"]
[0.5, "o", "measuring 10 %"]
[0.55, "o", "\r\u001b[Kmeasuring 90 %"]
[0.6, "i", "x"]
[10.0, "o", "\r\u001b[K\u001b[1;32mdone\u001b[0m\r\n<&>"]
"##;

    #[test]
    fn what_is_overwritten_within_a_moment_is_no_screen_of_its_own() {
        let cast = Cast::parse(TEXT).unwrap();
        assert_eq!(cast.length_s(), Some(10.0));
        let screens = cast.screens();
        assert_eq!(screens.iter().map(|s| s.at_s).collect::<Vec<_>>(), [0.0, 0.55, 10.0]);
        let (times, end_s) = shown(&screens);
        assert!(times[2] - times[1] <= MOST_GAP_S && (end_s - times[2] - LAST_S).abs() < 1e-9, "{times:?}");
    }

    #[test]
    fn the_last_screen_shows_without_animations_and_equal_lines_are_stored_once() {
        let svg = svg(&Cast::parse(TEXT).unwrap(), Theme::Dark);
        assert_eq!(svg.matches("eke up").count(), 1);
        assert!(svg.contains("&lt;&amp;&gt;") && svg.contains(">10.0 s</text>"), "{svg}");
        assert!(svg.contains("<g class=\"p\" transform=\"translate(0,-184)\">"), "{svg}");
        assert!(svg.contains("fill=\"#3fb950\" class=\"b\">done<"), "{svg}");
    }

    #[test]
    fn another_format_is_an_error() {
        for text in ["", "{}", "{\"version\": 2}", &TEXT.replace("10.0", "0.1"), &TEXT.replace("\"o\"", "1")]
        {
            assert!(Cast::parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_output_becomes_a_picture(parts in proptest::collection::vec((0.0f64..3.0, "[\\x00-\\x7fä界]{0,80}"), 0..20)) {
            let mut at_s = 0.0;
            let events = parts.into_iter().map(|(gap, data)| { at_s += gap; (at_s, data) }).collect();
            let cast = Cast { columns: 30, rows: 4, events };
            let (times, end_s) = shown(&cast.screens());
            proptest::prop_assert!(times.is_sorted() && times.last().is_none_or(|last| *last < end_s));
            proptest::prop_assert!(svg(&cast, Theme::Light).ends_with("</svg>\n"));
        }
    }
}
