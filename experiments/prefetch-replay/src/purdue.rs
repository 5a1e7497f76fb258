//! Imports a public trace: the UNIX user data of Purdue University (T. Lane; UCI KDD archive, 1999), the commands that
//! eight users typed in up to two years. Each user has a file with one command per line. This takes the text of such a
//! file; it downloads nothing.
//!
//! The available copies have no times and no session marks. So a command comes [`PACE_S`] after the previous one and
//! runs until the next one; `exit` and `logout` end the session, and the next command begins another one [`PAUSE_S`]
//! later. The time of day has no information here. The files used by commands are generated
//! ([`super::generate::used_by`]).

use std::collections::BTreeMap;

use super::generate::used_by;
use super::trace::Trace;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Seconds between commands.
pub const PACE_S: f64 = 30.0;

/// Seconds between sessions.
pub const PAUSE_S: f64 = 3600.0;

/// Monday, 5 January 1998: the start of the first session.
const FIRST_S: f64 = 883_958_400.0;

/// Seed of the generated files, the same for everyone who replays the trace.
const SEED: u64 = 1;

/// Imports one user's file. Skips empty lines, and trims white space around commands; every other text is a valid
/// command.
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
        happened.push(UserEvent { at_s, user, event: before });
        happened.push(UserEvent { at_s, user, event: Event::Start(program) });
        at_s += PACE_S;
        last = Some(program);
        if matches!(command, "exit" | "logout") {
            happened.push(UserEvent { at_s, user, event: Event::Stop(program) });
            at_s += PAUSE_S;
            last = None;
        }
    }
    happened.extend(last.map(|last| UserEvent { at_s, user, event: Event::Stop(last) }));
    let maps = used_by(names.keys().copied(), SEED);
    Trace { happened, names, maps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_follow_each_other_and_exit_ends_the_session() {
        let trace = import("\ncd\nls \nexit\nvi\n", 3);
        let events: Vec<_> = trace
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
        assert_eq!(events, expected.map(|(at, what)| (at, what.to_owned())));
    }
}
