//! Generates the files that programs use.
//!
//! - Base: 15 libraries used by every program.
//! - Desktop libraries: 60 for each desktop. A program of that desktop uses each with a probability of 60 %, a program
//!   of both with 30 %.
//! - Own files of a program: a log-normal number (median 20, sigma 0.6) with log-normal sizes (median 300 KiB, sigma
//!   1.3).
//! - Sizes of libraries are log-normal (median 200 KiB, sigma 1.2).
//!
//! The launches measured in the reference have 56 to 459 files and 10 to 346 MiB; generated ones are in the lower half
//! of that.

use crate::predict::{Maps, MapsBuilder};
use eke_prefetch_model::pages::{PAGE_BYTES, Span};
use eke_prefetch_model::program::ProgramId;
use eke_statistics::Random;

const KIB: f64 = 1024.0;

/// A desktop; its programs share libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desktop {
    /// GNOME.
    Gnome,
    /// KDE.
    Kde,
}

impl Desktop {
    /// Its programs. The first four start with the session, in this order; the others are initially sorted by
    /// popularity.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Gnome => &GNOME,
            Self::Kde => &KDE,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gnome => "gnome",
            Self::Kde => "kde",
        }
    }
}

/// Number of programs that start with a session.
pub const WITH_SESSION: usize = 4;

const GNOME: [&str; 19] = [
    "/usr/bin/gnome-session",
    "/usr/bin/gnome-shell",
    "/usr/bin/gnome-settings",
    "/usr/bin/tracker",
    "/usr/bin/firefox",
    "/usr/bin/gnome-terminal",
    "/usr/bin/nautilus",
    "/usr/bin/evolution",
    "/usr/bin/gedit",
    "/usr/bin/evince",
    "/usr/bin/soffice",
    "/usr/bin/rhythmbox",
    "/usr/bin/eog",
    "/usr/bin/totem",
    "/usr/bin/gimp",
    "/usr/bin/gnome-calculator",
    "/usr/bin/inkscape",
    "/usr/bin/builder",
    "/usr/bin/boxes",
];

const KDE: [&str; 19] = [
    "/usr/bin/startplasma",
    "/usr/bin/kwin",
    "/usr/bin/plasmashell",
    "/usr/bin/baloo",
    "/usr/bin/konsole",
    "/usr/bin/firefox",
    "/usr/bin/dolphin",
    "/usr/bin/kate",
    "/usr/bin/kmail",
    "/usr/bin/okular",
    "/usr/bin/amarok",
    "/usr/bin/soffice",
    "/usr/bin/gwenview",
    "/usr/bin/vlc",
    "/usr/bin/krita",
    "/usr/bin/kcalc",
    "/usr/bin/kdevelop",
    "/usr/bin/kdenlive",
    "/usr/bin/marble",
];

/// The libraries.
pub struct Disk {
    base: Vec<(String, Span)>,
    gnome: Vec<(String, Span)>,
    kde: Vec<(String, Span)>,
}

impl Disk {
    /// Generates the libraries.
    pub fn new(random: &mut Random) -> Self {
        let mut libraries = |kind: &str, count: usize| {
            (0..count)
                .map(|i| (format!("/usr/lib/{kind}-{i}.so"), span(random.log_normal(200.0 * KIB, 1.2))))
                .collect()
        };
        Self {
            base: libraries("base", 15),
            gnome: libraries(Desktop::Gnome.name(), 60),
            kde: libraries(Desktop::Kde.name(), 60),
        }
    }

    fn of(&self, desktop: Desktop) -> &[(String, Span)] {
        match desktop {
            Desktop::Gnome => &self.gnome,
            Desktop::Kde => &self.kde,
        }
    }

    /// Adds a program of these desktops with all its files.
    pub fn install(
        &self,
        random: &mut Random,
        maps: &mut MapsBuilder,
        program: ProgramId,
        name: &str,
        of: &[Desktop],
    ) {
        self.base.iter().for_each(|(library, span)| maps.add(program, library, *span));
        let likely = if of.len() > 1 { 0.3 } else { 0.6 };
        for (library, span) in of.iter().flat_map(|desktop| self.of(*desktop)) {
            if random.share() < likely {
                maps.add(program, library, *span);
            }
        }
        own_files(random, maps, program, name, 20.0);
    }
}

fn own_files(random: &mut Random, maps: &mut MapsBuilder, program: ProgramId, name: &str, median: f64) {
    let count = random.log_normal(median, 0.6).clamp(1.0, 400.0) as usize;
    for file in 0..count {
        maps.add(program, &format!("{name}/{file}"), span(random.log_normal(300.0 * KIB, 1.3)));
    }
}

fn span(bytes: f64) -> Span {
    Span { first: 0, end: (bytes.clamp(1.0, 1e9) as u64).div_ceil(PAGE_BYTES) }
}

/// Generates the files of these programs, for traces without files: 5 libraries shared by all, and few own files each
/// (median 4). A program's files depend only on its number and the seed.
pub fn used_by(programs: impl Iterator<Item = ProgramId>, seed: u64) -> Maps {
    let mut maps = MapsBuilder::default();
    for program in programs {
        let mut shared = Random::new(seed);
        (0..5).for_each(|i| {
            maps.add(program, &format!("/lib/base-{i}"), span(shared.log_normal(200.0 * KIB, 1.2)))
        });
        let mut own = Random::new(seed ^ program.0);
        own_files(&mut own, &mut maps, program, &format!("/bin/{:016x}", program.0), 4.0);
    }
    maps.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_depend_on_the_program_and_the_seed_only() {
        let ids = [1, 2, 3].map(ProgramId);
        let (all, two) = (used_by(ids.into_iter(), 5), used_by(ids[1..].iter().copied(), 5));
        assert_eq!(all.bytes_of(ids[2]), two.bytes_of(ids[2]));
        assert_ne!(used_by(ids.into_iter(), 6).bytes(), all.bytes());
        let shared = all.all().iter().enumerate().filter(|(map, _)| all.users(*map).len() == 3).count();
        assert_eq!(shared, 5);
    }
}
