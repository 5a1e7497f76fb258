//! `eke io ...`.

mod compare;
mod watch;

use eke_io::sense::local::{Local, Wanted};
use eke_io::sense::remote::Remote;
use eke_io::sense::{Refused, Windows, devices};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::programs;

use super::Context;
use crate::args::Io;

/// The sensor's program.
const PROGRAM: &str = "eke-io";

/// The verb.
pub fn run(context: &Context, io: &Io) -> Outcome {
    match io {
        Io::Watch(options) => watch::run(context, options),
        Io::Compare(options) => compare::compare(context, options),
        Io::Sweep(options) => compare::sweep(context, options),
    }
}

/// Starts a sensor in the process `eke-io`, so that `eke` needs no libbpf. Without that program, or with another root directory, the
/// sensor runs in this process.
fn sensor(context: &Context, wanted: Wanted) -> Outcome<(Box<dyn Windows>, Vec<String>)> {
    let program = programs::beside(PROGRAM);
    if context.root.is_host() {
        match Remote::start(&program, wanted) {
            Ok(remote) => return Ok((Box::new(remote), Vec::new())),
            Err(refused) => {
                let local =
                    Local::start(&context.root, Wanted { no_bpf: true, ..wanted }).map_err(failure)?;
                return Ok((Box::new(local), vec![refused.to_string()]));
            }
        }
    }
    let local = Local::start(&context.root, wanted).map_err(failure)?;
    Ok((Box::new(local), Vec::new()))
}

fn failure(refused: Refused) -> Failure {
    Failure::new(Status::Failed, refused.to_string())
}

/// The disk that a text names.
fn device(context: &Context, text: &str) -> Outcome<String> {
    devices::named(&context.root, text).map_err(|why| Failure::new(Status::Usage, why))
}
