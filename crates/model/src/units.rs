//! Bytes, times and the page size as types, and their text form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One mebibyte in bytes.
pub const MIB: u64 = 1 << 20;

/// A number of bytes. Prints in binary units (`410 MiB`); reads `124M`, `1.5G`, `64KiB` or plain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n * MIB)
    }

    /// This share of the bytes, rounded down; `share` is clamped to 0..=16.
    pub fn scaled(self, share: f64) -> Self {
        Self((self.0 as f64 * share.clamp(0.0, 16.0)) as u64)
    }

    /// The difference, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self(0), |a, b| a + b)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit < units.len() - 1 {
            value /= 1024.0;
            unit += 1;
        }
        let digits = usize::from(unit > 0 && value < 10.0);
        f.pad(&format!("{value:.digits$} {}", units[unit]))
    }
}

/// Page size of the machine, the unit of many kernel counters: 4, 16 or 64 KiB, depending on the kernel's
/// configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u64);

impl PageSize {
    /// The smallest page size of Linux.
    pub const SMALLEST: Self = Self(4 << 10);
    /// The largest page size that eke expects (arm64, powerpc64).
    pub const LARGEST: Self = Self(64 << 10);

    /// A page size in bytes; `None` if Linux has no such pages.
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= Self::SMALLEST.0 { Some(Self(bytes)) } else { None }
    }

    /// Size of a page in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Size of `pages` pages.
    pub const fn of(self, pages: u64) -> Bytes {
        Bytes(pages.saturating_mul(self.0))
    }

    /// Start of the page that contains `byte`.
    pub const fn begin(self, byte: u64) -> u64 {
        byte & !(self.0 - 1)
    }

    /// Number of pages with at least one byte of `first..end`.
    pub const fn touched(self, first: u64, end: u64) -> u64 {
        if first >= end { 0 } else { end.div_ceil(self.0) - first / self.0 }
    }
}

/// A text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a size: give a number with K, M, G or T (powers of 1024), for example 124M")]
pub struct BadSize {
    text: String,
}

impl FromStr for Bytes {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, BadSize> {
        let bad = || BadSize { text: text.to_owned() };
        let trimmed = text.trim();
        let digits_end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits_end);
        let number: f64 = number.parse().map_err(|_| bad())?;
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(bad()),
        };
        let bytes = number * (1u64 << shift) as f64;
        if bytes.is_finite() && bytes < 9.0e18 { Ok(Self(bytes as u64)) } else { Err(bad()) }
    }
}

/// A time in nanoseconds. Prints with three significant digits (`2.13 µs`, `15.9 ms`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// `n` microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            n if n < 1_000 => (n as f64, "ns"),
            n if n < 1_000_000 => (n as f64 / 1e3, "µs"),
            n if n < 1_000_000_000 => (n as f64 / 1e6, "ms"),
            n => (n as f64 / 1e9, "s"),
        };
        let digits = match value {
            v if unit == "ns" || v >= 100.0 => 0,
            v if v >= 10.0 => 1,
            _ => 2,
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_in_the_machines_own() {
        for (kib, begin, touched) in [(4, 20_480, 4), (16, 16_384, 2), (64, 0, 1)] {
            let page = PageSize::new(kib << 10).unwrap();
            assert_eq!(
                (page.begin(20_500), page.touched(20_500, 32_769), page.touched(9, 9)),
                (begin, touched, 0)
            );
            assert_eq!((page.of(3), page.of(u64::MAX)), (Bytes((3 * kib) << 10), Bytes(u64::MAX)));
            assert_eq!(page.touched(0, u64::MAX), u64::MAX / page.bytes() + 1);
        }
        assert_eq!([0, 1, 512, 2048, 6000].map(PageSize::new), [None; 5]);
    }

    #[test]
    fn bytes_print_in_binary_units() {
        let shown: Vec<String> =
            [0, 512, 4096, 10 * MIB, 3 * MIB / 2, 1 << 34].map(|n| Bytes(n).to_string()).into();
        assert_eq!(shown, ["0 B", "512 B", "4.0 KiB", "10 MiB", "1.5 MiB", "16 GiB"]);
    }

    #[test]
    fn bytes_read_with_units() {
        assert_eq!("124M".parse(), Ok(Bytes::mib(124)));
        assert_eq!("1.5GiB".parse(), Ok(Bytes::mib(1536)));
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        assert!("12 parsecs".parse::<Bytes>().is_err());
        assert!("-1".parse::<Bytes>().is_err());
        assert!("".parse::<Bytes>().is_err());
    }

    #[test]
    fn nanos_print_three_digits() {
        let shown: Vec<String> =
            [740, 2_134, 15_936, 246_784, 9_000_000].map(|n| Nanos(n).to_string()).into();
        assert_eq!(shown, ["740 ns", "2.13 µs", "15.9 µs", "247 µs", "9.00 ms"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_size_or_a_refusal(text in ".{0,12}") {
            let _ = text.parse::<Bytes>();
        }
    }
}
