//! `eke run`: like up, shown live; Ctrl-C restores everything.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_model::text::one_line;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::stop;

use super::{Context, applied, down, up};
use crate::args::Up;
use crate::show;

const BETWEEN_LINES: Duration = Duration::from_secs(2);
/// After this time without an answer the agent counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// The verb.
pub fn run(context: &Context, options: &Up) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return without_root(context, options);
    }
    context.need_machine("run")?;
    context.need_lasting_config()?;
    applied::refuse_if_up(context)?;
    let stop = stop::on_signals()?;
    let document = up::apply(context, options, &stop)?;
    if document.decision.plan.steps.is_empty() && !applied::is_up(context)? {
        putln!("Nothing to change.");
        return Ok(Status::Done);
    }
    let shown = up::ensure_agent(context, options).and_then(|()| watch(context, &stop));
    let undone = down::everything(context)?;
    putln!("");
    down::show(&undone);
    shown?;
    Ok(down::status(&undone))
}

/// Prints the plan, then fails with what applying it needs.
fn without_root(context: &Context, options: &Up) -> Outcome {
    super::plan::run(context, &options.overrides)?;
    Err(Failure::new(Status::NotPermitted, "to apply this, eke needs root: it makes a zram device or sets zswap up, swaps on it and sets the knobs above; Ctrl-C restores everything")
        .hint("sudo eke run; from the tree: sudo make run"))
}

fn watch(context: &Context, stop: &AtomicBool) -> Outcome<()> {
    putln!("\nApplied. Ctrl-C restores everything; `eke demo` in another terminal shows the effect.\n");
    if context.root.is_host() {
        putln!("{}", show::status::live_header());
    }
    let (mut next, mut answered) = (Instant::now(), Instant::now());
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            match show_line(context) {
                Ok(()) => answered = Instant::now(),
                // It may be recompressing a device.
                Err(e) if e.status() == Status::NoAgent && answered.elapsed() < PATIENCE => {}
                Err(e) => return Err(e),
            }
            next += BETWEEN_LINES;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// On a terminal it overwrites one line, otherwise it prints a new line each time.
fn show_line(context: &Context) -> Outcome<()> {
    let Some(snapshot) = eke_client::agent::snapshot(&context.root)? else {
        return Err(Failure::new(Status::Failed, "the agent is gone"));
    };
    let line = show::status::live_line(&snapshot);
    let line = one_line(&line);
    let mut out = std::io::stdout();
    if out.is_terminal() {
        write!(out, "\r{line}\x1b[K")?;
    } else {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
