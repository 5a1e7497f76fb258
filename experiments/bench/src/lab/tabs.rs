//! `eke-bench lab tabs`: the driver of the experiment with tabs. Each event is a line of JSON on standard output. `eke-bench lab pages`: the
//! pages for it, to try it by hand.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use eke_bench_desktop::desktop::own_process;
use eke_bench_desktop::session::{End, Event};
use eke_bench_desktop::tabs::{self, Server, Spec, documents};
use eke_model::units::Bytes;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::putln;
use eke_present::stop;

use crate::context::Context;

/// The verb. It fails if the session cannot run, not if a tab is killed or too slow.
pub fn run(context: &Context, spec: &str) -> Outcome {
    let stop = stop::on_signals()?;
    let spec: Spec = serde_json::from_str(spec)
        .map_err(|e| Failure::new(Status::Usage, format!("cannot read the experiment \"{spec}\": {e}")))?;
    // The browser is measured: this process must not wait for its own pages. Without privilege this fails, which is harmless.
    let _ = own_process::lock_memory();
    let end = tabs::run(&context.root, &spec, &std::env::temp_dir(), &stop, &mut emit);
    let status = if matches!(end, End::Failed { .. }) { Status::Failed } else { Status::Done };
    emit(Event::Ended(end));
    Ok(status)
}

/// Prints one line and flushes it, so that events before a kill are known. The reader may be gone.
fn emit(event: Event) {
    let mut out = std::io::stdout().lock();
    let line = serde_json::to_string(&event).unwrap_or_default();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Serves the pages and prints the port.
pub fn pages(tabs: usize, weight: Bytes, directories: Vec<PathBuf>) -> Outcome {
    let stop = stop::on_signals()?;
    let usual = || documents::USUAL.map(PathBuf::from).to_vec();
    let directories = if directories.is_empty() { usual() } else { directories };
    let weight = usize::try_from(weight.0).unwrap_or(usize::MAX);
    let documents = documents::gather(&directories, tabs, weight);
    documents.notes.iter().for_each(|note| eke_present::warn!("{note}"));
    let server = Server::start(documents.pages, stop.clone())
        .map_err(|e| Failure::new(Status::Failed, e.to_string()))?;
    putln!("{}", server.port());
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(Status::Done)
}
