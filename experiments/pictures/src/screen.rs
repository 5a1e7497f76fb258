//! The screen of `eke top` as an SVG.

#[path = "../../../crates/top/tests/common/mod.rs"]
mod machine;

use anyhow::Result;
use eke_top::view::{Means, View};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use crate::terminal;
use crate::theme::Theme;

/// Size of the terminal.
const COLUMNS: u16 = 100;
const ROWS: u16 = 30;

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
    let mut out = terminal::begin(COLUMNS, ROWS, "eke top", "", theme);
    for row in 0..ROWS {
        terminal::line(&mut out, buffer, row, usize::from(row), theme);
    }
    out += "</svg>\n";
    out
}
