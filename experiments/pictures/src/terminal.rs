//! A terminal's screen as SVG: each run of cells with one style is a text with exact width.

use std::fmt::Write;

use eke_plot::svg::escape;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Modifier;

use crate::theme::Theme;

/// Size of a cell in pixels.
pub const WIDTH: f64 = 8.4;
/// Its height.
pub const HEIGHT: f64 = 18.0;
/// The border around all cells.
pub const EDGE: f64 = 10.0;

/// The beginning of a picture of so many cells, up to the background. `more` are rules of its style sheet.
pub fn begin(columns: u16, rows: u16, label: &str, more: &str, theme: Theme) -> String {
    let width = f64::from(columns).mul_add(WIDTH, 2.0 * EDGE);
    let height = f64::from(rows).mul_add(HEIGHT, 2.0 * EDGE);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\
         <style>text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}.b{{font-weight:700}}{more}</style>\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>",
        escape(label),
        theme.paper()
    )
}

/// The runs of line `row`, drawn `at` lines below the top. Blanks need no text.
pub fn line(out: &mut String, buffer: &Buffer, row: u16, at: usize, theme: Theme) {
    let cells: Vec<&Cell> = (0..buffer.area.width).filter_map(|column| buffer.cell((column, row))).collect();
    let mut column = 0;
    for run in cells.chunk_by(|a, b| a.fg == b.fg && a.modifier == b.modifier) {
        let text: String = run.iter().map(|cell| cell.symbol()).collect();
        let is_reversed = run.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED));
        if !text.trim().is_empty() || is_reversed {
            add_run(out, run, (column, at), text.trim_end(), theme);
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
