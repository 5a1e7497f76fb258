//! `eke io ...`.

mod compare;
mod watch;

use eke_io::sensor::local::LocalSensor;
use eke_io::sensor::remote::RemoteSensor;
use eke_io::sensor::{Refused, SensorOptions, WindowSource, devices};
use eke_present::exit::{Failure, Outcome, Status};

use super::Context;
use super::program::IO;
use crate::args::Io;

/// The verb.
pub fn run(context: &Context, io: &Io) -> Outcome {
    match io {
        Io::Watch(options) => watch::run(context, options),
        Io::Compare(options) => compare::compare(context, options),
        Io::Sweep(options) => compare::sweep(context, options),
    }
}

/// Starts a sensor in the process `eke-io`, so that `eke` needs no libbpf. Without that program, or with another root directory, the kernel's
/// averages, with the reason in each window.
fn sensor(context: &Context, options: SensorOptions) -> Outcome<Box<dyn WindowSource>> {
    let why = if context.root.is_host() {
        match IO.find().map(|program| RemoteSensor::start(&program, options)) {
            Ok(Ok(remote)) => return Ok(Box::new(remote)),
            Ok(Err(refused)) => refused.to_string(),
            Err(missing) => format!("{}: averages only", missing.message()),
        }
    } else {
        "BPF measures only this machine, not another root directory".to_owned()
    };
    let local = LocalSensor::averages(&context.root, options, why).map_err(failure)?;
    Ok(Box::new(local))
}

fn failure(refused: Refused) -> Failure {
    Failure::new(Status::Failed, refused.to_string())
}

/// The disk that a text names.
fn device(context: &Context, text: &str) -> Outcome<String> {
    devices::named(&context.root, text).map_err(|why| Failure::new(Status::Usage, why))
}
