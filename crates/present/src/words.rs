//! Numbers as short text of little varying width.

use eke_model::model::Model;
use eke_model::text::one_line;

/// A share (0 to 1) in percent, with one digit.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// What of the CPUs is idle. Without two samples nothing is known of it.
pub fn idle_cpus(model: &Model) -> String {
    match model.interval_s {
        0.0 => "idle CPUs not measured yet".to_owned(),
        _ => format!("{} of all CPUs idle", percent(model.idle_cpu_share)),
    }
}

/// A duration in the largest unit of which it has two or more.
pub fn time(s: u64) -> String {
    match s {
        s if s < 120 => format!("{s} s"),
        s if s < 2 * 3600 => format!("{} min", s / 60),
        s if s < 48 * 3600 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// At most `width` columns: what is cut off shows as `…`.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short + "…"
}

/// Lines of at most `width` columns; what follows the first is indented by `indent`.
pub fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let rest = " ".repeat(indent);
    let options = textwrap::Options::new(width.max(indent + 8)).subsequent_indent(&rest);
    textwrap::wrap(&safe(text), options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// Without what a terminal would obey.
pub fn safe(text: &str) -> String {
    one_line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_says_so() {
        assert_eq!(cut("640 MiB held in 210 MiB", 40), "640 MiB held in 210 MiB");
        assert_eq!(cut("640 MiB held in 210 MiB", 9), "640 MiB…");
        assert_eq!([cut("ab", 1), cut("ab", 0)], ["…", "…"]);
    }

    #[test]
    fn times_are_coarse() {
        assert_eq!(
            [5, 119, 120, 7_200, 200_000].map(time),
            ["5 s", "119 s", "2 min", "2 h", "2 days"].map(String::from)
        );
    }

    #[test]
    fn lines_are_no_wider_than_asked_and_obey_nothing() {
        let lines = wrapped("grew \u{1b}[2J the device because the fill is 86 %", 20, 4);
        assert!(lines.iter().all(|l| l.chars().count() <= 20), "{lines:?}");
        assert!(lines[1].starts_with("    ") && !lines.concat().contains('\u{1b}'), "{lines:?}");
    }
}
