//! Replays a trace and prints its metrics: `replay two SEED DAYS`, `replay one SEED DAYS`, `replay trace FILE`, `replay
//! purdue FILE...`.

use std::error::Error;

use eke_prefetch_replay::{Row, Settings, Trace, generate, purdue, replay, trace};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for trace in traces(&words)? {
        let rows = replay(&trace, &Settings::of(&trace));
        rows.iter().for_each(print);
    }
    Ok(())
}

fn traces(words: &[&str]) -> Result<Vec<Trace>, Box<dyn Error>> {
    match words {
        ["two", seed, days] => Ok(vec![generate::two_users(seed.parse()?, days.parse()?)]),
        ["one", seed, days] => Ok(vec![generate::one_user(seed.parse()?, days.parse()?)]),
        ["trace", file] => Ok(vec![trace::parse(&std::fs::read_to_string(file)?)?]),
        ["purdue", files @ ..] => {
            files.iter().zip(1..).map(|(file, user)| one_of_purdue(file, user)).collect()
        }
        _ => Err("usage: two SEED DAYS, one SEED DAYS, trace FILE, or purdue FILE...".into()),
    }
}

fn one_of_purdue(file: &str, user: u32) -> Result<Trace, Box<dyn Error>> {
    let mut trace = purdue::import(&String::from_utf8_lossy(&std::fs::read(file)?), user);
    trace.maps = generate::used_by(trace.names.keys().copied(), 1);
    Ok(trace)
}

fn print(row: &Row) {
    let params: Vec<String> = row.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    println!("{}\t{}\t{}\t{:.2}\t{}", row.variant, params.join(" "), row.metric, row.value, row.unit);
}
