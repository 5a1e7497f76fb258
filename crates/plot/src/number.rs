//! Numbers as text.

/// A number with three significant digits, but never rounded beyond the unit: `0.0123`, `41.2`, `1234`.
pub fn shown(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let size = value.abs();
    let whole = (value - value.round()).abs() < 1e-9;
    let digits = match size {
        _ if whole => 0,
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        s => (2.0 - s.log10().floor()).clamp(3.0, 9.0) as usize,
    };
    // avoids `-0`
    format!("{:.digits$}", value + 0.0)
}
