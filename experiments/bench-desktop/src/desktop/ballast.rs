//! The ballast: the memory stressor, filled once.

use std::ffi::OsString;
use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::Signal;

use super::children;
use super::room::{Room, Stop, failed};
use crate::session::Ballast;

/// Between two passes over its pages: longer than any session.
const PAUSE_MS: u64 = 1000 * 3600 * 24;
/// What the memory stressor says when it holds everything.
const FILLED: &[u8] = b"filled\n";

/// Starts the memory stressor, `program` with the ballast as its last argument, and waits until it is filled.
///
/// # Errors
/// It cannot be started, died, or is not filled at `until`.
pub(super) fn start(
    room: &mut Room<'_>,
    program: &[OsString],
    ballast: Ballast,
    until: Instant,
) -> Result<(), Stop> {
    if ballast.size.0 == 0 {
        return Ok(());
    }
    let (program, arguments) = program.split_first().ok_or_else(|| failed("no program for the ballast"))?;
    let mut command = children::command(program, room.home());
    command.args(arguments).arg(spec(ballast)).stdin(Stdio::piped()).stderr(Stdio::piped());
    let child = room.children.start("ballast", &mut command, Signal::KILL)?;
    // Its end of the pipe says that it is to go on; the other one lies in the child that the room keeps.
    let Some(mut says) = child.stderr.take() else { return Err(failed("the ballast has no standard error")) };
    let mut said = Vec::new();
    while said != FILLED {
        room.wait_for(&says, until, || "the ballast".to_owned())?;
        let mut bytes = [0; 256];
        let n = says.read(&mut bytes).unwrap_or(0);
        said.extend_from_slice(&bytes[..n]);
        if said.len() > FILLED.len() || n == 0 && !said.is_empty() {
            return Err(failed(format!("the ballast: {}", String::from_utf8_lossy(&said).trim())));
        }
    }
    Ok(())
}

/// As `eke_sandbox::stressor::StressorSpec` reads it.
fn spec(ballast: Ballast) -> String {
    let Ballast { size, ratio } = ballast;
    serde_json::json!({ "size": size.0, "ratio": ratio, "passes": null, "pause_ms": PAUSE_MS }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_model::units::Bytes;

    #[test]
    fn the_stressor_is_told_to_fill_and_rest() {
        let spec: serde_json::Value =
            serde_json::from_str(&spec(Ballast { size: Bytes::mib(40), ratio: 2.5 })).unwrap();
        let expected = serde_json::json!(
            {"size": 41_943_040, "ratio": 2.5, "passes": null, "pause_ms": 86_400_000});
        assert_eq!(spec, expected);
    }
}
