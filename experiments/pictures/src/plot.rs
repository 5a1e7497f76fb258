//! A plot as a file of its own, with its title.

use eke_plot::chart::{self, Chart};
use eke_plot::svg::{WIDE, escape};

use crate::theme::Theme;

/// Height of the title.
const TITLE: f64 = 34.0;

/// The SVG, in one theme's colours.
pub fn file(chart: &Chart, theme: Theme) -> String {
    let plot = chart::draw(chart, WIDE, "p");
    let height = height(&plot);
    let plot = plot.replacen(
        "<svg ",
        &format!("<svg y=\"{TITLE}\" width=\"{}\" height=\"{height}\" ", WIDE.width),
        1,
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {all}\" role=\"img\" aria-label=\"{title}\">\
         <style>svg{{{colours}}}{style}svg .title{{font-size:15px;font-weight:600;fill:var(--fg)}}</style>\
         <rect width=\"100%\" height=\"100%\" style=\"fill:var(--bg)\"/>\
         <text class=\"title\" x=\"14\" y=\"22\">{title}</text>{plot}</svg>\n",
        width = WIDE.width,
        all = height + TITLE,
        title = escape(&chart.title),
        colours = theme.declarations(),
        style = chart::STYLE.lines().collect::<String>(),
    )
}

/// The fourth number of the view box.
fn height(plot: &str) -> f64 {
    let view = plot.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    view.split(' ').nth(3).and_then(|number| number.parse().ok()).unwrap_or(WIDE.height)
}
