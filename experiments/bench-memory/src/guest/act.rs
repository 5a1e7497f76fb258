//! Runs guests.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eke_bench_desktop::session::{Event, Spec};
use eke_vm::{Disk, Format, Kit, Recipe, Trace, run_until};

use super::error::Error;
use super::outcome::{GuestOutcome, event, parse};
use super::peer::Peer;
use super::script::{measuring, script};

/// One run in a guest.
#[derive(Debug, Clone, PartialEq)]
pub struct GuestRun {
    /// The guest's means against the shortage.
    pub peer: Peer,
    /// RAM in MiB as QEMU has it; the kernel leaves 50 MiB less.
    pub memory_mib: u32,
    /// The session. Its paths and programs are the guest's.
    pub spec: Spec,
    /// The result of [`measure`]. Only eke reads it.
    pub measured: Option<String>,
    /// The longest that the whole may take on the host's clock.
    pub timeout: Duration,
}

/// Runs a guest from power-on to power-off. Calls `on_event` for each event at once. A killed session is an outcome, not an error, and
/// so is one that had begun when the time was over.
///
/// # Errors
/// The peer cannot be set up, the machine does not start or ends before its script, or `shutdown` was set.
pub fn run(
    kit: &Kit,
    image: &Path,
    run: &GuestRun,
    shutdown: &AtomicBool,
    on_event: &mut dyn FnMut(&Event),
) -> Result<GuestOutcome, Error> {
    let text = script(&run.peer, &run.spec, run.measured.as_deref())?;
    boot(kit, image, run, text, shutdown, on_event)
}

/// More RAM in the boot that measures: without swap the first document may be killed before it is open, or while `eke up` measures. The
/// measured pages are the same.
const TO_SPARE_MIB: u32 = 256;

/// Boots with memory to spare, before eke's runs: `eke up` measures while the first document is open. Returns the measurement that it
/// keeps for later boots, for [`GuestRun::measured`].
///
/// # Errors
/// As [`run`].
pub fn measure(kit: &Kit, image: &Path, run: &GuestRun, shutdown: &AtomicBool) -> Result<String, Error> {
    let text = measuring(&run.peer, &run.spec)?;
    let run = &GuestRun { memory_mib: run.memory_mib.saturating_add(TO_SPARE_MIB), ..run.clone() };
    let outcome = boot(kit, image, run, text, shutdown, &mut |_| {})?;
    let none = || Error::SetUp { peer: run.peer.name(), why: "it measured nothing".into() };
    let measured = outcome.measured.ok_or_else(none)?;
    // one line, and whole
    Ok(serde_json::from_str::<serde_json::Value>(&measured)?.to_string())
}

fn boot(
    kit: &Kit,
    image: &Path,
    run: &GuestRun,
    script: String,
    shutdown: &AtomicBool,
    on_event: &mut dyn FnMut(&Event),
) -> Result<GuestOutcome, Error> {
    let place = tempfile::Builder::new().prefix("eke-guest-").tempdir();
    let place = place.map_err(|source| Error::Read { path: std::env::temp_dir(), source })?;
    let recipe = recipe(image, run, script, place.path());
    let ended = run_until(kit, &recipe, shutdown, &mut |line| {
        if let Some(event) = event(line) {
            on_event(&event);
        }
    });
    match ended {
        Err(eke_vm::Error::TimedOut { limit, trace }) => late(limit, trace),
        ended => judge(&run.peer, &ended?),
    }
}

fn recipe(image: &Path, run: &GuestRun, script: String, place: &Path) -> Recipe {
    let mut recipe = Recipe::new(script).on_root(image);
    recipe.memory_mib = run.memory_mib;
    recipe.timeout = run.timeout;
    recipe.forget_root = true;
    // On a busy host, the emulated timer may not tick while the kernel checks it, and then the kernel panics: "IO-APIC + timer doesn't work" (check_timer in arch/x86/kernel/apic/io_apic.c)
    recipe.kernel_args.push("no_timer_check".to_owned());
    recipe.disks.extend(run.peer.disk().map(|disk| Disk {
        iops: Some(disk.iops),
        bytes_per_second: Some(disk.bytes_per_second),
        ..Disk::new(place.join("swap"), disk.size.0, Format::Swap)
    }));
    recipe
}

/// The outcome until the time was over; an error if no session had begun.
fn late(limit: Duration, trace: Trace) -> Result<GuestOutcome, Error> {
    let outcome = GuestOutcome { timed_out: true, seconds: limit.as_secs_f64(), ..parse(&trace.output) };
    match outcome.events.is_empty() {
        true => Err(eke_vm::Error::TimedOut { limit, trace }.into()),
        false => Ok(outcome),
    }
}

fn judge(peer: &Peer, ended: &eke_vm::Outcome) -> Result<GuestOutcome, Error> {
    let outcome = GuestOutcome { seconds: ended.seconds, ..parse(&ended.output) };
    if let Some(why) = outcome.failed {
        return Err(Error::SetUp { peer: peer.name(), why });
    }
    if ended.status != 0 {
        let last: Vec<&str> = ended.output.lines().rev().take(3).collect();
        let output = last.into_iter().rev().collect::<Vec<_>>().join(" | ");
        return Err(Error::Script { peer: peer.name(), status: ended.status, output });
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(output: &str, status: i32) -> eke_vm::Outcome {
        eke_vm::Outcome { output: output.into(), console: String::new(), status, seconds: 9.0 }
    }

    #[test]
    fn what_a_guest_says_last_is_in_the_error() {
        let error = |output, status| judge(&Peer::Fedora, &ended(output, status)).unwrap_err().to_string();
        assert_eq!(
            error("@eke-guest failed zram takes no size of 7\n", 90),
            "Fedora cannot be set up in the small machine: zram takes no size of 7"
        );
        assert!(error("a\nb\nc\nd\n", 2).ends_with("ended with status 2; its last output: b | c | d"));
        assert_eq!(judge(&Peer::Nothing, &ended("", 0)).unwrap().seconds, 9.0);
    }

    #[test]
    fn a_session_that_time_cut_short_is_an_outcome() {
        let late =
            |output: &str| late(Duration::from_secs(60), Trace { output: output.into(), ..Trace::default() });
        let outcome = late("{\"event\":\"ready\",\"seconds\":2.0}\n{\"event\":\"op").unwrap();
        assert!(outcome.timed_out && outcome.events == [Event::Ready { seconds: 2.0 }]);
        assert!(late("booting").is_err());
    }

    #[test]
    fn a_swap_disk_is_there_for_whom_it_is_and_the_root_is_forgotten() {
        let spec: Result<Spec, _> = serde_json::from_str(
            r#"{"screen":[1,1],"viewer":"v","documents":[],"ballast":{"size":0,"ratio":1.0},
                "merge_same_pages":false,"acts":[],"patience_s":1.0}"#,
        );
        let with = |peer| GuestRun {
            peer,
            memory_mib: 124,
            spec: spec.as_ref().unwrap().clone(),
            measured: None,
            timeout: Duration::from_secs(1),
        };
        let recipe = |peer| recipe(Path::new("/r"), &with(peer), String::new(), Path::new("/p"));
        assert!(recipe(Peer::Nothing).disks.is_empty() && recipe(Peer::Nothing).forget_root);
        let disks = recipe(Peer::ZswapLaptop).disks;
        assert_eq!((disks[0].iops, disks[0].format), (Some(8), Format::Swap));
    }
}
