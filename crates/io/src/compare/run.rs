//! The runs.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::outcome::{Outcome, Side, differences};
use super::setting::Setting;
use super::{Error, load, plan};
use crate::figures::{Device, Window};
use crate::sense::Windows;

/// What is compared, and how.
pub struct Bench<'a> {
    /// The setting.
    pub setting: &'a Setting,
    /// Its values.
    pub values: &'a [String],
    /// How often each.
    pub rounds: usize,
    /// The disk; `None`: the one that the load's first run uses most.
    pub device: Option<String>,
    /// The load.
    pub command: &'a [OsString],
    /// Of the confidence intervals.
    pub seed: u64,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
}

/// What goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A run begins: which, of how many, at which value.
    Begins(usize, usize, String),
}

/// Makes the runs. The setting is as before then, whatever happens.
///
/// # Errors
/// The setting, the sensor or the load failed, or a signal came.
pub fn run(
    bench: &Bench<'_>,
    windows: &mut dyn Windows,
    tell: &mut dyn FnMut(Told),
) -> Result<Outcome, Error> {
    let made = runs(bench, windows, tell);
    let restored = bench.setting.restore();
    let outcome = made?;
    restored?;
    Ok(outcome)
}

fn runs(bench: &Bench<'_>, windows: &mut dyn Windows, tell: &mut dyn FnMut(Told)) -> Result<Outcome, Error> {
    let mut sides: Vec<Side> = bench.values.iter().map(|value| Side::new(value)).collect();
    let order = plan::order(sides.len(), bench.rounds);
    let (mut device, mut last) = (bench.device.clone(), Window::default());
    for (number, at) in order.iter().enumerate() {
        let value = &bench.values[*at];
        tell(Told::Begins(number + 1, order.len(), value.clone()));
        bench.setting.set(value)?;
        let (seconds, window) = one(bench, value, windows)?;
        let name = device.get_or_insert_with(|| busiest(&window)).clone();
        let of = window.device(&name).ok_or_else(|| Error::Gone(name.clone()))?;
        if of.classes.is_empty() {
            return Err(Error::Idle(format!("{name} had no request; --device names another one")));
        }
        sides[*at].add(seconds, of.clone());
        last = window;
    }
    Ok(Outcome {
        knob: bench.setting.name(),
        device: device.unwrap_or_default(),
        source: last.source,
        missing: last.missing,
        differences: differences(&sides, bench.seed),
        sides,
    })
}

/// One run: what was before it is no part of it.
fn one(bench: &Bench<'_>, value: &str, windows: &mut dyn Windows) -> Result<(f64, Window), Error> {
    if bench.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    windows.window()?;
    let begun = Instant::now();
    let status = load::run(bench.command, bench.stop)?;
    let seconds = begun.elapsed().as_secs_f64();
    let window = windows.window()?;
    if status.success() {
        return Ok((seconds, window));
    }
    // Ctrl-C reaches the load, too
    if bench.stop.load(Ordering::Relaxed) {
        Err(Error::Interrupted)
    } else {
        Err(Error::Failed { status, value: value.to_owned() })
    }
}

fn busiest(window: &Window) -> String {
    let requests = |device: &Device| device.sum(|_| true).whole.count;
    window
        .devices
        .iter()
        .max_by_key(|device| requests(device))
        .map(|device| device.name.clone())
        .unwrap_or_default()
}
