//! `eke metrics`: all metrics as OpenMetrics text, once or over HTTP.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use eke_client::reading;
use eke_metrics::{Format, markdown, text};
use eke_model::text::one_line;
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::put;

use super::Context;
use super::program::{DASH, execute};
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
            let text = text::text(&reading(&context.root)?, options.format.into());
            match &options.output {
                Some(file) => replace(file, &text)?,
                None => put!("{text}"),
            }
            Ok(Status::Done)
        }
    }
}

/// Replaces a file as a whole, readable by everybody: a collector that reads at any time sees the old text or the new one.
fn replace(file: &Path, text: &str) -> Outcome<()> {
    let name = file.file_name().map(OsStr::to_os_string).unwrap_or_default();
    let mut beside_name = OsString::from(".");
    beside_name.push(name);
    beside_name.push(format!(".{}", std::process::id()));
    let beside = file.with_file_name(beside_name);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside);
    let written = made.and_then(|mut made| made.write_all(text.as_bytes()));
    written.and_then(|()| std::fs::rename(&beside, file)).map_err(|e| {
        let _ = std::fs::remove_file(&beside);
        Failure::new(Status::Failed, format!("cannot write {}: {e}", one_line(&file.display().to_string())))
    })
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
