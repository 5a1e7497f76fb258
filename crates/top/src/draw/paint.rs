//! Styles. Words and signs say the same, so that nothing is lost without colours.

use ratatui::style::{Color, Modifier, Style};

use eke_present::scarce::Level;

/// With colours, or with bold alone (`NO_COLOR`). The colours are the terminal's own eight
/// but blue, which can hardly be read on a console's black; a bright one would leave what follows it bright there (`rgb_foreground()` of the
/// kernel's vt.c).
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// May colours be used.
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

    /// Something that needs to be seen.
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
