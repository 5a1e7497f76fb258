//! `eke top`: the terminal, the agent's socket and the clock for [`eke_top::run`].

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use eke_client::snapshot::Reader;
use eke_linux::Root;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::refresh::Refresh;
use eke_top::run::{Event, Outside};
use eke_top::terminal::{self, Screen};
use eke_top::view::Means;
use eke_top::{View, ascii};

use super::Context;
use super::status::with_caches;
use crate::args::Top;
use crate::show;

/// The verb.
pub fn run(context: &Context, options: &Top) -> Outcome {
    refuse_without_a_screen()?;
    let (to, events) = channel();
    let mut outside = Threads { ask: sampler(&context.root, to.clone())?, events, since: Instant::now() };
    let every_ms = u64::try_from(options.every.as_millis()).unwrap_or(u64::MAX);
    let mut view = View::new(means(options.ascii), every_ms);
    terminal::listen(&to)?;
    let mut screen = Screen::open()?;
    eke_top::run(&mut screen.terminal, &mut outside, &mut view)?;
    Ok(Status::Done)
}

fn refuse_without_a_screen() -> Outcome<()> {
    let refused = |why: &str| {
        Err(Failure::new(Status::Usage, why)
            .hint("`eke status` prints the same once, `eke status --json` as JSON"))
    };
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return refused("`eke top` needs a terminal as standard input and standard output");
    }
    match variable("TERM").as_deref() {
        None | Some("" | "dumb") => {
            refused("this terminal cannot move its cursor (TERM is unset or \"dumb\")")
        }
        Some(_) => Ok(()),
    }
}

/// No colours if `NO_COLOR` is set and not empty (no-color.org).
fn means(ascii: bool) -> Means {
    Means {
        colours: variable("NO_COLOR").is_none_or(|v| v.is_empty()),
        ascii: ascii || ascii::is_enough(variable),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Starts a thread that takes a snapshot for each message on the returned sender. A silent agent or mount thus delays no key.
fn sampler(root: &Root, to: Sender<Event>) -> Outcome<Sender<()>> {
    let (ask, asked) = channel();
    let mut reader = Reader::new(root.clone());
    let body = move || {
        while asked.recv().is_ok() {
            if to.send(Event::Refresh(Box::new(refresh(&mut reader)))).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("sampler".into()).spawn(body)?;
    Ok(ask)
}

fn refresh(reader: &mut Reader) -> Result<Refresh, String> {
    let snapshot = reader.snapshot().map_err(|failure| failure.message())?;
    Ok(show::refresh::refresh(&with_caches(snapshot, reader.root())))
}

/// The events of all threads in one channel.
struct Threads {
    ask: Sender<()>,
    events: Receiver<Event>,
    since: Instant,
}

impl Outside for Threads {
    fn ask(&mut self) {
        // If the thread has ended there are no more snapshots, but the keys still work.
        let _ = self.ask.send(());
    }

    fn next(&mut self, at_most_ms: u64) -> Option<Event> {
        self.events.recv_timeout(Duration::from_millis(at_most_ms)).ok()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
