//! `eke metrics`: all metrics as OpenMetrics text, once or over HTTP.

use std::net::SocketAddr;

use eke_client::reading;
use eke_client::snapshot::Reader;
use eke_metrics::{Format, markdown, text};
use eke_present::exit::{Outcome, Status};
use eke_present::{output, put};

use super::Context;
use super::program::{DASH, execute};
use crate::args::{Metrics, MetricsFormat};

/// The verb.
pub fn run(context: &Context, options: &Metrics) -> Outcome {
    if options.table {
        put!("{}", markdown::markdown());
        return Ok(Status::Done);
    }
    match options.listen {
        Some(address) => serve(context, address),
        None => {
            let reading = reading(&mut Reader::new(context.root.clone()))?;
            if let Some(why) = &reading.snapshot.agent_silent {
                eke_present::warn!("eke: {why}; these are numbers without it");
            }
            let text = text::text(&reading, options.format.into());
            match &options.output {
                Some(file) => output::replace_for_all(file, &text)?,
                None => put!("{text}"),
            }
            Ok(Status::Done)
        }
    }
}

fn serve(context: &Context, address: SocketAddr) -> Outcome {
    let mut command = DASH.command(context)?;
    command.arg("metrics").arg("--listen").arg(address.to_string());
    execute(command)
}

impl From<MetricsFormat> for Format {
    fn from(format: MetricsFormat) -> Self {
        match format {
            MetricsFormat::Openmetrics => Self::OpenMetrics,
            MetricsFormat::Prometheus => Self::Prometheus,
        }
    }
}
