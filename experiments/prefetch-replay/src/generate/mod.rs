//! Generates scenarios. The same seed gives the same scenario.
//!
//! - [`one_user`]: a GNOME user. The machine runs from eight o'clock until after the last session. Sessions begin at 9
//!   and 19 o'clock, on weekends only at 19, each up to half an hour late.
//! - [`two_users`]: this user and a KDE user, one session at a time. Sessions begin at 9, 13, 17 and 20:30, on weekends
//!   at 13 and 17; the two users alternate.
//!
//! The modules `people` and `files` have the rules for users and files.

mod files;
mod people;

use std::collections::BTreeMap;

pub use files::used_by;

use self::files::{Desktop, Disk};
use self::people::{Person, Session};
use super::trace::Trace;
use crate::predict::MapsBuilder;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};
use eke_statistics::Random;

const DAY_S: f64 = 86_400.0;

/// Monday, 5 January 2026.
const FIRST_S: f64 = 1_767_571_200.0;

/// Start times of sessions in hours, on working days and on weekends.
type Hours = [&'static [f64]; 2];

/// Programs of the system's user, which run while the machine does.
const SYSTEM: [&str; 3] = ["/usr/bin/dbus-daemon", "/usr/lib/xorg/Xorg", "/usr/bin/greeter"];

/// A GNOME user, for `days` days.
pub fn one_user(seed: u64, days: u32) -> Trace {
    let hours: Hours = [&[9.0, 19.0], &[19.0]];
    Machine::new(seed, &[Desktop::Gnome]).live(days, hours)
}

/// A GNOME and a KDE user who alternate, for `days` days.
pub fn two_users(seed: u64, days: u32) -> Trace {
    let hours: Hours = [&[9.0, 13.0, 17.0, 20.5], &[13.0, 17.0]];
    Machine::new(seed, &[Desktop::Gnome, Desktop::Kde]).live(days, hours)
}

struct Machine {
    random: Random,
    people: Vec<Person>,
    happened: Vec<UserEvent>,
    names: BTreeMap<ProgramId, Vec<u8>>,
    maps: MapsBuilder,
}

impl Machine {
    fn new(seed: u64, desktops: &[Desktop]) -> Self {
        let mut random = Random::new(seed);
        let disk = Disk::new(&mut random);
        let people: Vec<Person> = desktops
            .iter()
            .zip(1000..)
            .map(|(desktop, user)| Person::new(user, *desktop, &mut random))
            .collect();
        let mut machine = Self {
            random,
            people,
            happened: Vec::new(),
            names: BTreeMap::new(),
            maps: MapsBuilder::default(),
        };
        for name in SYSTEM {
            machine.install(&disk, name, &[]);
        }
        for desktop in desktops {
            desktop.programs().iter().for_each(|name| machine.install(&disk, name, desktops));
        }
        machine
    }

    fn install(&mut self, disk: &Disk, name: &str, desktops: &[Desktop]) {
        let program = ProgramId::of_name(name.as_bytes());
        if self.names.insert(program, name.as_bytes().to_vec()).is_none() {
            let of = desktops
                .iter()
                .copied()
                .filter(|desktop| desktop.programs().contains(&name))
                .collect::<Vec<_>>();
            disk.install(&mut self.random, &mut self.maps, program, name, &of);
        }
    }

    fn live(mut self, days: u32, hours: Hours) -> Trace {
        let mut session_number = 0;
        for day in 0..days {
            self.people.iter_mut().for_each(|person| person.drift(day, &mut self.random));
            let begins = hours[usize::from(day % 7 >= 5)];
            let midnight_s = FIRST_S + f64::from(day) * DAY_S;
            self.system(midnight_s + 8.0 * 3600.0, true);
            let mut off_s = midnight_s + 8.1 * 3600.0;
            for (at, hour) in begins.iter().enumerate() {
                let latest_h = begins.get(at + 1).map_or(23.5, |next| next - 0.1);
                let begin_s = midnight_s + (hour + 0.5 * self.random.share()) * 3600.0;
                let session = Session { begin_s, end_s: midnight_s + latest_h * 3600.0 };
                let person = session_number % self.people.len();
                off_s = self.people[person].sit(session, &mut self.random, &mut self.happened);
                session_number += 1;
            }
            self.system(off_s + 60.0, false);
        }
        self.happened.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        Trace::new(self.happened, self.names, self.maps)
    }

    /// Switches the machine on or off.
    fn system(&mut self, at_s: f64, on: bool) {
        let mut add =
            |after_s: f64, event| self.happened.push(UserEvent { at_s: at_s + after_s, user: 0, event });
        if on {
            add(0.0, Event::Session);
        }
        for (place, name) in SYSTEM.iter().enumerate() {
            let program = ProgramId::of_name(name.as_bytes());
            if on { add(1.0 + place as f64, Event::Start(program)) } else { add(0.0, Event::Stop(program)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use eke_prefetch_model::predict::running::Running;

    #[test]
    fn a_scenario_depends_only_on_its_seed() {
        assert_eq!(two_users(3, 3), two_users(3, 3));
        assert_ne!(two_users(3, 3).happened, two_users(4, 3).happened);
    }

    #[test]
    fn programs_that_start_also_stop() {
        let trace = two_users(1, 14);
        assert!(trace.starts() > 500, "{}", trace.starts());
        assert!(trace.happened.windows(2).all(|pair| pair[0].at_s <= pair[1].at_s));
        let mut running = Running::default();
        for happened in &trace.happened {
            let changed = running.observe(happened);
            assert!(changed || happened.event == Event::Session, "{happened:?}");
        }
        assert_eq!(running.all().count(), 0);
    }

    #[test]
    fn two_users_alternate_and_share_little() {
        let trace = two_users(1, 14);
        let logins: Vec<u32> = trace
            .happened
            .iter()
            .filter(|h| h.event == Event::Session && h.user > 0)
            .map(|h| h.user)
            .collect();
        assert!(logins.len() > 40 && logins.windows(2).all(|pair| pair[0] != pair[1]));
        let programs = |user| -> BTreeSet<Event> {
            trace
                .happened
                .iter()
                .filter(|h| h.user == user && h.event != Event::Session)
                .map(|h| h.event)
                .collect()
        };
        let (gnome, kde) = (programs(1000), programs(1001));
        assert!(gnome.intersection(&kde).count() * 4 < gnome.len());
        let used: u64 = trace.maps.programs().map(|program| trace.maps.bytes_of(program)).sum();
        assert!(used > trace.maps.bytes() * 3 / 2, "libraries are shared");
    }
}
