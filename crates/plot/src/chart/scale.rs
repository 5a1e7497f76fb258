//! A scale, linear or logarithmic: values to pixels.

use crate::axis::{self, Axis};

/// The least distance of two labels, in pixels.
const BETWEEN: f64 = 62.0;

/// Maps values to pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    axis: Axis,
    logarithmic: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale for values from `least` to `most`, from pixel `from` to pixel `to`. A linear one includes zero.
    pub fn new((least, most): (f64, f64), logarithmic: bool, (from, to): (f64, f64)) -> Self {
        let count = ((to - from).abs() / BETWEEN).clamp(3.0, 9.0) as usize;
        let axis = if logarithmic {
            axis::powers(least, most, count)
        } else {
            axis::numbers(least.min(0.0), most.max(0.0), count)
        };
        Self { axis, logarithmic, from, to }
    }

    /// The pixel of a value. Values beyond an end are at that end, NaN is at the beginning.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let value = if value.is_nan() { self.axis.low } else { value };
        self.from + self.axis.share(value) * (self.to - self.from)
    }

    /// The pixel where bars begin: zero, or the beginning of a logarithmic scale.
    pub fn base(&self) -> f64 {
        if self.logarithmic { self.from } else { self.at(0.0) }
    }

    /// Pixels and labels, in order.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, &str)> {
        let pixel = |v: f64| self.from + self.axis.share(v) * (self.to - self.from);
        self.axis.ticks.iter().map(move |(v, label)| (pixel(*v), label.as_str()))
    }
}

/// The least and the greatest finite value; for a logarithmic scale only of those above zero.
pub fn span(values: impl Iterator<Item = f64>, logarithmic: bool) -> (f64, f64) {
    let values = values.filter(|v| v.is_finite() && (!logarithmic || *v > 0.0));
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_between_the_ends() {
        let scale = Scale::new((3.9, 171.0), true, (0.0, 700.0));
        assert!(scale.at(3.9) > 0.0 && scale.at(171.0) < 700.0 && scale.base() == 0.0);
        assert_eq!((scale.at(0.0), scale.at(1e9)), (0.0, 700.0));
        let scale = Scale::new((-1.0, 2.0), false, (100.0, 400.0));
        assert_eq!((scale.base(), scale.at(-1.0), scale.at(2.0)), (200.0, 100.0, 400.0));
    }

    #[test]
    fn an_empty_set_has_a_scale() {
        for logarithmic in [true, false] {
            let scale = Scale::new(span(std::iter::empty(), logarithmic), logarithmic, (0.0, 300.0));
            assert!(scale.at(1.0).is_finite() && scale.ticks().count() > 1);
        }
    }
}
