//! Colours, sizes, the width of letters, escaping: shared by all plots.

/// The colours, light and dark; shared by the page and the files.
pub const COLOURS: &str = ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--muted:#59636e;--grid:#e4e7eb;--mark:#8a5a00;--s1:#1f6feb;--s2:#d9480f;--s3:#2b8a3e}\
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e8ea;--muted:#9aa4af;--grid:#2d333a;--mark:#e3b04b;--s1:#6cb0ff;--s2:#ff9b6a;--s3:#6fdc8c}}";

/// The size of a plot in its own units, which are pixels at 100 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// The class of the element.
    pub class: &'static str,
}

/// For a screen.
pub const WIDE: Size = Size { width: 760.0, height: 300.0, class: "wide" };
/// For a phone: letters of the same size in less room.
pub const NARROW: Size = Size { width: 350.0, height: 270.0, class: "narrow" };

/// The approximate width of a letter in a plot.
pub const LETTER: f64 = 6.6;
/// Escapes text for XML, between tags and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // not allowed in XML at all
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape("<a href='x'>&\"\u{1}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}");
    }
}
