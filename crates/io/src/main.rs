//! `eke-io`: started by `eke io` to measure and by `eke-agent` to govern, or by hand.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use eke_io::sense::local::{Local, Wanted};
use eke_io::sense::{By, Windows};
use eke_kernel::Root;

const USAGE: &str = "eke-io measures disk latencies by class, and holds writers back when reads starve.

    eke-io sense [--by process|cgroup] [--no-bpf]

sense: for each line on standard input a line of JSON: what happened since the one before; until the input ends.";

#[derive(Default)]
struct Arguments {
    verb: String,
    wanted: Wanted,
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("eke-io: {wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match act(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            eprintln!("eke-io: {why}");
            ExitCode::from(code)
        }
    }
}

/// `None`: help was asked for.
fn arguments(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { verb: words.next().unwrap_or_default(), ..Arguments::default() };
    match arguments.verb.as_str() {
        "sense" => {}
        "-h" | "--help" => return Ok(None),
        other => return Err(format!("\"{other}\" is none of: sense")),
    }
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--no-bpf" => arguments.wanted.no_bpf = true,
            "--by" => arguments.wanted.by = by(&value()?)?,
            "-h" | "--help" => return Ok(None),
            _ => return Err(format!("\"{word}\" is not an option")),
        }
    }
    Ok(Some(arguments))
}

fn by(word: &str) -> Result<By, String> {
    match word {
        "process" => Ok(By::Process),
        "cgroup" => Ok(By::Cgroup),
        other => Err(format!("\"{other}\" is neither process nor cgroup")),
    }
}

fn act(arguments: &Arguments) -> Result<(), (u8, String)> {
    sense(&Root::host(), arguments.wanted).map_err(|why| (1, why))
}

fn sense(root: &Root, wanted: Wanted) -> Result<(), String> {
    let mut local = Local::start(root, wanted).map_err(|e| e.to_string())?;
    for line in std::io::stdin().lock().lines() {
        line.map_err(|e| format!("cannot read standard input: {e}"))?;
        let window = local.window().map_err(|e| e.to_string())?;
        let text = serde_json::to_string(&window).map_err(|e| e.to_string())?;
        // a reader that went away is no reason to complain
        if writeln!(std::io::stdout(), "{text}").is_err() {
            return Ok(());
        }
    }
    Ok(())
}
