//! `eke metrics`: all metrics as OpenMetrics text, once or over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use eke_dash::server::{listen, scrape};
use eke_metrics::{Format, markdown, text};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::put;

use super::reading::reading;
use super::{Context, listening};
use crate::args::{Metrics, MetricsFormat};

/// The verb.
pub fn run(context: &Context, options: &Metrics) -> Outcome {
    if context.json {
        return Err(Failure::new(Status::Usage, "metrics are OpenMetrics text and not JSON")
            .hint("eke status --json prints the same numbers as JSON"));
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

fn serve(context: &Context, address: SocketAddr) -> Outcome {
    let shutdown = listening::signals()?;
    let listener = listen(address).map_err(listening::failure)?;
    let address = listener.local_addr()?;
    put!("Metrics are at http://{address}/metrics. Ctrl-C ends it.\n");
    let own = context.to_own();
    let read: scrape::Read = Arc::new(move || reading(&own).map_err(|failure| failure.to_string()));
    scrape::run(listener, address, read, shutdown).map_err(listening::failure)?;
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
