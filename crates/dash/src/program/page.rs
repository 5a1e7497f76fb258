//! `eke dash`: the web page, with a history of its own recorder's.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use eke_client::unix_s;
use eke_dash::history::{History, file};
use eke_dash::live::Live;
use eke_dash::recorder::{Moment, Recorder};
use eke_dash::server::guard::Guard;
use eke_dash::server::{listen, page};
use eke_linux::Root;
use eke_linux::read::monotonic_ms;
use eke_linux::token::Token;
use eke_present::exit::{Outcome, Status};
use eke_present::putln;

use super::listening::{failure, signals};
use super::source::{self, Machine};

/// Serves until a signal.
pub fn run(root: &Root, address: SocketAddr, history: Option<&Path>) -> Outcome {
    let shutdown = signals()?;
    let listener = listen(address).map_err(failure)?;
    let address = listener.local_addr()?;
    let (recorder, notes) = recorder(history)?;
    let token = Token::random()?;
    let guard = Guard::for_address(address, token.clone());
    announce(root, address, &guard, &token);
    notes.iter().for_each(|note| eke_present::warn!("eke dash: {note}"));
    let source = Box::new(Machine::new(root.clone(), notes));
    let running = Live::start(source, recorder, now)?;
    page::run(listener, guard, running.live(), shutdown).map_err(failure)?;
    Ok(Status::Done)
}

fn now() -> Moment {
    Moment { unix_s: unix_s(), monotonic_ms: monotonic_ms() }
}

fn announce(root: &Root, address: SocketAddr, guard: &Guard, token: &Token) {
    match guard {
        Guard::Loopback => {
            putln!("The page is at http://{address}/ for all users of this machine. Ctrl-C ends it.")
        }
        Guard::Token { .. } => {
            let host = if address.ip().is_unspecified() {
                format!("{}:{}", source::host(root), address.port())
            } else {
                address.to_string()
            };
            putln!(
                "The page is at http://{host}/?token={} for everybody who has this address. Ctrl-C ends it.",
                token.text()
            );
            putln!(
                "The connection is not encrypted. On a shared network use a tunnel (ssh -L 7117:localhost:7117)."
            );
        }
    }
}

/// The recorder with its history, and notes about it. Fails if a file given by `--history` is unusable; without the default file the
/// history is in memory.
fn recorder(named: Option<&Path>) -> Outcome<(Recorder, Vec<String>)> {
    let Some(path) = named.map(Path::to_owned).or_else(usual_file) else {
        let note = "neither XDG_STATE_HOME nor HOME is set: the history is in memory only";
        return Ok((Recorder::default(), vec![note.to_owned()]));
    };
    match file::open(&path, unix_s()) {
        Ok(opened) => {
            let notes = opened.set_aside.iter().map(ToString::to_string).collect();
            Ok((Recorder::new(opened.history, Some(opened.file)), notes))
        }
        Err(e) if named.is_some() => Err(failure(e)),
        Err(e) => {
            let note = format!("{e}; the history is in memory only");
            Ok((Recorder::new(History::default(), None), vec![note]))
        }
    }
}

/// By the XDG base directory specification, which requires absolute paths.
fn usual_file() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")))?;
    Some(state.join("eke/history.db"))
}
