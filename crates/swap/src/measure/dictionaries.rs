//! The dictionary in use and a new one, on the same pages of now.

use eke_linux::Root;
use eke_model::step::ZramSpec;

use super::compare::trained;
use super::limits::{Limits, Scope};
use super::measurements::{AlgorithmMeasurement, PageCounts};
use super::rounds::{Rounds, Time};
use super::scratch::Scratch;
use super::times::Monotonic;
use super::variants::Variant;
use super::zram::ZramDevices;
use super::{Dictionary, random, rows, sampled};
use crate::error::Result;
use crate::facts::Facts;

/// Both, measured.
#[derive(Debug)]
pub struct Dictionaries {
    /// With the one in use.
    pub old: AlgorithmMeasurement,
    /// With the new one,
    pub new: AlgorithmMeasurement,
    /// which is for this process.
    pub dictionary: Dictionary,
    /// The sample.
    pub pages: PageCounts,
}

/// Trains a dictionary on a quarter of sampled pages, and measures it and the `old` one on the others, with the algorithm and the level of `like`, on scratch
/// devices. `None` if the pages are too few, or have nothing in common.
///
/// # Errors
/// No memory, or a scratch device that could not be removed.
pub fn dictionaries(
    root: &Root,
    facts: &Facts,
    (limits, scope): (&Limits, &Scope),
    (like, old): (&ZramSpec, &Dictionary),
    scratch: &mut dyn Scratch,
) -> Result<Option<Dictionaries>> {
    let mut random = random::from_kernel();
    let mut sample = sampled(root, scope, limits, limits.pages_with(facts.available), &mut random)?;
    let Some(dictionary) = trained(&mut sample)? else { return Ok(None) };
    let with = |dictionary: &Dictionary| Variant {
        params: like.params.clone(),
        dictionary: Some(dictionary.path()),
        ..Variant::as_shipped(&like.algorithm)
    };
    let Limits { zram: usual, zram_if_unclear: if_unclear, zram_if_slow: if_slow, .. } = *limits;
    let time = Time { usual, if_unclear, if_slow };
    let (mut devices, clock) = (ZramDevices { root, scratch }, Monotonic::started());
    let mut rounds = Rounds { devices: &mut devices, sample: &sample, random: &mut random, clock: &clock };
    let measured = rounds.measure(vec![with(old), with(&dictionary)], time)?;
    let mut rows = measured.into_iter().map(|row| rows::measurement(row, &sample, false));
    let pages = sample.counts;
    Ok(rows.next().zip(rows.next()).map(|(old, new)| Dictionaries { old, new, dictionary, pages }))
}
