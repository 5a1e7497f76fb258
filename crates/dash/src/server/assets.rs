//! The page, in the program.

/// One file.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path.
    pub path: &'static str,
    /// Its media type.
    pub media: &'static str,
    /// What is in it.
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

/// All of them.
pub const ASSETS: [Asset; 10] = [
    asset!("/", HTML, "index.html"),
    asset!("/icon.svg", "image/svg+xml", "icon.svg"),
    asset!("/page.css", CSS, "page.css"),
    asset!("/app.js", JS, "app.js"),
    asset!("/data.js", JS, "data.js"),
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
}
