//! The ballast: the memory stressor, filled once.

use std::ffi::OsString;
use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::Signal;

use super::children;
use super::driver::Driver;
use super::stop::{Stop, failed};
use crate::session::Ballast;

/// The pause between two passes over its pages, longer than any session.
const PAUSE_MS: u64 = 1000 * 3600 * 24;
/// The memory stressor prints this when all its memory is filled.
const FILLED: &[u8] = b"filled\n";

/// Starts the memory stressor, `program` with the ballast as its last argument, and waits until it is filled.
///
/// # Errors
/// It cannot be started, died, or is not filled at `until`.
pub(super) fn start(
    driver: &mut Driver<'_>,
    program: &[OsString],
    ballast: Ballast,
    until: Instant,
) -> Result<(), Stop> {
    if ballast.size.0 == 0 {
        return Ok(());
    }
    let (program, arguments) = program.split_first().ok_or_else(|| failed("no program for the ballast"))?;
    let mut command = children::command(program, driver.home());
    command.args(arguments).arg(spec(ballast)).stdin(Stdio::piped()).stderr(Stdio::piped());
    let child = driver.children.start("ballast", &mut command, Signal::KILL)?;
    // The stressor runs until its standard input closes. The driver keeps the other end, in `child`.
    let Some(mut stderr) = child.stderr.take() else {
        return Err(failed("the ballast has no standard error"));
    };
    let mut output = Vec::new();
    while output != FILLED {
        driver.wait_for(&stderr, until, || "the ballast".to_owned())?;
        let mut bytes = [0; 256];
        let n = stderr.read(&mut bytes).unwrap_or(0);
        output.extend_from_slice(&bytes[..n]);
        if output.len() > FILLED.len() || n == 0 && !output.is_empty() {
            return Err(failed(format!("the ballast: {}", String::from_utf8_lossy(&output).trim())));
        }
    }
    Ok(())
}

/// The ballast as an `eke_sandbox::stressor::StressorSpec` in JSON.
fn spec(ballast: Ballast) -> String {
    let Ballast { size, ratio } = ballast;
    serde_json::json!({ "size": size.0, "ratio": ratio, "passes": null, "pause_ms": PAUSE_MS }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_model::units::Bytes;

    #[test]
    fn the_stressor_fills_its_memory_once_and_rests() {
        let spec: serde_json::Value =
            serde_json::from_str(&spec(Ballast { size: Bytes::mib(40), ratio: 2.5 })).unwrap();
        let expected = serde_json::json!(
            {"size": 41_943_040, "ratio": 2.5, "passes": null, "pause_ms": 86_400_000});
        assert_eq!(spec, expected);
    }
}
