//! `eke-cache-shared`: see the library.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use eke_cache_engine::connect::Connector;
use eke_cache_engine::{confine, offers, serve, state};
use eke_cache_mounts::engine_url::EngineConfig;
use eke_cache_shared::frame::VERSION;
use eke_model::text::words;

const USAGE: &str = "`eke cache mount DIR --shared URL` starts this program.

    eke-cache-shared ASKS OFFERS VERSION < CONFIG

Passes blocks between a worker of eke-cache of this version, by two sockets (numbers of descriptors), and an engine (Valkey or Redis). CONFIG is JSON.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("eke-cache-shared: {e}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<()> {
    let words = words(std::env::args_os().skip(1)).map_err(io::Error::other)?;
    let usage = || io::Error::other(USAGE);
    let [asks, offered, version] = &words[..] else { return Err(usage()) };
    let number = |word: &str| word.parse().ok().filter(|n| *n > 2).ok_or_else(usage);
    let asks = confine::descriptor(number(asks)?)?;
    let offered = confine::descriptor(number(offered)?)?;
    if version != VERSION {
        return Err(state::other_version(&asks, version));
    }
    let config: EngineConfig = serde_json::from_reader(io::stdin().lock())?;
    confine::confine()?;
    let connector = Arc::new(Connector::new(config).map_err(io::Error::other)?);
    let (asks, state) = (Arc::new(asks), Arc::new(state::State::default()));
    state::start(&connector, &state, Arc::clone(&asks))?;
    offers::start(&connector, &state, offered)?;
    serve::run(&connector, &state, &asks)
}
