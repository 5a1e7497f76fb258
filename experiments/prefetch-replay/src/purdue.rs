//! The importer of a public trace: the UNIX user data of Purdue University (T. Lane; UCI KDD archive, 1999), the commands that eight users typed
//! in up to two years, one file a user, one command a line. It takes the text of such a file; it downloads nothing.
//!
//! The copies that are about have no times and no marks of sessions. So by rule: a command comes [`PACE_S`] after the one before and runs until
//! the next one; `exit` and `logout` end the session, and the next command begins another [`PAUSE_S`] later. What a predictor learns
//! from the time of day is nothing here. Which files commands use is generated ([`super::generate::used_by`]).

use std::collections::BTreeMap;

use super::generate::used_by;
use super::trace::Trace;
use eke_prefetch_model::happened::{Event, Happened};
use eke_prefetch_model::program::ProgramId;

/// Seconds from a command to the next.
pub const PACE_S: f64 = 30.0;

/// Seconds from the end of a session to the next one.
pub const PAUSE_S: f64 = 3600.0;

/// Monday, the 5th of January 1998: when the first session begins.
const FIRST_S: f64 = 883_958_400.0;

/// Of which files commands use: the same for all who replay it.
const SEED: u64 = 1;

/// One user's file as a trace. Empty lines are none, as are white space around commands; nothing else is wrong in it.
pub fn import(text: &str, user: u32) -> Trace {
    let mut happened = Vec::new();
    let mut names = BTreeMap::new();
    let (mut at_s, mut last): (f64, Option<ProgramId>) = (FIRST_S, None);
    for command in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let program = ProgramId::of_name(command.as_bytes());
        names.entry(program).or_insert_with(|| command.as_bytes().to_vec());
        let before = match last {
            Some(last) => Event::Stop(last),
            None => Event::Session,
        };
        happened.push(Happened { at_s, user, event: before });
        happened.push(Happened { at_s, user, event: Event::Start(program) });
        at_s += PACE_S;
        last = Some(program);
        if matches!(command, "exit" | "logout") {
            happened.push(Happened { at_s, user, event: Event::Stop(program) });
            at_s += PAUSE_S;
            last = None;
        }
    }
    happened.extend(last.map(|last| Happened { at_s, user, event: Event::Stop(last) }));
    let maps = used_by(names.keys().copied(), SEED);
    Trace { happened, names, maps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_follow_each_other_and_exit_ends_the_session() {
        let trace = import("\ncd\nls \nexit\nvi\n", 3);
        let told: Vec<_> = trace
            .happened
            .iter()
            .map(|happened| {
                let name = |id| String::from_utf8_lossy(&trace.names[&id]).into_owned();
                let what = match happened.event {
                    Event::Session => "session".to_owned(),
                    Event::Start(id) => format!("+{}", name(id)),
                    Event::Stop(id) => format!("-{}", name(id)),
                };
                (happened.at_s - FIRST_S, what)
            })
            .collect();
        let expected = [
            (0.0, "session"),
            (0.0, "+cd"),
            (30.0, "-cd"),
            (30.0, "+ls"),
            (60.0, "-ls"),
            (60.0, "+exit"),
            (90.0, "-exit"),
            (3690.0, "session"),
            (3690.0, "+vi"),
            (3720.0, "-vi"),
        ];
        assert_eq!(told, expected.map(|(at, what)| (at, what.to_owned())));
    }
}
