//! The screen of `eke top` as an SVG: each run of cells with one style is a text with exact width.

#[path = "../../../crates/top/tests/common/mod.rs"]
mod machine;

use std::fmt::Write;

use anyhow::Result;
use eke_plot::svg::escape;
use eke_top::view::{Means, View};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Modifier;

use crate::theme::Theme;

/// Size of the terminal.
const COLUMNS: u16 = 100;
const ROWS: u16 = 30;
/// Size of a cell in pixels, and the border around all cells.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const EDGE: f64 = 10.0;

/// The screen of the busy machine of `crates/top/tests`, after 70 s.
///
/// # Errors
/// It cannot be drawn.
pub fn picture(theme: Theme) -> Result<String> {
    Ok(svg(&drawn()?, theme))
}

fn drawn() -> Result<Buffer> {
    let mut view: View = machine::view(Means { colours: true, ascii: false }, 70);
    let mut refresh = machine::refresh(70);
    refresh.snapshot.io = Some(machine::disks());
    view.refresh(Ok(refresh), 70_000);
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, ROWS))?;
    terminal.draw(|frame| eke_top::draw(frame, &view))?;
    Ok(terminal.backend().buffer().clone())
}

fn svg(buffer: &Buffer, theme: Theme) -> String {
    let width = f64::from(COLUMNS).mul_add(WIDTH, 2.0 * EDGE);
    let height = f64::from(ROWS).mul_add(HEIGHT, 2.0 * EDGE);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"eke top\">\
         <style>text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}.b{{font-weight:700}}</style>\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>",
        theme.paper()
    );
    for row in 0..ROWS {
        line(&mut out, buffer, row, theme);
    }
    out += "</svg>\n";
    out
}

/// The runs of one line; blanks need no text.
fn line(out: &mut String, buffer: &Buffer, row: u16, theme: Theme) {
    let cells: Vec<&Cell> = (0..COLUMNS).filter_map(|column| buffer.cell((column, row))).collect();
    let mut column = 0;
    for run in cells.chunk_by(|a, b| a.fg == b.fg && a.modifier == b.modifier) {
        let text: String = run.iter().map(|cell| cell.symbol()).collect();
        let is_reversed = run.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED));
        if !text.trim().is_empty() || is_reversed {
            add_run(out, run, (column, usize::from(row)), text.trim_end(), theme);
        }
        column += run.len();
    }
}

fn add_run(out: &mut String, run: &[&Cell], (column, row): (usize, usize), text: &str, theme: Theme) {
    let Some(cell) = run.first() else { return };
    let (x, y) = ((column as f64).mul_add(WIDTH, EDGE), (row as f64).mul_add(HEIGHT, EDGE));
    let (mut ink, is_reversed) = (theme.terminal(cell.fg), cell.modifier.contains(Modifier::REVERSED));
    if is_reversed {
        let width = run.len() as f64 * WIDTH;
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{ink}\"/>"
        );
        ink = theme.paper();
    }
    let class = if cell.modifier.contains(Modifier::BOLD) { " class=\"b\"" } else { "" };
    let blanks = text.chars().count() - text.trim_start().chars().count();
    let width = (text.chars().count() - blanks) as f64 * WIDTH;
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{ink}\"{class}>{}</text>",
        (blanks as f64).mul_add(WIDTH, x),
        y + 13.5,
        escape(text.trim_start())
    );
}
