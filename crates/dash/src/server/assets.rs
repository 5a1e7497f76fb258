//! The page's files, built into the program.

/// One file.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path.
    pub path: &'static str,
    /// Its media type.
    pub media: &'static str,
    /// Its content.
    pub text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($path:literal, $media:expr, $file:literal) => {
        Asset { path: $path, media: $media, text: include_str!(concat!("../../assets/", $file)) }
    };
}

/// All files.
pub const ASSETS: [Asset; 11] = [
    asset!("/", HTML, "index.html"),
    asset!("/icon.svg", "image/svg+xml", "icon.svg"),
    asset!("/page.css", CSS, "page.css"),
    asset!("/app.js", JS, "app.js"),
    asset!("/data.js", JS, "data.js"),
    asset!("/disks.js", JS, "disks.js"),
    asset!("/panels.js", JS, "panels.js"),
    asset!("/plan.js", JS, "plan.js"),
    asset!("/plot.js", JS, "plot.js"),
    asset!("/scale.js", JS, "scale.js"),
    asset!("/words.js", JS, "words.js"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_page_is_small() {
        let bytes: usize = ASSETS.iter().map(|a| a.text.len()).sum();
        assert!(bytes < 150_000, "{bytes}");
    }

    #[test]
    fn nothing_comes_from_elsewhere_and_nothing_is_inline() {
        for asset in ASSETS {
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http://", "https://", "//cdn", "@import", "url(", "eval(", "innerHTML"] {
                assert!(!text.contains(outside), "{outside} in {}", asset.path);
            }
        }
        let html = ASSETS[0].text;
        let handlers = html.split_whitespace().filter(|w| w.starts_with("on") && w.contains('='));
        assert!(!html.contains("<style") && !html.contains(" style=") && handlers.count() == 0, "{html}");
        for link in
            html.split([' ', '\n']).filter_map(|w| w.strip_prefix("src=\"").or(w.strip_prefix("href=\"")))
        {
            let path = link.split('"').next().unwrap();
            assert!(path.starts_with('#') || ASSETS.iter().any(|a| a.path == path), "{path}");
        }
    }

    /// `--name:#rgb` or `#rrggbb` of a part of the style.
    fn colour(style: &str, name: &str) -> [f64; 3] {
        let text = style.split(&format!("--{name}:#")).nth(1).unwrap_or_else(|| panic!("no {name}"));
        let hex: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
        let wide: String = if hex.len() == 3 { hex.chars().flat_map(|c| [c, c]).collect() } else { hex };
        [0, 2, 4].map(|i| f64::from(u8::from_str_radix(&wide[i..i + 2], 16).unwrap()) / 255.0)
    }

    /// WCAG 2.2, "contrast ratio" and "relative luminance".
    fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
        let luminance = |rgb: [f64; 3]| {
            let [r, g, b] =
                rgb.map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) });
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn light_and_dark_have_enough_contrast() {
        let css = ASSETS.iter().find(|a| a.path == "/page.css").unwrap().text;
        let (light, dark) = css.split_once("@media(prefers-color-scheme:dark)").unwrap();
        for (name, style) in [("light", light), ("dark", dark)] {
            let text = [
                ("fg", "bg"),
                ("fg", "card"),
                ("muted", "bg"),
                ("muted", "card"),
                ("on-accent", "accent"),
                ("fg", "warn-bg"),
            ];
            let signs = ["s1", "s2", "s3", "s4", "accent", "ok", "warn", "bad"].map(|sign| (sign, "card"));
            for ((a, b), least) in
                text.map(|pair| (pair, 4.5)).into_iter().chain(signs.map(|pair| (pair, 3.0)))
            {
                let ratio = contrast(colour(style, a), colour(style, b));
                assert!(ratio >= least, "{name}: {a} on {b} has {ratio:.2} to 1");
            }
        }
    }
}
