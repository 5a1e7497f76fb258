//! Every algorithm that this machine's compressed swap could use, on the same pages: on a scratch zram device, or with a library in user space if no zram
//! device offers it (zswap's others) or none can be made. All take part in the same rounds: an estimate of other pages would compare with no measurement.

use eke_linux::Root;
use eke_statistics::Random;

use super::estimate;
use super::limits::Limits;
use super::measurements::{AlgorithmMeasurement, Measured};
use super::ratio::{self, PerData};
use super::rounds::{PageDevice, PageDevices, Rounds, Row, Time};
use super::sample::Sample;
use super::scratch::Scratch;
use super::times::Monotonic;
use super::variants::{self, Variant};
use super::zram::{self, ZramDevices};
use super::{dictionary, rows};
use crate::error::{Error, Result};
use crate::facts::{Facts, Hardware, Missing, ZramFeatures};
use crate::measure::Dictionary;

/// What is compared, and for how long.
pub(super) struct Comparison<'a> {
    pub root: &'a Root,
    pub facts: &'a Facts,
    pub limits: &'a Limits,
    /// As [`super::Scope::algorithms`].
    pub only: Option<&'a [String]>,
}

impl Comparison<'_> {
    /// Fills in the rows of all algorithms.
    ///
    /// # Errors
    /// No memory, or a scratch device that could not be removed.
    pub(super) fn run(
        &self,
        scratch: &mut dyn Scratch,
        sample: &mut Sample,
        random: &mut Random,
        out: &mut Measured,
    ) -> Result<()> {
        let Self { root, facts, limits, .. } = *self;
        let usable = zram_features(root, facts, scratch, out)?;
        let mut all = usable.as_ref().map(|features| self.on_zram(features, sample, out)).unwrap_or_default();
        let on_zram: Vec<String> = all.iter().map(|variant| variant.name.clone()).collect();
        let estimated = self.estimated(&on_zram, out);
        let time = time(limits, !on_zram.is_empty(), !estimated.is_empty());
        all.extend(estimated);
        let mut devices = Devices { zram: ZramDevices { root, scratch }, on_zram: &on_zram };
        let clock = Monotonic::started();
        let mut rows = Rounds { devices: &mut devices, sample, random, clock: &clock }.measure(all, time)?;
        let is_estimated = |row: &Row| !on_zram.contains(&row.variant.name);
        let per_data = per_data(rows.iter().filter(|row| !is_estimated(row)));
        for row in rows.iter_mut().filter(|row| is_estimated(row)) {
            row.outcome.iter_mut().flat_map(|run| &mut run.checkpoints).for_each(|at| at.allocate(per_data));
        }
        let in_zram = in_zram(facts, out).to_vec();
        out.algorithms.extend(rows.into_iter().map(|row| {
            let is_estimated = is_estimated(&row);
            offered(rows::measurement(row, sample, is_estimated), facts, &in_zram)
        }));
        Ok(())
    }

    /// The algorithms of zram: also with parameters and with a dictionary, or some alone.
    fn on_zram(&self, features: &ZramFeatures, sample: &mut Sample, out: &mut Measured) -> Vec<Variant> {
        if let Some(only) = self.only {
            return variants::variants(&some_of(&features.algorithms, only), false, None);
        }
        if features.algorithm_params && features.algorithms.iter().any(|name| name == "zstd") {
            match trained(sample) {
                Ok(dictionary) => out.dictionary = dictionary,
                Err(why) => out.unmeasured.push(Missing::new("zstd with a dictionary", why.to_string())),
            }
        }
        let path = out.dictionary.as_ref().map(Dictionary::path);
        let mut all = variants::variants(&features.algorithms, features.algorithm_params, path);
        for variant in &mut all {
            variant.hardware = Hardware::of(&self.facts.zram.hardware, &variant.name).map(str::to_owned);
        }
        all
    }

    /// The algorithms that are estimated: zswap's other ones, if it has a disk to be in front of, or all of both. Those without a library are in `out`.
    fn estimated(&self, on_zram: &[String], out: &mut Measured) -> Vec<Variant> {
        let in_zram = in_zram(self.facts, out).to_vec();
        let has_disk = self.facts.areas.iter().any(|area| area.zram_name().is_none());
        let others = zswap_offers(self.facts).iter().filter(|name| has_disk && !in_zram.contains(name));
        let names: Vec<String> =
            in_zram.iter().chain(others).filter(|name| !on_zram.contains(name)).cloned().collect();
        let names = match self.only {
            Some(_) if !on_zram.is_empty() => Vec::new(),
            Some(only) => some_of(&names, only),
            None => names,
        };
        let mut all = Vec::new();
        for name in &names {
            match estimate::has_codec(name) {
                Ok(()) => all.push(Variant::as_shipped(name)),
                Err(why) => out.unmeasured.push(no_library(name, &why, in_zram.contains(name))),
            }
        }
        all
    }
}

/// Those of `names` that are in `only`; all if none is.
fn some_of(names: &[String], only: &[String]) -> Vec<String> {
    let some: Vec<String> = names.iter().filter(|name| only.contains(name)).cloned().collect();
    if some.is_empty() { names.to_vec() } else { some }
}

/// zram where it offers the algorithm, a library for the others.
struct Devices<'a> {
    zram: ZramDevices<'a>,
    on_zram: &'a [String],
}

impl PageDevices for Devices<'_> {
    fn add(&mut self, variant: &Variant, pages: usize) -> Result<Box<dyn PageDevice + '_>> {
        if self.on_zram.contains(&variant.name) {
            self.zram.add(variant, pages)
        } else {
            estimate::device(variant)
        }
    }
}

/// What zram offers here, if devices for a measurement can be made; else why not is in `out`.
fn zram_features(
    root: &Root,
    facts: &Facts,
    scratch: &mut dyn Scratch,
    out: &mut Measured,
) -> Result<Option<ZramFeatures>> {
    if let Some(why) = no_zram(facts) {
        out.unmeasured.push(Missing::new("zram", why));
        return Ok(None);
    }
    if out.zram_features.is_none() {
        match zram::discover(root, scratch) {
            Ok(found) => out.zram_features = Some(found),
            Err(e @ Error::NotRemoved { .. }) => return Err(e),
            Err(e) => out.unmeasured.push(Missing::new("zram", e.to_string())),
        }
    }
    Ok(out.zram_features.clone())
}

/// Why zram cannot be measured here; `None` if it can.
fn no_zram(facts: &Facts) -> Option<&'static str> {
    if !facts.is_root {
        Some(
            "a scratch device needs root (try with sudo), which then measures every algorithm in the kernel; the numbers are estimates from user space",
        )
    } else if !facts.zram.control {
        Some("this kernel has no zram (see `eke doctor`)")
    } else {
        None
    }
}

/// A dictionary of a quarter of the pages, which are not measured: with them its ratio would be too good.
pub(super) fn trained(sample: &mut Sample) -> Result<Option<Dictionary>> {
    let pages = (sample.distinct() / 4).min(dictionary::most_pages(rustix::param::page_size()));
    if pages < dictionary::LEAST_PAGES {
        return Ok(None);
    }
    Dictionary::train(&sample.hold_out(pages)?, pages)
}

/// An algorithm without a library is measured on zram alone.
fn no_library(name: &str, why: &str, in_zram: bool) -> Missing {
    let on_zram = match in_zram {
        true => "only root can measure it, on a zram device",
        false => "this kernel's zram, where eke could measure it, does not offer it",
    };
    Missing::new(name, format!("{why}, and {on_zram}"))
}

/// The algorithms of this kernel's zram, as far as known.
fn in_zram<'a>(facts: &'a Facts, out: &'a Measured) -> &'a [String] {
    out.zram_features.as_ref().map_or(&facts.zram.configured, |features| &features.algorithms)
}

fn zswap_offers(facts: &Facts) -> &[String] {
    facts.zswap.as_ref().map_or(&[], |z| &z.compressors)
}

/// The time for the rounds: that of zram, of estimates, or of both together.
fn time(limits: &Limits, on_zram: bool, estimates: bool) -> Time {
    let both = |zram, library| {
        (if on_zram { zram } else { Default::default() })
            + if estimates { library } else { Default::default() }
    };
    Time {
        usual: both(limits.zram, limits.estimates),
        if_unclear: both(limits.zram_if_unclear, limits.estimates_if_unclear),
        if_slow: both(limits.zram_if_slow, limits.estimates_if_slow),
    }
}

/// The allocator's memory for a byte of data, by all that was measured on zram; the usual one if nothing was.
fn per_data<'a>(measured: impl Iterator<Item = &'a Row>) -> f64 {
    let ends = |row: &'a Row| {
        let run = row.outcome.as_ref().ok()?;
        Some(ratio::growth(run.checkpoints.first()?, run.checkpoints.last()?))
    };
    let growths: Vec<(f64, f64)> = measured.filter_map(ends).collect();
    PerData::of(&growths, rustix::param::page_size()).bytes
}

/// With who offers it. What zswap alone offers may be done by its hardware, although a library was measured.
fn offered(row: AlgorithmMeasurement, facts: &Facts, in_zram: &[String]) -> AlgorithmMeasurement {
    let (is_in_zram, zswap) = (in_zram.contains(&row.name), facts.zswap.as_ref());
    let by_zswap = zswap.filter(|_| !is_in_zram).and_then(|zswap| Hardware::of(&zswap.hardware, &row.name));
    AlgorithmMeasurement {
        in_zram: is_in_zram,
        in_zswap: row.is_as_shipped() && zswap_offers(facts).contains(&row.name),
        hardware: by_zswap.map(str::to_owned).or(row.hardware),
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ZswapFacts;

    #[test]
    fn some_algorithms_or_all_if_the_kernel_has_none_of_them() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let usual = names("lzo-rle lz4 zstd");
        assert_eq!(some_of(&names("lzo lzo-rle lz4hc zstd 842"), &usual), ["lzo-rle", "zstd"]);
        assert_eq!(some_of(&names("842 deflate"), &usual), ["842", "deflate"]);
    }

    #[test]
    fn what_zswap_alone_offers_may_be_done_by_its_hardware() {
        let iaa = Hardware {
            algorithm: "deflate".into(),
            driver: "deflate-iaa".into(),
            module: "iaa_crypto".into(),
            priority: 300,
        };
        let zswap = ZswapFacts {
            compressors: vec!["deflate".into(), "lzo".into()],
            hardware: vec![iaa],
            ..ZswapFacts::default()
        };
        let facts = Facts { zswap: Some(zswap), ..Facts::default() };
        let of = |name: &str, in_zram: &[String]| {
            let row = AlgorithmMeasurement { name: name.into(), ..AlgorithmMeasurement::default() };
            let row = offered(row, &facts, in_zram);
            (row.in_zram, row.in_zswap, row.hardware)
        };
        assert_eq!(of("deflate", &[]), (false, true, Some("iaa_crypto".into())));
        assert_eq!(of("lzo", &[]), (false, true, None));
        assert_eq!(of("deflate", &["deflate".into()]), (true, true, None), "zram's own is on the CPU");
    }

    #[test]
    fn both_kinds_share_the_time_of_both() {
        let limits = Limits::default();
        assert_eq!(time(&limits, true, true).usual, limits.zram + limits.estimates);
        assert_eq!(time(&limits, true, false).if_slow, limits.zram_if_slow);
        assert_eq!(time(&limits, false, true).if_unclear, limits.estimates_if_unclear);
    }
}
