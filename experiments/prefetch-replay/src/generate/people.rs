//! Generates what users do.
//!
//! - A session starts four programs of the desktop, two seconds apart. The user begins half a minute later.
//! - *Next program*: with 60 % probability one of three usual followers of the current program (30, 20 and 10 %);
//!   otherwise any program, weighted by popularity (1 by rank) times closeness to its favourite hour (0.25, plus 2 at
//!   that hour, a bell of two hours). Choosing a running program starts nothing.
//! - *Times*: the time between choices is log-normal (median 90 s, sigma 1). A program runs for a log-normal time
//!   (median 600 s, sigma 1.2), at most until the session ends. A session lasts log-normally (median two hours, sigma
//!   0.4), at most until the next one.
//! - *Drift*: every tenth day a third of the programs get other followers, and two pairs of programs exchange their
//!   popularity.

use std::collections::BTreeMap;

use super::files::{Desktop, WITH_SESSION};
use super::{DAY_S, UserEvent};
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::Event;
use eke_statistics::Random;

/// The limits of a session.
pub struct Session {
    /// Seconds since 1970.
    pub begin_s: f64,
    /// Seconds since 1970.
    pub end_s: f64,
}

/// A user.
pub struct Person {
    user: u32,
    opening: Vec<ProgramId>,
    programs: Vec<ProgramId>,
    /// By program; greater is more popular.
    popularity: Vec<f64>,
    followers: Vec<[usize; 3]>,
    favourite_hour: Vec<f64>,
}

impl Person {
    /// A new user of a desktop.
    pub fn new(user: u32, desktop: Desktop, random: &mut Random) -> Self {
        let ids: Vec<ProgramId> =
            desktop.programs().iter().map(|name| ProgramId::of_name(name.as_bytes())).collect();
        let (opening, programs) = ids.split_at(WITH_SESSION);
        let popularity: Vec<f64> = (0..programs.len()).map(|rank| 1.0 / (1.0 + rank as f64)).collect();
        let followers = programs.iter().map(|_| draw_followers(&popularity, random)).collect();
        let favourite_hour = programs.iter().map(|_| 8.0 + 14.0 * random.share()).collect();
        Self {
            user,
            opening: opening.to_vec(),
            programs: programs.to_vec(),
            popularity,
            followers,
            favourite_hour,
        }
    }

    /// Changes habits on every tenth day.
    pub fn drift(&mut self, day: u32, random: &mut Random) {
        if day == 0 || day % 10 != 0 {
            return;
        }
        let count = self.programs.len();
        for _ in 0..2 {
            let [one, other] = [0; 2].map(|_| (random.share() * count as f64) as usize);
            self.popularity.swap(one, other);
        }
        for followers in &mut self.followers {
            if random.share() < 1.0 / 3.0 {
                *followers = draw_followers(&self.popularity, random);
            }
        }
    }

    /// Generates the events of a session; returns its end.
    pub fn sit(&self, session: Session, random: &mut Random, happened: &mut Vec<UserEvent>) -> f64 {
        let Session { begin_s, end_s } = session;
        let end_s = end_s.min(begin_s + random.log_normal(7200.0, 0.4));
        let mut add = |at_s, event| happened.push(UserEvent { at_s, user: self.user, event });
        add(begin_s, Event::Session);
        for (place, program) in self.opening.iter().enumerate() {
            add(begin_s + 2.0 * (1.0 + place as f64), Event::Start(*program));
            add(end_s, Event::Stop(*program));
        }
        let mut now_s = begin_s + 30.0;
        let mut ends_s: BTreeMap<usize, f64> = BTreeMap::new();
        let mut used = None;
        while let Some(next) = self.next(used, now_s, random).filter(|_| now_s < end_s) {
            if ends_s.get(&next).is_none_or(|ends| *ends < now_s) {
                let ends = end_s.min(now_s + random.log_normal(600.0, 1.2).max(1.0));
                add(now_s, Event::Start(self.programs[next]));
                add(ends, Event::Stop(self.programs[next]));
                ends_s.insert(next, ends);
            }
            used = Some(next);
            now_s += random.log_normal(90.0, 1.0).max(1.0);
        }
        end_s
    }

    fn next(&self, used: Option<usize>, now_s: f64, random: &mut Random) -> Option<usize> {
        let usual = random.share();
        let place = [0.3, 0.5, 0.6].iter().position(|border| usual < *border);
        if let Some((used, place)) = used.zip(place) {
            return Some(self.followers[used][place]);
        }
        let hour = now_s.rem_euclid(DAY_S) / 3600.0;
        let near = |favourite: f64| 0.25 + 2.0 * (-(hour - favourite).powi(2) / 8.0).exp();
        let weights: Vec<f64> =
            self.popularity.iter().zip(&self.favourite_hour).map(|(p, f)| p * near(*f)).collect();
        random.pick(&weights)
    }
}

fn draw_followers(popularity: &[f64], random: &mut Random) -> [usize; 3] {
    [0; 3].map(|_| random.pick(popularity).unwrap_or(0))
}
