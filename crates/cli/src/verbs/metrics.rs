//! `eke metrics`: what there is to know in numbers, as OpenMetrics text, once or for whoever scrapes.

use std::net::SocketAddr;
use std::sync::Arc;

use eke_dash::server::{listen, scrape};
use eke_metrics::{Cache, Format, Reading, markdown, text};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::put;

use super::{Context, cache, dash, status};
use crate::args::{Metrics, MetricsFormat};
use crate::documents::{self, CacheState};

/// The verb.
pub fn run(context: &Context, options: &Metrics) -> Outcome {
    if context.json {
        return Err(Failure::new(Status::Usage, "metrics are OpenMetrics text and not JSON")
            .hint("eke status --json prints the same figures as JSON"));
    }
    if options.table {
        put!("{}", markdown::markdown());
        return Ok(Status::Done);
    }
    match options.listen {
        Some(address) => serve(context, address),
        None => {
            put!("{}", text::text(&reading(context)?, options.format.into()));
            Ok(Status::Done)
        }
    }
}

/// What every unprivileged client sees, and one's own caches.
pub fn reading(context: &Context) -> Outcome<Reading> {
    let caches = cache::status::caches(&context.root).iter().filter_map(of_cache).collect();
    Ok(Reading { snapshot: status::snapshot(context)?, caches })
}

/// `None` where it is another user's.
fn of_cache(cache: &documents::Cache) -> Option<Cache> {
    if cache.state == CacheState::NotYours {
        return None;
    }
    let place = cache.place.to_string_lossy().into_owned();
    let details = cache.details.as_deref();
    let restarts = details.map_or(0, |d| d.restarts);
    let Some(figures) = details.and_then(|d| d.worker.as_ref()) else {
        return Some(Cache { place, restarts, ..Cache::default() });
    };
    Some(Cache {
        place,
        serving: cache.state == CacheState::Serving,
        memory: figures.store.held,
        limit: figures.store.limit,
        tables: figures.files.memory,
        raw: figures.store.raw,
        hits: figures.store.hits,
        misses: figures.store.misses,
        from_store: figures.tier.from_store,
        from_backing: figures.tier.from_backing,
        written: figures.tier.written,
        store_cost: figures.tier.store_cost_ns,
        backing_cost: figures.tier.backing_cost_ns,
        restarts,
    })
}

fn serve(context: &Context, address: SocketAddr) -> Outcome {
    let shutdown = dash::signals()?;
    let listener = listen(address).map_err(dash::failure)?;
    let address = listener.local_addr()?;
    put!("Metrics are at http://{address}/metrics; Ctrl-C ends it.\n");
    let own = context.to_own();
    let read: scrape::Read = Arc::new(move || reading(&own).map_err(|failure| failure.to_string()));
    scrape::run(listener, address, read, shutdown).map_err(dash::failure)?;
    Ok(Status::Done)
}

impl From<MetricsFormat> for Format {
    fn from(format: MetricsFormat) -> Self {
        match format {
            MetricsFormat::Openmetrics => Self::OpenMetrics,
            MetricsFormat::Prometheus => Self::Prometheus,
        }
    }
}
