//! What metrics and page show: the snapshot, and the caches of this user.

use eke_cache_mounts::shared::SharedStats;
use eke_metrics::{Reading, SharedTier};
use eke_present::exit::Outcome;

use crate::caches::{self, Cache, CacheState};
use crate::snapshot::Reader;

/// The snapshot that every unprivileged client sees, and the caches of this user. Other users read root's page and metrics, too: so the snapshot has no
/// names of programs, even if this user may know them.
///
/// # Errors
/// Those of [`Reader::snapshot`].
pub fn reading(reader: &mut Reader) -> Outcome<Reading> {
    let caches = caches::all(reader.root()).iter().filter_map(of_cache).collect();
    Ok(Reading { snapshot: reader.snapshot()?.for_all(), caches })
}

fn shared(s: &SharedStats) -> SharedTier {
    SharedTier {
        hits: s.hits,
        misses: s.misses,
        failed: s.late + s.failed + s.paused,
        refused: s.refused,
        wire: [s.bytes_in, s.bytes_out],
        open: s.open,
        connected: s.connected,
        engine_memory: s.engine_memory,
        not_stored: s.engine_refused,
        is_unlimited: s.engine_unlimited,
        keeps_all: s.engine_keeps_all,
    }
}

/// `None` if it is another user's.
fn of_cache(cache: &Cache) -> Option<eke_metrics::Cache> {
    if cache.state == CacheState::NotYours {
        return None;
    }
    let place = cache.place.to_string_lossy().into_owned();
    let details = cache.details.as_deref();
    let restarts = details.map_or(0, |d| d.restarts);
    let Some(stats) = details.and_then(|d| d.worker.as_ref()) else {
        return Some(eke_metrics::Cache { place, restarts, ..eke_metrics::Cache::default() });
    };
    Some(eke_metrics::Cache {
        place,
        serving: cache.state == CacheState::Serving,
        memory: stats.store.held,
        limit: stats.store.limit,
        tables: stats.files.memory,
        raw: stats.store.raw,
        hits: stats.store.hits,
        misses: stats.store.misses,
        from_store: stats.tier.from_store,
        from_backing: stats.tier.from_backing,
        from_spill: stats.spill.on.then_some(stats.spill.from_spill),
        from_shared: stats.shared.on.then_some(stats.shared.from_shared),
        shared: stats.shared.on.then(|| shared(&stats.shared)),
        spilled: stats.spill.on.then_some(stats.spill.written),
        written: stats.tier.written,
        store_cost: stats.tier.store_cost_ns,
        backing_cost: stats.tier.backing_cost_ns,
        spill_cost: stats.spill.cost_ns,
        shared_cost: stats.shared.cost_ns,
        restarts,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use eke_model::snapshot::{AgentState, Event, Program, Response, Snapshot};
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;
    use crate::agent::SOCKET;

    /// An agent takes this process for one that may know each name.
    #[test]
    fn a_reading_has_no_name_of_a_program_that_its_reader_may_know() {
        let machine = FakeKernel::new();
        let program = Some(Program { uid: 1000, name: Some("keepsake".into()) });
        let event = Event { text: "Ended: process 7".into(), program, ..Event::default() };
        let snapshot = Snapshot {
            agent: Some(AgentState::default()),
            events: vec![event.clone()],
            ended: vec![event],
            ..Snapshot::default()
        };
        let answer = serde_json::to_string(&Response::Status(Box::new(snapshot))).unwrap() + "\n";
        std::fs::create_dir_all(machine.dir().join("run/eke")).unwrap();
        let listener = UnixListener::bind(machine.dir().join(SOCKET)).unwrap();
        let agent = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                BufReader::new(&stream).read_line(&mut String::new()).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut reader = Reader::new(machine.root());
        let own = reader.snapshot().unwrap();
        assert_eq!((own.events[0].name(), own.ended[0].name()), (Some("keepsake"), Some("keepsake")));
        let read = reading(&mut reader).unwrap().snapshot;
        assert_eq!((read.events[0].text.as_str(), read.ended.len()), ("Ended: process 7", 1));
        assert_eq!((read.events[0].name(), read.ended[0].name()), (None, None));
        agent.join().unwrap();
    }
}
