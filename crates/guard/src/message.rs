//! What the guard says: a sentence for everybody, with process and user, which `ps` shows to those who may see them; and beside it the
//! program's name, which the agent's log gets, root and the program's user. Pure.

use eke_linux::Error;
use eke_model::snapshot::{Message, Program};
use eke_model::text;

use crate::grower::Grower;
use crate::process::Process;
use crate::shortage::Shortage;
use crate::target::Target;

/// Longer names are cut. The kernel's name of a process has at most 15 bytes; a unit of a container has the container's number (64 digits).
const MOST_CHARACTERS: usize = 96;

/// What was done to a program, and why.
pub fn done(what: &str, target: &Target, why: &Shortage) -> Message {
    let first = target.processes.first().map_or(0, |p| p.pid);
    let which = match target.processes.len() {
        1 => format!("process {first}"),
        n => format!("{n} processes from {first} on"),
    };
    let sentence = format!(
        "{what}: {which} of user {} ({}), because memory is short: all tasks waited {:.0} % of the last second, and {} is left.",
        target.user,
        target.size,
        why.stalled_1s * 100.0,
        why.room
    );
    Message::from(sentence).about(program(target))
}

/// That a program was ended.
pub fn ended(target: &Target, why: &Shortage) -> Message {
    Message { important: true, is_end: true, ..done("Ended", target, why) }
}

/// Why nothing is done: protected programs grow.
pub fn spared(grower: &Grower, processes: &[Process]) -> Message {
    let said = Message::important(format!(
        "Memory is short because protected programs grew by {} within a minute, process {} of user {} most. The guard ends one other program when memory is exhausted, and then no more for them.",
        grower.grown, grower.id.pid, grower.user
    ));
    match processes.iter().find(|p| p.id == grower.id) {
        Some(process) => said.about(named(grower.user, &process.name)),
        None => said,
    }
}

/// That a step failed.
pub fn failed(what: &str, target: Option<&Target>, e: &Error) -> Message {
    let said = Message::important(format!("The guard could not {what}: {e}."));
    match target {
        Some(target) => said.about(program(target)),
        None => said,
    }
}

/// The command, and the unit if all of it is meant.
fn program(target: &Target) -> Program {
    let unit = target.group.as_deref().and_then(|group| group.rsplit('/').next());
    match unit {
        Some(unit) => named(target.user, &format!("{} ({unit})", text::name(&target.name, MOST_CHARACTERS))),
        None => named(target.user, &target.name),
    }
}

fn named(uid: u32, name: &str) -> Program {
    Program { uid, name: Some(text::name(name, MOST_CHARACTERS)) }
}

#[cfg(test)]
mod tests {
    use eke_model::process::ProcessId;
    use eke_model::units::Bytes;

    use super::*;
    use crate::process::tests::process;
    use crate::unit::UnitKey;

    fn target(name: &str, group: Option<&str>) -> Target {
        Target {
            key: UnitKey::Job { session: 7, group: 20 },
            name: name.into(),
            user: 1000,
            processes: vec![ProcessId { pid: 20, start_ticks: 1 }],
            size: Bytes::mib(300),
            group: group.map(Into::into),
            shell_waits: false,
            grows: true,
        }
    }

    fn name(target: &Target) -> String {
        let said = ended(target, &Shortage::default());
        assert!(said.text.starts_with("Ended: process 20 of user 1000 (300 MiB)"), "{}", said.text);
        let program = said.program.unwrap();
        assert_eq!(program.uid, 1000);
        program.name.unwrap()
    }

    #[test]
    fn a_job_has_its_commands_name_and_a_unit_its_own_beside_it() {
        assert_eq!(name(&target("leak", None)), "leak");
        assert_eq!(name(&target("leak", Some("system.slice/leak.service"))), "leak (leak.service)");
        assert_eq!(name(&target("", None)), "?");
    }

    #[test]
    fn a_name_writes_nothing_to_a_terminal_and_ends_no_quotes() {
        assert_eq!(name(&target("\u{1b}[31ma\n\": b", None)), "[31ma': b");
        let unit = format!("user.slice/{}\u{1b}\".scope", "x".repeat(300));
        let shown = name(&target("a\u{7}", Some(&unit)));
        assert_eq!(shown, format!("a ({}", "x".repeat(MOST_CHARACTERS - 3)));
    }

    #[test]
    fn only_an_end_counts_as_one_and_a_failure_names_what_it_is_about() {
        let (leak, short) = (target("leak", None), Shortage::default());
        let stopped = done("Stopped for a moment", &leak, &short);
        assert!(!stopped.important && !stopped.is_end && ended(&leak, &short).is_end);
        let busy = Error::io("end the process", "/proc/20".as_ref(), std::io::Error::from_raw_os_error(1));
        let said = failed("end it", Some(&leak), &busy);
        assert!(said.important && !said.is_end && !said.text.contains("leak"), "{said:?}");
        assert_eq!(said.program, stopped.program);
        assert_eq!(failed("let everything continue", None, &busy).program, None);
    }

    #[test]
    fn a_protected_program_that_grows_is_named_beside_the_sentence() {
        let grower = Grower { id: process(5, "cc1plus", 9).id, user: 0, grown: Bytes::mib(400) };
        let said = spared(&grower, &[process(4, "editor", 9), process(5, "cc1plus", 9)]);
        assert!(said.text.contains("process 5 of user 0 most") && !said.text.contains("cc1plus"), "{said:?}");
        assert_eq!(said.program, Some(Program { uid: 0, name: Some("cc1plus".into()) }));
        assert_eq!(spared(&grower, &[]).program, None);
    }
}
