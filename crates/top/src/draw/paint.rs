//! Styles. Words and signs carry the same information, so that nothing is lost without colours.

use ratatui::style::{Color, Modifier, Style};

use eke_present::scarce::Level;

/// Colours, or bold only (`NO_COLOR`). The colours are the terminal's eight without blue, which is hard to read on a console's black. A
/// bright colour would leave the text after it bright on a console (`rgb_foreground()` of the kernel's vt.c).
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// True if colours may be used.
    pub colours: bool,
}

impl Paint {
    fn coloured(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Titles and names.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// A keyboard key.
    pub fn key(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A problem.
    pub fn trouble(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A gain.
    pub fn gain(self) -> Style {
        self.coloured(Color::Green)
    }

    /// A level of shortage.
    pub fn level(self, level: Level) -> Style {
        match level {
            Level::Unknown => Style::new(),
            Level::Calm => self.gain(),
            Level::Little => self.coloured(Color::Yellow),
            Level::Much => self.coloured(Color::Yellow).add_modifier(Modifier::BOLD),
            Level::Badly => self.trouble(),
        }
    }

    /// A part of memory, by its place in the bar.
    pub fn part(self, number: usize) -> Style {
        const COLOURS: [Color; 4] = [Color::Reset, Color::Cyan, Color::Green, Color::Magenta];
        COLOURS.get(number).map_or_else(Style::new, |colour| self.coloured(*colour))
    }
}
