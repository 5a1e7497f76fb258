//! Reads the files of named programs now, and ends.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use eke_linux::Root;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::ahead::Ahead;
use super::clock::{Clock, unix_s};
use super::error::Error;
use super::notice::Notify;
use super::options::Options;
use super::process::DISKS;
use crate::choose::candidates::is_short;
use crate::choose::{Candidates, Disks, MemorySampler};
use crate::request::Priority;
use crate::schedule::Scheduler;
use eke_prefetch_model::choose::{Limits, Occasion};
use eke_prefetch_model::user_event::Event;
use eke_prefetch_store::{Access, FALLBACK, Fallback, LearnedProgram, ProgramStore};

/// The longest wait for measurements; one takes about a second.
const MEASURED_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// Reads the files of these learned programs (named by their paths, with the script's after a space) as if ahead: others' I/O comes first. Returns
/// when all is read, or when `shutdown` is readable.
///
/// # Errors
/// The store cannot be read, or a program is not in it.
pub fn ahead(
    root: &Root,
    options: &Options,
    programs: &[String],
    clock: &dyn Clock,
    shutdown: BorrowedFd<'_>,
    notify: Notify<'_>,
) -> Result<(), Error> {
    let now = clock.now();
    let fallback = Fallback::new(&options.store, &root.path(FALLBACK));
    let store = ProgramStore::existing(fallback.in_use(), Access::Read)?;
    let mut known = find(&store, programs, unix_s(now))?;
    let user = starter(&store, &known)?;
    let mut disks = Disks::new(root, store.state(DISKS.0, DISKS.1)?.as_deref());
    known.iter_mut().for_each(|known| disks.locate(&mut known.set));
    let candidates = Candidates::certain(known);
    let allowance = MemorySampler::default().allowance(root, &options.settings, Occasion::Exec, now, 0);
    let limits = Limits::of(allowance.budget.0);
    candidates.choose(&disks, &limits);
    measure(root, &mut disks, clock, notify);
    let scheduler = Scheduler::of_machine(root);
    scheduler.set_profiles(disks.profiles());
    let choice = candidates.choose(&disks, &limits);
    let fetch = scheduler.start(candidates.requests(&choice, user), Priority::Ahead).map_err(Error::Begin)?;
    wait(fetch.as_fd(), shutdown)?;
    fetch.stop();
    let ahead = Ahead::new(fetch, 0, candidates.chosen(&choice), is_short(&choice));
    notify(ahead.event());
    Ok(())
}

fn find(store: &ProgramStore, programs: &[String], now_s: i64) -> Result<Vec<LearnedProgram>, Error> {
    let records = store.records(now_s)?;
    let mut found = Vec::new();
    for name in programs {
        let record = records.iter().find(|record| record.program.to_string() == *name);
        let known = record.map(|record| store.program(record.id(), now_s)).transpose()?.flatten();
        found.push(known.ok_or_else(|| Error::Unknown(name.clone()))?);
    }
    Ok(found)
}

/// The user who started one of the programs last; root if nobody did.
fn starter(store: &ProgramStore, known: &[LearnedProgram]) -> Result<u32, Error> {
    let is_one =
        |event: &Event| matches!(event, Event::Start(id) if known.iter().any(|k| k.record.id() == *id));
    let events = store.events()?;
    Ok(events.iter().rev().find(|happened| is_one(&happened.event)).map_or(0, |happened| happened.user))
}

/// Measures the disks of the first choice.
fn measure(root: &Root, disks: &mut Disks, clock: &dyn Clock, notify: Notify<'_>) {
    let began = clock.now().mono;
    loop {
        let now = clock.now().mono;
        let report = disks.poll(now);
        let is_over = report.is_none() && !disks.is_measuring();
        report.into_iter().for_each(|report| notify(report.into()));
        if is_over || now.saturating_sub(began) > MEASURED_WITHIN {
            return;
        }
        root.sleep(POLL);
    }
}

fn wait(over: BorrowedFd<'_>, shutdown: BorrowedFd<'_>) -> Result<(), Error> {
    let mut fds =
        [PollFd::from_borrowed_fd(over, PollFlags::IN), PollFd::from_borrowed_fd(shutdown, PollFlags::IN)];
    loop {
        match poll(&mut fds, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(e) => return Err(Error::Wait(e)),
        }
    }
}
