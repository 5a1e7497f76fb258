//! Axes: round ticks and their labels.

/// The unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, shown in binary units.
    Bytes,
    /// Events per second.
    PerSecond,
    /// Percent, 0 to 100.
    Percent,
}

/// An axis: its ends, and its ticks with their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The value at its start.
    pub low: f64,
    /// The value at its end.
    pub high: f64,
    /// Values and labels, ascending.
    pub ticks: Vec<(f64, String)>,
    /// The unit of the labels.
    pub unit: String,
}

const MOST_TICKS: usize = 40;
/// The shortest axis, in its unit: without values it still has labels.
const SMALLEST: f64 = 1.0;

impl Axis {
    /// The position of `value` between the ends, 0..=1.
    pub fn share(&self, value: f64) -> f64 {
        let span = self.high - self.low;
        if span > 0.0 { ((value - self.low) / span).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// True if it does not begin at zero.
    pub fn is_cut(&self) -> bool {
        self.low > 0.0
    }
}

/// An axis of about `count` ticks for values from `least` to `most`. It begins at zero, unless all values (bytes) are in its upper
/// quarter: changes would not be visible.
pub fn values(unit: Unit, least: f64, most: f64, count: usize) -> Axis {
    let most = if most.is_finite() && most > 0.0 { most } else { 0.0 };
    let least = if least.is_finite() { least.clamp(0.0, most) } else { 0.0 };
    let (divisor, name) = unit_of(unit, most);
    let cut = unit == Unit::Bytes && most - least < most / 4.0 && most > 0.0;
    let (low, high) =
        if cut { (least / divisor, most / divisor) } else { (0.0, (most / divisor).max(SMALLEST)) };
    let room = if cut { (high - low).max(high / 100.0) } else { high };
    let step = round_step(room, count);
    let low = if cut { (low / step).floor() * step } else { 0.0 };
    let high = ((high / step).ceil() * step).max(low + step);
    let ticks = steps(low, high, step).map(|v| (v * divisor, number(v, step))).collect();
    Axis { low: low * divisor, high: high * divisor, ticks, unit: name.into() }
}

fn unit_of(unit: Unit, most: f64) -> (f64, &'static str) {
    const KIB: f64 = 1024.0;
    match unit {
        Unit::PerSecond => (1.0, "/s"),
        Unit::Percent => (1.0, "%"),
        Unit::Bytes if most >= 2.0 * KIB * KIB * KIB => (KIB * KIB * KIB, "GiB"),
        Unit::Bytes if most >= 2.0 * KIB * KIB || most == 0.0 => (KIB * KIB, "MiB"),
        Unit::Bytes => (KIB, "KiB"),
    }
}

/// 1, 2 or 5 times a power of ten, so that `count` steps are about `span`.
fn round_step(span: f64, count: usize) -> f64 {
    let raw = span / count.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= raw * 0.999).unwrap_or(10.0);
    factor * power
}

fn steps(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let count = ((high - low) / step).round().clamp(0.0, MOST_TICKS as f64) as usize;
    (0..=count).map(move |i| low + i as f64 * step)
}

fn number(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    if value >= 1e5 && step >= 1e3 { format!("{:.0}k", value / 1e3) } else { format!("{value:.digits$}") }
}

/// An axis of about `count` round ticks over plain numbers, also negative ones.
pub fn numbers(least: f64, most: f64, count: usize) -> Axis {
    let least = if least.is_finite() { least.clamp(-1e15, 1e15) } else { 0.0 };
    let most = if most.is_finite() { most.clamp(-1e15, 1e15) } else { 0.0 };
    let most = if most > least { most } else { least + least.abs().max(SMALLEST) };
    let step = round_step(most - least, count);
    let low = (least / step).floor() * step;
    let high = ((most / step).ceil() * step).max(low + step);
    // rounding errors around zero are zero
    let ticks = steps(low, high, step).map(|v| if v.abs() < step / 1e3 { 0.0 } else { v });
    Axis { low, high, ticks: ticks.map(|v| (v, number(v, step))).collect(), unit: String::new() }
}

/// A logarithmic axis: its ends and ticks are decimal logarithms. If an end is not above zero, it is an axis from 1 to 10.
pub fn powers(least: f64, most: f64, count: usize) -> Axis {
    let is_good = least.is_finite() && most.is_finite() && least > 0.0 && most >= least;
    let (least, most) = if is_good { (least, most) } else { (1.0, 10.0) };
    let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let all = |factors: &[f64]| -> Vec<f64> {
        (first..=last.max(first + 1)).flat_map(|p| factors.iter().map(move |f| f * 10f64.powi(p))).collect()
    };
    let (fine, coarse) = (all(&[1.0, 2.0, 5.0]), all(&[1.0]));
    let at = |ticks: &[f64], value: f64, side: fn(f64, f64) -> bool| {
        ticks.iter().copied().filter(|t| side(*t, value)).map(f64::log10).collect::<Vec<_>>()
    };
    let low = at(&fine, least * (1.0 + 1e-9), |t, v| t <= v).last().copied().unwrap_or(f64::from(first));
    let high = at(&fine, most * (1.0 - 1e-9), |t, v| t >= v).first().copied().unwrap_or(f64::from(last));
    let high = high.max(low + 0.3);
    let within = |ticks: Vec<f64>| -> Vec<(f64, String)> {
        let inside = |v: &f64| (low - 1e-9..=high + 1e-9).contains(&v.log10());
        ticks.into_iter().filter(inside).map(|v| (v.log10(), format!("{v}"))).collect()
    };
    let fine = within(fine);
    let ticks = if fine.len() <= count.max(2) { fine } else { within(coarse) };
    let every = ticks.len().div_ceil(count.max(2)).max(1);
    Axis { low, high, ticks: ticks.into_iter().step_by(every).collect(), unit: String::new() }
}

/// The axis of a recording's time in seconds.
pub fn time(from_s: f64, to_s: f64, count: usize) -> Axis {
    const STEPS: [f64; 20] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0,
        3600.0, 7200.0, 14_400.0, 43_200.0,
    ];
    let from = if from_s.is_finite() { from_s.clamp(0.0, 1e12) } else { 0.0 };
    let to = if to_s.is_finite() { to_s.clamp(from + 0.1, 2e12) } else { from + 0.1 };
    let raw = (to - from) / count.max(1) as f64;
    let step = STEPS.into_iter().find(|s| *s >= raw).unwrap_or_else(|| (raw / 86_400.0).ceil() * 86_400.0);
    let first = (from / step).ceil() as u64;
    let ticks = (first..).map(|n| n as f64 * step).take_while(|t| *t <= to + step * 1e-6).take(MOST_TICKS);
    let (divisor, unit) = match step {
        s if s >= 3600.0 => (3600.0, "h"),
        s if s >= 60.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    let ticks = ticks.map(|t| (t, number(t / divisor, step / divisor))).collect();
    Axis { low: from, high: to, ticks, unit: unit.into() }
}

/// A value with its unit, for tables and the value under the pointer.
pub fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Bytes => eke_model::units::Bytes(value.max(0.0) as u64).to_string(),
        Unit::PerSecond => format!("{value:.0} /s"),
        Unit::Percent => format!("{value:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    const MIB: f64 = 1048576.0;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let axis = values(Unit::Bytes, 0.0, 124.0 * MIB, 5);
        assert_eq!((labels(&axis), axis.unit.as_str()), (vec!["0", "50", "100", "150"], "MiB"));
        let axis = values(Unit::PerSecond, 0.0, 1234.0, 5);
        assert_eq!(labels(&axis), ["0", "500", "1000", "1500"]);
        assert_eq!(labels(&values(Unit::Percent, 0.0, 0.0, 2)), ["0.0", "0.5", "1.0"]);
    }

    #[test]
    fn a_small_change_of_much_can_be_seen() {
        let axis = values(Unit::Bytes, 23.0 * 1024.0 * MIB, 23.5 * 1024.0 * MIB, 5);
        assert!(axis.is_cut() && axis.low <= 23.0 * 1024.0 * MIB && axis.ticks.len() > 3, "{axis:?}");
        assert!(!values(Unit::Bytes, 1.0 * MIB, 24.0 * MIB, 5).is_cut());
    }

    #[test]
    fn differences_and_powers_have_round_ticks() {
        assert_eq!(labels(&numbers(-1.2, 2.6, 5)), ["-2", "-1", "0", "1", "2", "3"]);
        assert_eq!(labels(&powers(3.9, 171.0, 8)), ["2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(labels(&powers(0.004, 900.0, 7)), ["0.01", "0.1", "1", "10", "100", "1000"]);
    }

    #[test]
    fn time_is_in_the_unit_of_its_steps() {
        assert_eq!(labels(&time(0.0, 4.2, 5)), ["0", "1", "2", "3", "4"]);
        let axis = time(0.0, 600.0, 6);
        assert_eq!((labels(&axis), axis.unit.as_str()), (vec!["0", "2", "4", "6", "8", "10"], "min"));
    }

    proptest! {
        #[test]
        fn any_values_have_an_axis(least in any::<f64>(), most in any::<f64>(), count in 0usize..20) {
            for unit in [Unit::Bytes, Unit::PerSecond, Unit::Percent] {
                let axis = values(unit, least, most, count);
                prop_assert!(axis.ticks.len() <= MOST_TICKS + 1 && !axis.ticks.is_empty());
                prop_assert!((0.0..=1.0).contains(&axis.share(least)) || least.is_nan());
                if most.is_finite() && most > 0.0 && most < 1e15 {
                    prop_assert!(axis.high >= most * 0.999);
                }
            }
            prop_assert!(time(least, most, count).ticks.len() <= MOST_TICKS);
            for axis in [numbers(least, most, count), powers(least, most, count)] {
                prop_assert!(axis.high > axis.low && axis.ticks.len() <= MOST_TICKS + 1, "{axis:?}");
            }
        }
    }
}
