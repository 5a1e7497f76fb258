//! Measures compression on this machine's own pages, and the latency of its disks.
//!
//! # Layout
//! - [`measurements`], [`limits`]: the result and the limits, as data
//! - `decode`, `quota`, `sampler`, `buffer`: the choice of pages, and their copy in locked memory
//! - [`scratch`]: zram devices for the time of a measurement
//! - `variants`, `zram`, [`ratio`]: the sample on each algorithm, and the ratio from the readings
//! - `estimate`: algorithms in user space, for those that no zram device offers
//! - `disk`: random reads

mod buffer;
pub mod decode;
mod disk;
mod estimate;
pub mod limits;
pub mod measurements;
mod quota;
mod random;
pub mod ratio;
mod sampler;
pub mod scratch;
mod variants;
mod zram;

use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_statistics::Random;

pub use limits::{Limits, Scope};
pub use measurements::{AlgorithmMeasurement, DiskLatency, Measured, PageCounts};
pub use scratch::{NoScratch, Scratch, Unjournaled};

use crate::error::Result;
use crate::facts::{Facts, Missing, ZramFeatures};
use crate::probe;
use sampler::Sample;

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
    let sample = sampled(root, scope, limits, requested, &mut random)?;
    let mut out = Measured {
        kernel: kernel(root),
        pages: sample.counts,
        zram_features: facts.zram.features.clone(),
        ..Measured::default()
    };
    if sample.len() == 0 {
        out.unmeasured.push(Missing::new("compression", nothing_to_compress(&sample)));
    } else {
        let overhead = on_zram(root, facts, limits, scratch, &sample, &mut random, &mut out)?;
        estimates(facts, limits.estimates, &sample, overhead, &mut out);
    }
    disks(root, facts, scope, limits.disk, &mut random, &mut out);
    out.estimated = !facts.is_root || out.algorithms.iter().all(|a| a.estimated || a.unusable.is_some());
    out.took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(out)
}

/// Samples again, for longer, if the time was too short for enough pages.
fn sampled(
    root: &Root,
    scope: &Scope,
    limits: &Limits,
    requested: usize,
    random: &mut Random,
) -> Result<Sample> {
    let began = Instant::now();
    let sample = sampler::sample(root, scope.processes.as_deref(), requested, limits.sampling, random)?;
    let few = sample.counts.sampled < limits::LEAST_PAGES as u64;
    if !few || began.elapsed() < limits.sampling.mul_f64(0.6) {
        return Ok(sample);
    }
    drop(sample);
    sampler::sample(root, scope.processes.as_deref(), requested, limits.sampling_if_slow, random)
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

/// The running kernel's release.
pub fn kernel(root: &Root) -> String {
    root.read("proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Why zram cannot be measured here; `None` if it can.
fn no_zram(facts: &Facts) -> Option<&'static str> {
    if !facts.is_root {
        Some("a scratch device needs root (try with sudo); the numbers are estimates from user space")
    } else if !facts.zram.control {
        Some("this kernel has no zram (see `eke doctor`); the numbers are estimates from user space")
    } else {
        None
    }
}

/// Fills in zram's rows; returns the allocator's overhead, if measured.
fn on_zram(
    root: &Root,
    facts: &Facts,
    limits: &Limits,
    scratch: &mut dyn Scratch,
    sample: &Sample,
    random: &mut Random,
    out: &mut Measured,
) -> Result<Option<f64>> {
    if let Some(why) = no_zram(facts) {
        out.unmeasured.push(Missing::new("zram", why));
        return Ok(None);
    }
    let Some(features) = zram_features(root, scratch, out)? else { return Ok(None) };
    let variants = variants::variants(&features.algorithms, features.algorithm_params);
    let share = |time: Duration| time / u32::try_from(variants.len().max(1)).unwrap_or(1);
    let time = zram::Time { usual: share(limits.zram), if_slow: share(limits.zram_if_slow) };
    let mut trials = zram::Trials { root, scratch, sample, random, overhead: zram::Overhead::default() };
    for variant in &variants {
        let mut row = trials.measure(variant, time)?;
        row.in_zswap = variant.params.is_none() && zswap_offers(facts).contains(&variant.name);
        out.algorithms.push(row);
    }
    Ok(trials.overhead.factor())
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

/// Estimates all algorithms that were not measured on zram: zswap's other ones, or all of both.
fn estimates(facts: &Facts, time: Duration, sample: &Sample, overhead: Option<f64>, out: &mut Measured) {
    let in_zram = out.zram_features.as_ref().map(|f| f.algorithms.clone()).unwrap_or_default();
    let in_zswap = zswap_offers(facts);
    let mut names: Vec<&String> =
        in_zram.iter().chain(in_zswap.iter().filter(|n| !in_zram.contains(n))).collect();
    names.retain(|n| !out.algorithms.iter().any(|a| a.name == **n));
    let share = time / u32::try_from(names.len().max(1)).unwrap_or(1);
    for name in names {
        match estimate::estimate(name, sample, overhead, Instant::now() + share) {
            Ok(mut row) => {
                row.in_zram = in_zram.contains(name);
                row.in_zswap = in_zswap.contains(name);
                out.algorithms.push(row);
            }
            Err(why) => out.unmeasured.push(Missing::new(name.as_str(), why)),
        }
    }
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
    match disk::files(root, scope.files.as_deref(), Instant::now() + time, random) {
        Ok(latency) => {
            let dir = scope.files.as_deref().map_or("/usr".into(), |dir| dir.to_string_lossy());
            let device = probe::disks::of_path(root, &dir);
            out.file_read = Some(DiskLatency { device, ..latency });
        }
        Err(e) => out.unmeasured.push(Missing::new("file read latency", e.to_string())),
    }
}
