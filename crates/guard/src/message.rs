//! What the guard says: a sentence for everybody, with process and user, which `ps` shows to those who may see them; and beside it the
//! program's name, which the agent's log gets, root and the program's user. Pure.

use eke_linux::Error;
use eke_model::snapshot::{Message, Program};
use eke_model::text;
use eke_model::units::Bytes;

use crate::grower::{Grower, What};
use crate::level::{Cause, cause};
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
    let grown = match (target.grown, target.mapped) {
        (Bytes(0), Bytes(0)) => String::new(),
        (Bytes(0), mapped) => format!(" that mapped {mapped} of new shared memory within a minute"),
        (grown, _) => format!(" that grew by {grown} within 10 s"),
    };
    let sentence = format!(
        "{what}: {which} of user {} ({}){grown}, because memory is short: {}, and {} is left.",
        target.user,
        target.size,
        limit(why),
        why.room
    );
    Message::from(sentence).about(program(target))
}

/// Which limit was passed.
fn limit(why: &Shortage) -> String {
    match cause(why) {
        Cause::Room(share) => format!("programs could get only {:.1} % of RAM", share * 100.0),
        Cause::LeftS(left) => format!("it would have ended within {left:.1} s"),
        Cause::Resident(share) => {
            format!("programs waited with only {:.1} % of RAM beside compressed swap", share * 100.0)
        }
        Cause::Stalled(share) => format!("all tasks waited {:.0} % of the last second", share * 100.0),
    }
}

/// That a program was ended.
pub fn ended(target: &Target, why: &Shortage) -> Message {
    Message { important: true, is_end: true, ..done("Ended", target, why) }
}

/// The same with so many processes that the target forked while it was ended, which were ended at once.
pub fn with_newborn(said: Option<Message>, target: &Target, newborn: usize) -> Option<Message> {
    if newborn == 0 {
        return said;
    }
    let sentence = format!("Ended, too: {newborn} that it forked meanwhile.");
    Some(match said {
        Some(said) => Message { text: format!("{} {sentence}", said.text), ..said },
        None => {
            let first = target.processes.first().map_or(0, |p| p.pid);
            Message::from(format!("Process {first} of user {} ended. {sentence}", target.user))
                .about(program(target))
        }
    })
}

/// Why nothing is done: what grows is never ended.
pub fn spared(grower: &Grower, processes: &[Process]) -> Message {
    let (grew, most) = match grower.what {
        What::Protected(most, user) => {
            let grew = format!(
                "protected programs grew by {} within a minute, process {} of user {user} most",
                grower.grown, most.pid
            );
            (grew, processes.iter().find(|p| p.id == most).map(|p| named(user, &p.name)))
        }
        What::Shared => {
            let grew = format!(
                "shared memory or files of tmpfs, which belong to no process, grew by {} within a minute",
                grower.grown
            );
            (grew, None)
        }
    };
    let said = Message::important(format!(
        "Memory is short because {grew}. The guard ends one other program when memory is exhausted, and then no more for them."
    ));
    most.into_iter().fold(said, Message::about)
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

    use super::*;
    use crate::process::tests::process;
    use crate::unit::UnitKey;

    fn target(name: &str, group: Option<&str>) -> Target {
        Target {
            key: UnitKey::Job { session: 7, group: 20 },
            name: name.into(),
            user: 1000,
            owner: 1000,
            processes: vec![ProcessId { pid: 20, start_ticks: 1 }],
            size: Bytes::mib(300),
            group: group.map(Into::into),
            shell_waits: false,
            grows: true,
            grown: Bytes(0),
            mapped: Bytes(0),
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
    fn what_was_forked_meanwhile_is_said_with_the_end() {
        let leak = target("leak", None);
        let end = ended(&leak, &Shortage::default());
        assert_eq!(with_newborn(Some(end.clone()), &leak, 0), Some(end.clone()));
        let both = with_newborn(Some(end.clone()), &leak, 7).unwrap();
        assert_eq!(both.text, format!("{} Ended, too: 7 that it forked meanwhile.", end.text));
        assert!(both.is_end && both.program == end.program);
        assert_eq!(with_newborn(None, &leak, 0), None);
        let later = with_newborn(None, &leak, 7).unwrap();
        assert_eq!(later.text, "Process 20 of user 1000 ended. Ended, too: 7 that it forked meanwhile.");
    }

    #[test]
    fn the_sentence_has_the_limit_that_was_passed_and_the_growth() {
        let leak = Target { grown: Bytes::mib(90), ..target("leak", None) };
        let said = |why: Shortage| ended(&leak, &Shortage { room: Bytes::mib(630), ..why }).text;
        let full = Shortage { room_share: 0.014, ..Shortage::default() };
        assert_eq!(
            said(full),
            "Ended: process 20 of user 1000 (300 MiB) that grew by 90 MiB within 10 s, because memory is short: programs could get only 1.4 % of RAM, and 630 MiB is left."
        );
        let maps = Target { mapped: Bytes::mib(250), ..target("leak", None) };
        let text = ended(&maps, &full).text;
        assert!(
            text.contains("(300 MiB) that mapped 250 MiB of new shared memory within a minute, because"),
            "{text}"
        );
        let soon =
            Shortage { room_share: 0.2, resident_share: 0.5, left_s: Some(0.6), ..Shortage::default() };
        assert!(said(soon).contains("short: it would have ended within 0.6 s, and"), "{}", said(soon));
        let stall = Shortage { room_share: 0.5, resident_share: 0.5, stalled_1s: 0.8, ..Shortage::default() };
        assert!(said(stall).contains("short: all tasks waited 80 % of"), "{}", said(stall));
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
        let what = What::Protected(process(5, "cc1plus", 9).id, 0);
        let grower = Grower { what, grown: Bytes::mib(400) };
        let said = spared(&grower, &[process(4, "editor", 9), process(5, "cc1plus", 9)]);
        assert!(said.text.contains("process 5 of user 0 most") && !said.text.contains("cc1plus"), "{said:?}");
        assert_eq!(said.program, Some(Program { uid: 0, name: Some("cc1plus".into()) }));
        assert_eq!(spared(&grower, &[]).program, None);
        let said = spared(&Grower { what: What::Shared, ..grower }, &[]);
        assert!(said.text.contains("no process, grew by 400 MiB") && said.program.is_none(), "{said:?}");
    }
}
