//! Measures compression on this machine's own pages, and the latency of its disks.
//!
//! # Layout
//! - [`measurements`], [`limits`]: the result and the limits, as data; `machine`: whose they are
//! - `decode`, `quota`, `sampler`, `sample`, `buffer`: the choice of pages, and their copy in locked memory
//! - `dictionary`: what pages have in common, for zstd; [`dictionaries`]: a new one beside the one in use
//! - [`scratch`]: zram devices for the time of a measurement
//! - `variants`, `rounds`, [`ratio`], `rows`: all algorithms on the same pages, and the ratios from the readings
//! - `zram`: a page on a scratch device; `estimate`: the same in user space, for algorithms that no zram device offers; `compare`: both together
//! - `disk`: random reads
//! - `times`: the clock, and percentiles

mod buffer;
mod compare;
pub mod decode;
pub mod dictionaries;
mod dictionary;
mod disk;
mod estimate;
pub mod limits;
mod machine;
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
pub use machine::Machine;
pub use measurements::{AlgorithmMeasurement, DiskLatency, Measured, PageCounts};
pub use scratch::{NoScratch, Scratch, Unjournaled};

use crate::error::Result;
use crate::facts::{Facts, Missing};
use crate::probe;
use sample::Sample;

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
    if sample.counts.sampled == 0 && !facts.is_root && scope.processes.is_none() {
        let unreadable = sample.counts.unreadable_processes;
        sample = sampler::stand_in(root, requested, unreadable)?.unwrap_or(sample);
    }
    let mut out = Measured {
        kernel: kernel_release(root),
        machine: Some(Machine::of(root)),
        pages: sample.counts,
        zram_features: facts.zram.features.clone(),
        ..Measured::default()
    };
    if sample.len() == 0 {
        out.unmeasured.push(Missing::new("compression", nothing_to_compress(&sample)));
    } else {
        let comparison = compare::Comparison { root, facts, limits, only: scope.algorithms.as_deref() };
        comparison.run(scratch, &mut sample, &mut random, &mut out)?;
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
    Ok(sample)
}

/// What root would add to the sample, if there is one.
fn others_processes(facts: &Facts, counts: &PageCounts) -> Option<Missing> {
    let PageCounts { sampled, processes, unreadable_processes: n, .. } = *counts;
    let (what, why) = match processes {
        0 if n == 0 => (
            "pages of programs",
            "/proc hides the processes of others (hidepid), and pages of eke's own program, which compress less, stand in for them; root measures (try with sudo)".to_owned(),
        ),
        0 => (
            "pages of programs",
            format!(
                "the memory of {n} processes may not be read, and pages of eke's own program, which compress less, stand in for them; root measures (try with sudo)"
            ),
        ),
        _ => ("pages of other users", format!("{n} processes may not be read; root samples them, too")),
    };
    (!facts.is_root && sampled > 0 && (n > 0 || processes == 0)).then(|| Missing::new(what, why))
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

/// A dictionary of the pages that the machine has now, without a measurement: for a plan with an earlier one. `None` if they are too few.
///
/// # Errors
/// There is no memory, or this process may have no file in memory.
pub fn dictionary(root: &Root, facts: &Facts, limits: &Limits) -> Result<Option<Dictionary>> {
    let most = dictionary::most_pages(rustix::param::page_size());
    let requested = limits.pages_with(facts.available).min(most);
    let mut sample = sampled(root, &Scope::default(), limits, requested, &mut random::from_kernel())?;
    let pages = sample.distinct();
    Dictionary::train(&sample.hold_out(pages)?, pages)
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
