//! `eke io watch`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_io::counters::{Device, Window};
use eke_io::sensor::{Attribution, SensorOptions, WindowSource};
use eke_io::target;
use eke_io::verdict::{Activity, ActivitySampler, Evidence, decide};
use eke_model::text::one_line;
use eke_model::units::Nanos;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::stop;
use eke_present::{put, putln};

use super::{Context, device, failure, sensor};
use crate::args::{IoBy, IoWatch};
use crate::documents::io::{Judged, Watch};
use crate::show::io::{csv, watch as text};

const PAUSE: Duration = Duration::from_millis(20);

/// The verb.
pub fn run(context: &Context, options: &IoWatch) -> Outcome {
    if options.csv && context.json {
        return Err(Failure::new(Status::Usage, "--csv and --json exclude each other: give one of them"));
    }
    let stop = stop::on_signals()?;
    let measure = SensorOptions {
        attribution: attribution(options.by),
        no_bpf: options.no_bpf,
        ..SensorOptions::default()
    };
    let mut windows = sensor(context, measure)?;
    let only = options.device.as_deref().map(|text| named(context, windows.as_mut(), text)).transpose()?;
    let mut watching = Watching {
        context,
        options,
        only,
        activity: ActivitySampler::new(&context.root),
        warned: Vec::new(),
    };
    if options.csv {
        put!("{}", csv::HEADER);
    }
    let begun = Instant::now();
    for round in 1..=options.count.unwrap_or(u64::MAX) {
        let at = begun + options.every.saturating_mul(u32::try_from(round).unwrap_or(u32::MAX));
        if !wait(at, &stop) {
            break;
        }
        watching.show(windows.window().map_err(failure)?)?;
    }
    Ok(Status::Done)
}

fn attribution(by: Option<IoBy>) -> Attribution {
    match by {
        None => Attribution::None,
        Some(IoBy::Process) => Attribution::Process,
        Some(IoBy::Cgroup) => Attribution::Cgroup,
    }
}

/// The disk or pool that a text names; only the sensor knows pools.
fn named(context: &Context, windows: &mut dyn WindowSource, text: &str) -> Outcome<String> {
    let window = windows.window().map_err(failure)?;
    if window.device(text).is_some() {
        return Ok(text.to_owned());
    }
    let name = device(context, text)?;
    if window.device(&name).is_some() {
        return Ok(name);
    }
    Err(Failure::new(
        Status::Failed,
        format!(
            "{name} is empty: there is no disk behind it (a loop device without a file, a drive without a card)"
        ),
    ))
}

/// False if `stop` is set.
fn wait(until: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(PAUSE));
    }
    false
}

struct Watching<'a> {
    context: &'a Context,
    options: &'a IoWatch,
    only: Option<String>,
    activity: ActivitySampler,
    /// Warnings that were printed: each is printed once.
    warned: Vec<String>,
}

impl Watching<'_> {
    fn show(&mut self, window: Window) -> Outcome<()> {
        if let Some(gone) = self.only.as_ref().filter(|only| window.device(only).is_none()) {
            let why = format!("{gone} is gone: it was unplugged, or its file was detached");
            return Err(Failure::new(Status::Failed, why));
        }
        let activity = self.activity.sample();
        let document = self.document(window, activity);
        self.warn_of_missing(&document.window);
        if self.context.json {
            putln!("{}", serde_json::to_string(&document)?);
        } else if self.options.csv {
            let window = &document.window;
            self.shown(window).for_each(|d| put!("{}", csv::rows(document.unix_s, window.seconds, d)));
        } else {
            put!("{}", text::text(&document, self.only.as_deref()));
        }
        Ok(())
    }

    fn shown<'w>(&'w self, window: &'w Window) -> impl Iterator<Item = &'w Device> {
        window.devices.iter().filter(|d| self.only.as_ref().is_none_or(|only| *only == d.name))
    }

    fn document(&self, mut window: Window, activity: Activity) -> Watch {
        if let Some(only) = &self.only {
            window.devices.retain(|d| d.name == *only);
        }
        let is_used = |d: &&Device| !d.classes.is_empty() || d.reads_in_flight.unwrap_or(0) > 0;
        let judge = |device: &Device| {
            let target = self.target(&device.name);
            let evidence = Evidence { device, seconds: window.seconds, target, activity: &activity };
            Judged { target, verdict: decide(&evidence) }
        };
        let verdicts = window.devices.iter().filter(is_used).map(judge).collect();
        Watch { unix_s: eke_client::unix_s(), window, verdicts, activity }
    }

    fn target(&self, device: &str) -> Nanos {
        let by_kind = || target::of(&self.context.root, device, self.context.settings.io.read_target_ms);
        self.options.target.map_or_else(by_kind, Nanos::from)
    }

    /// On standard error: programs read standard output.
    fn warn_of_missing(&mut self, window: &Window) {
        let gone = window.gone.iter().map(|name| format!("{name} is gone"));
        for line in window.missing.iter().map(|what| format!("missing: {what}")).chain(gone) {
            if !self.warned.contains(&line) {
                eke_present::warn!("{}", one_line(&line));
                self.warned.push(line);
            }
        }
    }
}
