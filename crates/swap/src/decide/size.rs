//! The declared size, and its capacity.

use eke_model::units::Bytes;

use super::{BadOverride, Overrides};
use crate::facts::Facts;
use crate::measure::measurements::AlgorithmMeasurement;

/// The ratio of a sample that is too small to trust is clamped to this range: zram.rst expects 2 to 1.
const UNTRUSTED_RATIO: (f64, f64) = (1.5, 2.0);

/// The largest first device, as a multiple of RAM: later pages may compress worse than the sample. The agent adds another device while the real
/// cost stays below its share. Documentation/admin-guide/blockdev/zram.rst advises against more than twice, since it expects 2 to 1. On a small machine
/// a measured ratio of 4 to 1 overrules that: its device is filled within a second or two, so a wrong guess is no long stall. On a large one, filling
/// three times RAM would be.
const MOST_TIMES_RAM: f64 = 2.0;
const MOST_TIMES_SMALL_RAM: f64 = 3.0;
/// RAM up to this is small.
const SMALL: Bytes = Bytes::mib(1024);

/// The largest share of RAM for a pool, even on request.
const MOST_OF_RAM: f64 = 0.9;

/// A size and its consequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// The pool's share of RAM when it is full, by the conservative ratio, 0..=1.
    pub pool_share: f64,
    /// zram's disksize.
    pub holds: Bytes,
    /// The machine's capacity with a full device, as a multiple of its RAM, by the expected ratio.
    pub times_ram: f64,
    /// The ratio that the size was computed with.
    pub ratio_used: f64,
    /// The expected ratio: the measured one, if trusted.
    pub ratio_expected: f64,
    /// The multiple of RAM that capped the size; `None` if the pool's share did.
    pub capped_at: Option<f64>,
}

/// The size for the algorithm of `measurement`, in whole MiB: it fits into the pool's share of RAM at the conservative ratio.
///
/// # Errors
/// A requested size of less than a page, or one that would take more than 90 % of RAM.
pub fn size(
    facts: &Facts,
    measurement: &AlgorithmMeasurement,
    overrides: &Overrides,
    trusted: bool,
) -> Result<Size, BadOverride> {
    let believed = |r: f64| if trusted { r } else { r.clamp(UNTRUSTED_RATIO.0, UNTRUSTED_RATIO.1) };
    let (ratio_used, ratio_expected) =
        (believed(measurement.ratio_low.max(1.0)), believed(measurement.ratio.max(1.0)));
    let share = f64::from(overrides.settings.pool_percent) / 100.0;
    let cost_per_byte = 1.0 / ratio_used + slot_overhead(facts);
    let fits = share / cost_per_byte;
    let most = if facts.ram <= SMALL { MOST_TIMES_SMALL_RAM } else { MOST_TIMES_RAM };
    let holds = match overrides.size {
        Some(bytes) => checked(bytes, facts.ram, cost_per_byte)?,
        None => Bytes((facts.ram.0 as f64 * fits.min(most)) as u64 >> 20 << 20),
    };
    Ok(Size {
        pool_share: holds.0 as f64 * cost_per_byte / facts.ram.0.max(1) as f64,
        holds,
        times_ram: times_ram(facts, holds, ratio_expected),
        ratio_used,
        ratio_expected,
        capped_at: (overrides.size.is_none() && fits > most).then_some(most),
    })
}

fn checked(bytes: Bytes, ram: Bytes, cost_per_byte: f64) -> Result<Bytes, BadOverride> {
    // the largest page of any supported kernel: the kernel would round up to it and report another size
    let page = 1 << 16;
    if bytes.0 < page {
        return Err(BadOverride(format!(
            "a size of {bytes} is less than the largest page of a kernel (64 KiB); give for example {}",
            ram.scaled(1.0)
        )));
    }
    let cost = Bytes((bytes.0 as f64 * cost_per_byte) as u64);
    let most = ram.scaled(MOST_OF_RAM);
    if cost > most {
        let possible = as_printed(Bytes((most.0 as f64 / cost_per_byte) as u64));
        return Err(BadOverride(format!(
            "{bytes} of swap would take {cost} when full, more than {:.0} % of this machine's {ram}: give at most {possible}",
            100.0 * MOST_OF_RAM
        )));
    }
    Ok(Bytes(bytes.0 / page * page))
}

/// Rounded down to a size that prints, and so can be typed, as it is.
fn as_printed(bytes: Bytes) -> Bytes {
    let unit = 1u64 << (bytes.0.max(1).ilog2() / 10 * 10).min(40);
    if bytes.0 < 10 * unit { Bytes(bytes.0 * 10 / unit * unit / 10) } else { Bytes(bytes.0 / unit * unit) }
}

/// zswap has no size of its own.
///
/// # Errors
/// A size is requested.
pub(super) fn refuse_for_zswap(overrides: &Overrides) -> Result<(), BadOverride> {
    overrides.size.map_or(Ok(()), |size| {
        Err(BadOverride(format!(
            "a size of {size} is for zram, and this machine gets zswap, whose pool is a share of RAM: give --pool-percent, or --backend zram"
        )))
    })
}

/// The kernel's table of slots per declared byte, used or not.
fn slot_overhead(facts: &Facts) -> f64 {
    facts.zram.table_bytes() / facts.page() as f64
}

/// The memory of a device's table, which it takes before it stores a page.
pub(super) fn table(facts: &Facts, holds: Bytes) -> Bytes {
    Bytes((holds.0 as f64 * slot_overhead(facts)) as u64)
}

/// The capacity of a machine with a full zram of this size, as a multiple of its RAM.
pub(super) fn times_ram(facts: &Facts, holds: Bytes, ratio: f64) -> f64 {
    let pool = holds.0 as f64 * (1.0 / ratio.max(1.0) + slot_overhead(facts));
    let ram = facts.ram.0.max(1) as f64;
    (ram - pool + holds.0 as f64) / ram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ZramFacts;

    fn facts() -> Facts {
        Facts { ram: Bytes::mib(1000), ..Facts::default() }
    }

    fn measurement(ratio: f64, low: f64) -> AlgorithmMeasurement {
        AlgorithmMeasurement { ratio, ratio_low: low, ..AlgorithmMeasurement::default() }
    }

    fn overrides(pool_percent: u32, size: Option<Bytes>) -> Overrides {
        let mut settings = eke_model::config::Settings::from_sources(&[]).unwrap().swap;
        settings.pool_percent = pool_percent;
        Overrides { settings, size, ..Overrides::default() }
    }

    #[test]
    fn a_full_device_costs_at_most_its_share() {
        let s = size(&facts(), &measurement(3.0, 2.5), &overrides(50, None), true).unwrap();
        assert!(s.pool_share <= 0.5 && s.pool_share > 0.49, "{s:?}");
        assert_eq!(s.holds, Bytes::mib(1237));
        assert!((s.times_ram - 1.82).abs() < 0.01, "{s:?}");
    }

    #[test]
    fn an_excellent_ratio_is_not_bet_on() {
        let s = size(&facts(), &measurement(9.0, 8.0), &overrides(50, None), true).unwrap();
        assert_eq!((s.holds, s.capped_at), (Bytes::mib(3000), Some(3.0)));
        assert!(s.pool_share < 0.39, "{s:?}");
        let large = Facts { ram: Bytes::mib(4000), ..Facts::default() };
        let s = size(&large, &measurement(9.0, 8.0), &overrides(50, None), true).unwrap();
        assert_eq!((s.holds, s.capped_at), (Bytes::mib(8000), Some(2.0)));
    }

    /// What a peer declares in 124 MiB: twice RAM (ChromeOS), or 256 MiB whatever the RAM (zram-tools). Documents' pages
    /// in two viewers compressed 4.3 to 1, at least 3.9.
    #[test]
    fn a_small_machine_with_documents_gets_more_than_a_formula_gives() {
        let settings = eke_model::config::Settings::from_sources(&[]).unwrap().swap;
        let small = Facts { ram: Bytes::mib(124), ..Facts::default() };
        let s = size(&small, &measurement(4.3, 3.9), &Overrides { settings, ..Overrides::default() }, true)
            .unwrap();
        assert_eq!(s.holds, Bytes::mib(372));
    }

    /// Debian's kernels keep a time for each page.
    #[test]
    fn a_table_with_times_leaves_less_room_and_is_there_from_the_start() {
        let zram = ZramFacts { idle_age: Some(true), ..ZramFacts::default() };
        let tracking = Facts { zram, ..facts() };
        assert_eq!([facts(), tracking.clone()].map(|f| table(&f, Bytes::mib(1 << 20)).0 >> 20), [4096, 6144]);
        let holds = |f: &Facts| size(f, &measurement(3.0, 2.5), &overrides(50, None), true).unwrap().holds;
        assert!(holds(&tracking) < holds(&facts()));
    }

    #[test]
    fn few_pages_are_not_believed() {
        let s = size(&facts(), &measurement(9.0, 8.0), &overrides(50, None), false).unwrap();
        assert_eq!(s.holds, Bytes::mib(992));
        assert_eq!(s.ratio_expected, 2.0);
    }

    #[test]
    fn the_size_that_a_refusal_names_is_granted() {
        for mib in [64, 900, 1000, 1900, 16_000, 70_000, 3 << 20] {
            let facts = Facts { ram: Bytes::mib(mib), ..Facts::default() };
            let of = |bytes| size(&facts, &measurement(3.0, 2.5), &overrides(50, Some(bytes)), true);
            let refusal = of(Bytes::mib(mib * 9)).unwrap_err().0;
            let named: Bytes = refusal.split("give at most ").nth(1).unwrap().parse().unwrap();
            assert!(of(named).is_ok() && named > Bytes::mib(mib * 2), "{refusal}");
        }
    }

    #[test]
    fn zero_and_more_than_ram_are_refused() {
        assert!(
            size(&facts(), &measurement(3.0, 2.5), &overrides(50, Some(Bytes(0))), true)
                .unwrap_err()
                .0
                .contains("largest page")
        );
        let error = size(&facts(), &measurement(3.0, 2.5), &overrides(50, Some(Bytes::mib(9000))), true)
            .unwrap_err()
            .0;
        assert!(error.contains("more than 90 % of this machine's 1000 MiB: give at most"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn the_share_is_kept_for_any_ratio(low in 1.0f64..20.0, more in 1.0f64..2.0, percent in 10u32..=90) {
            let s = size(&facts(), &measurement(low * more, low), &overrides(percent, None), true).unwrap();
            proptest::prop_assert!(s.pool_share <= f64::from(percent) / 100.0 + 1e-9);
            proptest::prop_assert!(s.times_ram >= 0.99);
        }
    }
}
