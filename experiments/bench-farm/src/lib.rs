//! `eke bench farm`: four web servers on one slow origin, with caches of their own and one that they share.
//!
//! ```text
//! clients ─┐          ┌─ node: nginx · eke-cache · page cache · ext4 over NBD   (four, in boxes)
//!          ├─ switch ─┼─ engine: a member of a Valkey or Redis cluster           (three, in boxes)
//!          ┘          └─ origin: nbdkit or nginx · slow disk                     (one, in a box)
//! ```
//!
//! Each host is a network namespace; its link to the switch is limited to 1 Gb/s.
//!
//! - [`plan`]: the variants and their order; [`hosts`]: names and addresses; [`servers`]: configurations; [`cache`], [`metrics`], [`faults`],
//!   [`report`]: measurements as a report (pure); [`hot`]: hot keys of a larger farm, computed (pure); [`aged`]: old files
//! - [`net`], [`origin`], [`remote_disk`], [`node`], [`engine`], [`clients`]: the parts of a run; [`programs`]: which
//!   programs there are
//! - [`trial`]: one run, also with faults
//!
//! Mounts, disks, groups and namespaces are removed at the end. Their names contain their owner, so the next experiment removes those of
//! killed ones. A guard kills the boxes' processes when the experiment has ended, also by a kill.

pub mod aged;
pub mod cache;
pub mod clients;
pub mod engine;
pub mod error;
pub mod faults;
pub mod hosts;
pub mod hot;
pub mod metrics;
pub mod net;
pub mod node;
pub mod origin;
pub mod plan;
pub mod programs;
pub mod remote_disk;
pub mod report;
pub mod servers;
pub mod trial;

use std::sync::Arc;

use eke_apply::cgroup;
use eke_bench_core::test_image;
use eke_bench_core::variants::ArrangedMachine;
use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_bench_web::content::filled::{self, Filled};
use eke_model::units::{Bytes, MIB};
use eke_results::report::Report;
use eke_statistics::random::Random;

pub use error::Error;
use error::{Result, is_of_one_run};
use net::Net;
pub use plan::Options;
use plan::{Run, Variant};
use trial::{RunInputs, Trial};

/// The least node: a server, a network disk and something to cache.
const LEAST_MEMORY: Bytes = Bytes::mib(64);
/// The sizes of files.
const SIZES: (u64, u64) = (16 << 10, MIB);
/// How well files compress.
const RATIO: f64 = 2.5;

/// The experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Farm(pub Options);

/// What all runs share.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    /// The variants whose programs are installed.
    variants: Vec<Variant>,
    net: Net,
    content: Filled,
    _machine: ArrangedMachine,
}

impl Experiment for Farm {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes networks, boxes and a slow disk, and mounts there, which needs root");

    type Fixture<'e> = Fixture<'e>;
    type Run = Run;
    type Measurement = Trial;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>> {
        let options = &self.0;
        check(options)?;
        programs::check()?;
        let variants = possible(environment, options, notes)?;
        // First end the programs of dead experiments: they keep mounts in use.
        cgroup::sweep(environment.root)?;
        net::sweep(environment.root)?;
        test_image::sweep(environment.root)?;
        let machine = ArrangedMachine::prepare(environment.root)?;
        let files = environment.cache.join("farm");
        eke_bench_core::cache::make(&files).map_err(eke_bench_core::fault::on("use the cache", &files))?;
        test_image::sweep_dir(environment.root, &files)?;
        environment.progress.print("Preparing the content.");
        let content = filled::make(environment, filled::specs(&sizes(options.content)), RATIO)?;
        aged::age(&content.content)?;
        let net = Net::make(environment.root)?;
        Ok(Fixture { environment, variants, net, content, _machine: machine })
    }

    fn plan(&self, fixture: &Fixture<'_>) -> Vec<Run> {
        plan::runs(&fixture.variants, self.0.repeats)
    }

    fn name(&self, _fixture: &Fixture<'_>, run: &Run) -> String {
        format!("{}, {} of {}", run.variant.name(), run.round, self.0.repeats)
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Trial>> {
        let Fixture { environment, net, content, .. } = fixture;
        let inputs = RunInputs { environment, options: &self.0, net, content: &content.content };
        trial::run(inputs, run.variant).map(Some)
    }

    /// A failed run of one variant does not end the others.
    fn on_failure(&self, _fixture: &Fixture<'_>, error: &Error, _tried: usize) -> OnFailure {
        if is_of_one_run(error) { OnFailure::LeaveOut } else { OnFailure::Abort }
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        fixture: &mut Fixture<'_>,
        results: Results<Run, Trial>,
    ) -> Report {
        let Fixture { variants, content, .. } = fixture;
        let content = Arc::clone(&content.content);
        report::report(environment, &self.0, variants, &content, &results.measured, results.notes)
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Usage(_))
    }
}

fn check(options: &Options) -> Result<()> {
    if options.memory < LEAST_MEMORY {
        let least = format!("a node of {} is too small; give at least {LEAST_MEMORY}", options.memory);
        return Err(Error::Usage(least));
    }
    if options.content < Bytes::mib(8) {
        return Err(Error::Usage(format!("content of {} is too little; give at least 8M", options.content)));
    }
    Ok(())
}

/// The variants whose programs are installed. `notes` name the others with the reason. A missing program of a variant that the user named
/// is an error.
fn possible(
    environment: &Environment<'_>,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<Vec<Variant>> {
    let mut possible = Vec::new();
    for variant in plan::wanted(&options.variants, options.quick) {
        match programs::check_variant(environment, variant) {
            Ok(()) => possible.push(variant),
            Err(e) if options.variants.contains(&variant) => return Err(e),
            Err(e) => notes.push(format!("{} is left out: {e}.", variant.name())),
        }
    }
    let known = environment.root.read("proc/filesystems").unwrap_or_default();
    let why = if known.split_whitespace().any(|word| word == "nfs") {
        "this experiment has no NFS server"
    } else {
        "this kernel has no NFS client"
    };
    notes.push(format!("FS-Cache with cachefilesd is left out: {why}."));
    if possible.is_empty() {
        return Err(Error::Usage("nothing is left to compare: name other --variants".to_owned()));
    }
    Ok(possible)
}

/// Sizes of files, evenly on a logarithmic scale, the same each time.
fn sizes(total: Bytes) -> Vec<u64> {
    let (mut random, mut sizes, mut sum) = (Random::new(26), Vec::new(), 0);
    let steps = (SIZES.1 as f64 / SIZES.0 as f64).ln();
    while sum < total.0 {
        let size = (SIZES.0 as f64 * (random.share() * steps).exp()).round() as u64;
        sizes.push(size);
        sum += size;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fill_the_content_and_stay_the_same() {
        let all = sizes(Bytes::mib(20));
        let sum: u64 = all.iter().sum();
        assert!((20 << 20..=21 << 20).contains(&sum), "{sum}");
        assert!(all.iter().all(|size| (SIZES.0..=SIZES.1).contains(size)));
        assert_eq!(all, sizes(Bytes::mib(20)));
    }
}
