//! The runs.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::result::{ComparisonResult, Side, differences};
use super::setting::Setting;
use super::{Error, load, plan};
use crate::counters::{Device, Window};
use crate::sensor::WindowSource;

/// A comparison to run.
pub struct Comparison<'a> {
    /// The setting.
    pub setting: &'a Setting,
    /// Its values.
    pub values: &'a [String],
    /// Runs at each value.
    pub rounds: usize,
    /// The disk; `None`: the one that the load's first run uses most.
    pub device: Option<String>,
    /// The load's program and its arguments.
    pub command: &'a [OsString],
    /// Seed of the confidence intervals.
    pub seed: u64,
    /// A signal sets it.
    pub stop: &'a AtomicBool,
}

/// A run begins.
#[derive(Debug, Clone, PartialEq)]
pub struct RunBegins {
    /// Its number, from 1.
    pub run: usize,
    /// The number of all runs.
    pub of: usize,
    /// The value of the setting.
    pub value: String,
}

/// Makes the runs, and restores the setting in any case.
///
/// # Errors
/// The setting, the sensor or the load failed, or a signal came.
pub fn run(
    comparison: &Comparison<'_>,
    windows: &mut dyn WindowSource,
    report: &mut dyn FnMut(RunBegins),
) -> Result<ComparisonResult, Error> {
    // before the first run, which may take long
    comparison.values.iter().try_for_each(|value| comparison.setting.check(value))?;
    let made = runs(comparison, windows, report);
    let restored = comparison.setting.restore();
    let result = made?;
    restored?;
    Ok(result)
}

fn runs(
    comparison: &Comparison<'_>,
    windows: &mut dyn WindowSource,
    report: &mut dyn FnMut(RunBegins),
) -> Result<ComparisonResult, Error> {
    let mut sides: Vec<Side> = comparison.values.iter().map(|value| Side::new(value)).collect();
    let order = plan::order(sides.len(), comparison.rounds);
    let (mut device, mut last) = (comparison.device.clone(), Window::default());
    for (number, at) in order.iter().enumerate() {
        let value = &comparison.values[*at];
        report(RunBegins { run: number + 1, of: order.len(), value: value.clone() });
        comparison.setting.set(value)?;
        let (seconds, window) = one(comparison, value, windows)?;
        let name = device.get_or_insert_with(|| busiest(&window)).clone();
        let of = window.device(&name).ok_or_else(|| Error::Gone(name.clone()))?;
        if of.classes.is_empty() {
            return Err(Error::Idle(format!("{name} had no request; name another disk by --device")));
        }
        sides[*at].add(seconds, of.clone());
        last = window;
    }
    Ok(ComparisonResult {
        knob: comparison.setting.name(),
        device: device.unwrap_or_default(),
        source: last.source,
        missing: last.missing,
        differences: differences(&sides, comparison.seed),
        sides,
    })
}

/// One run: its seconds and its window.
fn one(
    comparison: &Comparison<'_>,
    value: &str,
    windows: &mut dyn WindowSource,
) -> Result<(f64, Window), Error> {
    if comparison.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    windows.window()?;
    let begun = Instant::now();
    let status = load::run(comparison.command, comparison.stop)?;
    let seconds = begun.elapsed().as_secs_f64();
    let window = windows.window()?;
    if status.success() {
        return Ok((seconds, window));
    }
    // Ctrl-C ends the load, too
    if comparison.stop.load(Ordering::Relaxed) {
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
