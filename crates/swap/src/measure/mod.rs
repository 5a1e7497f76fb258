//! Measures compression on this machine's own pages, and the latency of its disks.
//!
//! # Layout
//! - [`measurements`], [`limits`]: the result and the limits, as data
//! - `decode`, `quota`, `sampler`, `sample`, `buffer`: the choice of pages, and their copy in locked memory
//! - `dictionary`: what pages have in common, for zstd
//! - [`scratch`]: zram devices for the time of a measurement
//! - `variants`, `rounds`, [`ratio`], `rows`: all algorithms on the same pages, and the ratios from the readings
//! - `zram`: a page on a scratch device; `estimate`: the same in user space, for algorithms that no zram device offers
//! - `disk`: random reads
//! - `times`: the clock, and percentiles

mod buffer;
pub mod decode;
mod dictionary;
mod disk;
mod estimate;
pub mod limits;
pub mod measurements;
mod quota;
mod random;
pub mod ratio;
mod rounds;
mod rows;
mod sample;
mod sampler;
pub mod scratch;
mod times;
mod variants;
mod zram;

use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_linux::read::kernel_release;
use eke_statistics::Random;

pub use dictionary::Dictionary;
pub use limits::{Limits, Scope};
pub use measurements::{AlgorithmMeasurement, DiskLatency, Measured, PageCounts};
pub use scratch::{NoScratch, Scratch, Unjournaled};

use crate::error::Result;
use crate::facts::{Facts, Missing, ZramFeatures};
use crate::probe;
use rounds::{Rounds, Time};
use sample::Sample;
use times::Monotonic;
use variants::Variant;

/// Measures `scope` within `limits`. Scratch devices are made and removed through `scratch`. Without root or zram none is made, and all numbers are
/// marked as estimates. What cannot be measured is in [`Measured::unmeasured`], not an error.
///
/// # Errors
/// No memory for the sample, or a scratch device that could not be removed.
pub fn measure(
    root: &Root,
    facts: &Facts,
    limits: &Limits,
    scope: &Scope,
    scratch: &mut dyn Scratch,
) -> Result<Measured> {
    let started = Instant::now();
    let mut random = random::from_kernel();
    let requested = limits.pages_with(facts.available);
    let mut sample = sampled(root, scope, limits, requested, &mut random)?;
    let mut out = Measured {
        kernel: kernel_release(root),
        pages: sample.counts,
        zram_features: facts.zram.features.clone(),
        ..Measured::default()
    };
    if sample.len() == 0 {
        out.unmeasured.push(Missing::new("compression", nothing_to_compress(&sample)));
    } else {
        let on_zram = on_zram(root, facts, limits, scratch, &mut sample, &mut random, &mut out)?;
        estimates(facts, limits, &sample, &on_zram, &mut random, &mut out)?;
    }
    out.unmeasured.extend(others_processes(facts, &sample.counts));
    disks(root, facts, scope, limits.disk, &mut random, &mut out);
    out.estimated = !facts.is_root || out.algorithms.iter().all(|a| a.estimated || a.unusable.is_some());
    out.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(out)
}

/// Samples again, for longer, if the time was too short for half of the pages.
fn sampled(
    root: &Root,
    scope: &Scope,
    limits: &Limits,
    requested: usize,
    random: &mut Random,
) -> Result<Sample> {
    let mut take =
        |time: Duration| sampler::sample(root, scope.processes.as_deref(), requested, time, random);
    let mut sample = take(limits.sampling)?;
    let least = limits::LEAST_PAGES.max(requested / 2) as u64;
    if sample.is_cut && sample.counts.sampled < least {
        drop(sample);
        sample = take(limits.sampling_if_slow)?;
    }
    match sample.counts {
        PageCounts { sampled: 0, unreadable_processes: n @ 1.., .. } if scope.processes.is_none() => {
            Ok(sampler::stand_in(root, requested, n)?.unwrap_or(sample))
        }
        _ => Ok(sample),
    }
}

/// What root would add to the sample, if there is one.
fn others_processes(facts: &Facts, counts: &PageCounts) -> Option<Missing> {
    let PageCounts { sampled, processes, unreadable_processes: n, .. } = *counts;
    let (what, why) = match processes {
        0 => (
            "pages of programs",
            format!(
                "the memory of {n} processes may not be read, and pages of eke's own program, which compress less, stand in for them; root measures (try with sudo)"
            ),
        ),
        _ => ("pages of other users", format!("{n} processes may not be read; root samples them, too")),
    };
    (!facts.is_root && sampled > 0 && n > 0).then(|| Missing::new(what, why))
}

fn nothing_to_compress(sample: &Sample) -> String {
    let PageCounts { sampled, unreadable_processes, .. } = sample.counts;
    match (sampled, unreadable_processes) {
        (0, 0) => "no other process has anonymous pages".into(),
        (0, n) => format!("the memory of {n} processes may not be read; that needs root (try with sudo)"),
        (n, _) => {
            format!("all {n} sampled pages repeat one word, which takes no memory in zram")
        }
    }
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

/// The rows on zram together.
#[derive(Default)]
struct OnZram {
    /// The allocator's memory for a byte of data, if measured.
    per_data: Option<f64>,
    /// The pages that every algorithm stored.
    pages: Option<usize>,
}

/// Fills in zram's rows.
fn on_zram(
    root: &Root,
    facts: &Facts,
    limits: &Limits,
    scratch: &mut dyn Scratch,
    sample: &mut Sample,
    random: &mut Random,
    out: &mut Measured,
) -> Result<OnZram> {
    if let Some(why) = no_zram(facts) {
        out.unmeasured.push(Missing::new("zram", why));
        return Ok(OnZram::default());
    }
    let Some(features) = zram_features(root, scratch, out)? else { return Ok(OnZram::default()) };
    if features.algorithm_params && features.algorithms.iter().any(|name| name == "zstd") {
        match trained(sample) {
            Ok(dictionary) => out.dictionary = dictionary,
            Err(why) => out.unmeasured.push(Missing::new("zstd with a dictionary", why.to_string())),
        }
    }
    let path = out.dictionary.as_ref().map(Dictionary::path);
    let variants = variants::variants(&features.algorithms, features.algorithm_params, path);
    let mut devices = zram::ZramDevices { root, scratch };
    let clock = Monotonic::started();
    let mut rounds = Rounds { devices: &mut devices, sample, random, clock: &clock, most: usize::MAX };
    let time = Time { usual: limits.zram, if_unclear: limits.zram_if_unclear, if_slow: limits.zram_if_slow };
    let rows = rounds.measure(variants, time)?;
    let mut growths = Vec::new();
    let mut pages = None;
    for row in rows {
        if let Ok(run) = &row.outcome {
            let ends = run.checkpoints.first().zip(run.checkpoints.last());
            growths.extend(ends.map(|(first, last)| ratio::growth(first, last)));
            pages = Some(run.pages());
        }
        let mut row = rows::measurement(row, sample, false);
        row.in_zram = true;
        row.in_zswap = row.is_as_shipped() && zswap_offers(facts).contains(&row.name);
        out.algorithms.push(row);
    }
    let per_data = ratio::PerData::of(&growths, rustix::param::page_size());
    Ok(OnZram { per_data: Some(per_data.bytes), pages })
}

/// A dictionary of a quarter of the pages, which are not measured: with them its ratio would be too good.
fn trained(sample: &mut Sample) -> Result<Option<Dictionary>> {
    let pages = (sample.distinct() / 4).min(dictionary::MOST_PAGES);
    if pages < dictionary::LEAST_PAGES {
        return Ok(None);
    }
    Dictionary::train(&sample.hold_out(pages)?, pages)
}

/// A dictionary of the pages that the machine has now, without a measurement: for a plan with an earlier one. `None` if they are too few.
///
/// # Errors
/// There is no memory, or this process may have no file in memory.
pub fn dictionary(root: &Root, facts: &Facts, limits: &Limits) -> Result<Option<Dictionary>> {
    let requested = limits.pages_with(facts.available).min(dictionary::MOST_PAGES);
    let mut sample = sampled(root, &Scope::default(), limits, requested, &mut random::from_kernel())?;
    let pages = sample.distinct();
    Dictionary::train(&sample.hold_out(pages)?, pages)
}

fn zram_features(root: &Root, scratch: &mut dyn Scratch, out: &mut Measured) -> Result<Option<ZramFeatures>> {
    if out.zram_features.is_none() {
        match zram::discover(root, scratch) {
            Ok(found) => out.zram_features = Some(found),
            Err(e @ crate::Error::NotRemoved { .. }) => return Err(e),
            Err(e) => out.unmeasured.push(Missing::new("zram", e.to_string())),
        }
    }
    Ok(out.zram_features.clone())
}

fn zswap_offers(facts: &Facts) -> &[String] {
    facts.zswap.as_ref().map_or(&[], |z| &z.compressors)
}

/// An algorithm without a library is measured on zram alone.
fn no_library(name: &str, why: &str, in_zram: bool) -> Missing {
    let on_zram = match in_zram {
        true => "only root can measure it, on a zram device",
        false => "this kernel's zram, where eke could measure it, does not offer it",
    };
    Missing::new(name, format!("{why}, and {on_zram}"))
}

/// Estimates all algorithms that were not measured on zram: zswap's other ones, or all of both. They get the pages of those on zram.
fn estimates(
    facts: &Facts,
    limits: &Limits,
    sample: &Sample,
    on_zram: &OnZram,
    random: &mut Random,
    out: &mut Measured,
) -> Result<()> {
    let in_zram = match &out.zram_features {
        Some(features) => features.algorithms.clone(),
        None => facts.zram.configured.clone(),
    };
    let in_zswap = zswap_offers(facts);
    let mut names: Vec<&String> =
        in_zram.iter().chain(in_zswap.iter().filter(|n| !in_zram.contains(n))).collect();
    names.retain(|n| !out.algorithms.iter().any(|a| a.name == **n));
    let mut variants = Vec::new();
    for name in names {
        match estimate::has_codec(name) {
            Ok(()) => variants.push(Variant::as_shipped(name)),
            Err(why) => out.unmeasured.push(no_library(name, &why, in_zram.contains(name))),
        }
    }
    let most = on_zram.pages.unwrap_or(usize::MAX).min(estimate::PAGES);
    let mut devices = estimate::Codecs::new(on_zram.per_data, most);
    let clock = Monotonic::started();
    let mut rounds = Rounds { devices: &mut devices, sample, random, clock: &clock, most };
    let time = Time {
        usual: limits.estimates,
        if_unclear: limits.estimates_if_unclear,
        if_slow: limits.estimates_if_slow,
    };
    for row in rounds.measure(variants, time)? {
        let mut row = rows::measurement(row, sample, true);
        row.in_zram = in_zram.contains(&row.name);
        row.in_zswap = in_zswap.contains(&row.name);
        out.algorithms.push(row);
    }
    Ok(())
}

/// Fills in the two disks.
fn disks(root: &Root, facts: &Facts, scope: &Scope, time: Duration, random: &mut Random, out: &mut Measured) {
    let mut on_disk: Vec<_> = facts.areas.iter().filter(|a| a.zram_name().is_none()).collect();
    on_disk.sort_by_key(|a| std::cmp::Reverse(a.priority));
    if let Some(area) = on_disk.first() {
        let device = facts.disk_areas.iter().find(|d| d.path == area.path).and_then(|d| d.device.clone());
        match disk::swap_area(root, area, Instant::now() + time, random) {
            Ok(latency) => out.swap_disk = Some(DiskLatency { device, ..latency }),
            Err(e) => out.unmeasured.push(Missing::new("swap disk", e.to_string())),
        }
    }
    match disk::files(root, scope.files.as_deref(), time, random) {
        Ok(latency) => {
            let dir = scope.files.as_deref().map_or("/usr".into(), |dir| dir.to_string_lossy());
            let device = probe::disks::of_path(root, &dir);
            out.file_read = Some(DiskLatency { device, ..latency });
        }
        Err(e) => out.unmeasured.push(Missing::new("file read latency", e.to_string())),
    }
}
