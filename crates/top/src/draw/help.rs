//! What the words on the screen mean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::paint::Paint;

const TEXT: [&str; 17] = [
    "short of    how long tasks waited, by the kernel's PSI:",
    "            some: at least one task; all: every task at once",
    "            10s, 60s: share of the last 10 and 60 seconds",
    "            enough < 1 %, a little < 10 %, much < 40 %, badly",
    "memory      pool: compressed size; holds: uncompressed size",
    "swap        RAM gained; cost: CPU of kswapd, which compresses,",
    "            and of pages that come back (loads)",
    "cache       eke cache mount: hits need no disk",
    "prefetch    read before a program needs it; unused: waste",
    "reads       99 of 100 disk reads take at most this time",
    "decisions   what the agent did or noticed, and why",
    "",
    "q Esc       quit; leaves everything as it is",
    "p Space     pause, go on",
    "↑ ↓ PgUp PgDn Home End   scroll the decisions",
    "? h         this help",
    "As JSON: eke status --json",
];

/// Draws the help over the middle of the screen.
pub fn draw(buffer: &mut Buffer, area: Rect, paint: Paint) {
    let width = TEXT.iter().map(|l| l.chars().count()).max().unwrap_or(0) as u16 + 2;
    let height = TEXT.len() as u16 + 2;
    let (width, height) = (width.min(area.width), height.min(area.height));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(place, buffer);
    let frame = Block::bordered().title(" help ").title_style(paint.strong());
    Paragraph::new(TEXT.map(Line::raw).to_vec()).block(frame).render(place, buffer);
}
