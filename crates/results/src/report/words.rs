//! Numbers, parameters and ratios as text.

pub use eke_plot::number::shown;
use serde_json::Value;

/// A number with its unit: `41.2 s`.
pub fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", shown(value)).trim_end().to_owned()
}

/// A number with its sign, for differences.
pub fn signed(value: f64) -> String {
    match shown(value.abs()) {
        text if text == "0" => text,
        text if value < 0.0 => format!("−{text}"),
        text => format!("+{text}"),
    }
}

/// A parameter in words: `swap 64 MiB`, `document A`.
pub fn parameter(key: &str, value: &Value) -> String {
    let (name, unit) = key_words(key);
    format!("{name} {} {unit}", plain(value)).trim_end().to_owned()
}

/// The name in a parameter's key, and the unit at its end.
pub fn key_words(key: &str) -> (String, &'static str) {
    const UNITS: [(&str, &str); 7] = [
        ("_kib", "KiB"),
        ("_mib", "MiB"),
        ("_gib", "GiB"),
        ("_percent", "%"),
        ("_ms", "ms"),
        ("_us", "µs"),
        ("_s", "s"),
    ];
    let mut units = UNITS.iter().filter_map(|(ending, unit)| Some((key.strip_suffix(ending)?, *unit)));
    let (name, unit) = units.next().unwrap_or((key, ""));
    (name.replace('_', " "), unit)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "unknown".into(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), shown),
        other => other.to_string(),
    }
}

/// `value` compared with `reference`: `1.4x more`, `7 % less`, `the same`.
pub fn ratio(value: f64, reference: f64) -> String {
    if value == reference {
        return "the same".into();
    }
    if reference <= 0.0 || value <= 0.0 {
        return format!("{} instead of {}", shown(value), shown(reference));
    }
    let (times, word) =
        if value > reference { (value / reference, "more") } else { (reference / value, "less") };
    let percent = 100.0 * (value - reference).abs() / reference;
    match times {
        _ if percent < 0.5 => "the same".into(),
        t if t < 1.2 => format!("{percent:.0} % {word}"),
        t if t < 9.95 => format!("{t:.1}x {word}"),
        t => format!("{t:.0}x {word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_significant_digits() {
        let numbers = [0.0, -0.0, 11.0, 12.345, 1234.56, 1.0 / 3.0, 0.00012345, f64::NAN];
        assert_eq!(
            numbers.map(shown),
            ["0", "0", "11", "12.3", "1235", "0.333", "0.000123", "-"].map(str::to_owned)
        );
        assert_eq!([signed(-1.25), signed(0.0), signed(2.0)], ["−1.25", "0", "+2"]);
    }

    #[test]
    fn parameters_are_words() {
        assert_eq!(parameter("swap_mib", &64.into()), "swap 64 MiB");
        assert_eq!(parameter("document", &"A".into()), "document A");
        assert_eq!(parameter("documents_open", &2.0.into()), "documents open 2");
    }

    #[test]
    fn ratios_have_a_direction() {
        let ratios = [(14.0, 10.0), (1.0, 2.1), (10.4, 10.0), (10.01, 10.0), (300.0, 10.0), (3.0, 0.0)];
        assert_eq!(
            ratios.map(|(a, b)| ratio(a, b)),
            ["1.4x more", "2.1x less", "4 % more", "the same", "30x more", "3 instead of 0"]
                .map(str::to_owned)
        );
    }
}
