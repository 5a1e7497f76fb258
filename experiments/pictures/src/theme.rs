//! Light and dark colours.

use eke_plot::svg::COLOURS;
use ratatui::style::Color;

/// The background of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Dark letters on white.
    Light,
    /// Light letters on black.
    Dark,
}

impl Theme {
    /// Both themes.
    pub const ALL: [Self; 2] = [Self::Light, Self::Dark];

    /// Its name in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The colours of plots as CSS declarations: in the style sheet of pages, the first of two blocks is light, the
    /// second dark.
    pub fn declarations(self) -> &'static str {
        let blocks = COLOURS.match_indices("--bg").filter_map(|(at, _)| COLOURS.get(at..));
        let block = blocks.into_iter().nth(usize::from(self == Self::Dark)).unwrap_or_default();
        block.split('}').next().unwrap_or_default()
    }

    /// The colour of a terminal cell.
    pub fn terminal(self, colour: Color) -> &'static str {
        let (light, dark) = match colour {
            Color::Red => ("#cf222e", "#ff7b72"),
            Color::Green => ("#1a7f37", "#3fb950"),
            Color::Yellow => ("#9a6700", "#d29922"),
            Color::Cyan => ("#1b7c83", "#39c5cf"),
            Color::Magenta => ("#8250df", "#bc8cff"),
            _ => ("#1b1f24", "#e6e8ea"),
        };
        if self == Self::Light { light } else { dark }
    }

    /// The background of a terminal.
    pub fn paper(self) -> &'static str {
        if self == Self::Light { "#ffffff" } else { "#14171a" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_theme_has_its_own_colours() {
        assert!(Theme::Light.declarations().starts_with("--bg:#fff;"));
        assert!(Theme::Dark.declarations().starts_with("--bg:#14171a;"));
        assert!(Theme::ALL.iter().all(|t| t.declarations().contains("--s3:")));
    }
}
