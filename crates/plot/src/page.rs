//! The HTML page around plots.

use crate::svg::COLOURS;

/// The style that all pages share.
const PAGE: &str = include_str!("page.css");

/// The beginning of a page up to its heading, with a policy that forbids foreign content. `title` and `style` are inserted unescaped;
/// the caller ends the page with `</main></body></html>`.
pub fn beginning(title: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline'\">\
         <title>{title}</title><style>{COLOURS}\n{PAGE}{style}</style></head><body><main>\n"
    )
}
