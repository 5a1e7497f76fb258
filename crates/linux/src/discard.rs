//! Finds out whether a swap area was swapped on with discard. The kernel takes that flag at swapon(2) and shows it
//! nowhere, so eke reads the configuration that swapped the area on: `/etc/fstab` and systemd's units.

use serde::{Deserialize, Serialize};

use crate::device::path_of;
use crate::root::Root;
use crate::systemd::escaped_path;

/// The discard option of swapon(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discard {
    /// Discard the whole area at swapon, and pages as they become free.
    Both,
    /// Discard the whole area once, at swapon.
    Once,
    /// Discard pages as they become free.
    Pages,
}

impl Discard {
    /// The flags for swapon(2), from linux/swap.h.
    pub fn flags(self) -> i32 {
        const DISCARD: i32 = 0x10000;
        const ONCE: i32 = 0x20000;
        const PAGES: i32 = 0x40000;
        match self {
            Self::Both => DISCARD,
            Self::Once => DISCARD | ONCE,
            Self::Pages => DISCARD | PAGES,
        }
    }

    /// The option for swapon(8).
    pub fn option(self) -> &'static str {
        match self {
            Self::Both => "--discard",
            Self::Once => "--discard=once",
            Self::Pages => "--discard=pages",
        }
    }

    /// The discard option among those of a line of fstab(5) or a unit: `defaults,discard=once,pri=5`.
    fn among(options: &str) -> Option<Self> {
        options.split(',').find_map(|word| match word.trim() {
            "discard" => Some(Self::Both),
            "discard=once" => Some(Self::Once),
            "discard=pages" => Some(Self::Pages),
            _ => None,
        })
    }
}

/// Directories of units; the first one with the unit wins (systemd.unit(5)).
const UNITS: [&str; 7] = [
    "etc/systemd/system",
    "run/systemd/system",
    "run/systemd/generator",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
    "run/systemd/generator.late",
];

/// The discard option that swaps on the area at `path` at boot; `None` without one, and if no file configures the area.
pub fn of(root: &Root, path: &str) -> Option<Discard> {
    let same = |source: &str| {
        let named = path_of(source);
        let device = |path: &str| root.block_device(path);
        named == path || device(&named).is_some_and(|name| Some(name) == device(path))
    };
    let unit = escaped_path(path) + ".swap";
    let units = UNITS.iter().filter_map(|dir| root.read(format!("{dir}/{unit}")).ok());
    units
        .take(1)
        .find_map(|text| in_unit(&text))
        .or_else(|| in_fstab(&root.read("etc/fstab").unwrap_or_default(), same))
}

fn in_unit(text: &str) -> Option<Discard> {
    let options = text.lines().filter_map(|line| line.trim().strip_prefix("Options=")).next_back()?;
    Discard::among(options)
}

fn in_fstab(text: &str, same: impl Fn(&str) -> bool) -> Option<Discard> {
    let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields
        .filter(|f| f.get(2) == Some(&"swap") && !f[0].starts_with('#') && same(f[0]))
        .find_map(|f| Discard::among(f.get(3)?))
}

#[cfg(test)]
mod tests {
    use eke_testkit::tree::put;

    use super::*;

    #[test]
    fn options_are_those_of_swapon() {
        let options = ["discard", "defaults,discard=once", "pri=5, discard=pages", "defaults", "nodiscard"];
        let found = options.map(Discard::among);
        assert_eq!(found, [Some(Discard::Both), Some(Discard::Once), Some(Discard::Pages), None, None]);
        assert_eq!(Discard::Once.flags(), 0x30000);
    }

    #[test]
    fn the_discard_option_is_read_from_fstab_and_units() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert_eq!(of(&root, "/dev/zram0"), None);
        let fstab = "# /dev/zram0 none swap discard 0 0\n/dev/vda1 / ext4 discard 0 1\n\
                     /dev/zram0 none swap defaults,discard=once,pri=9 0 0\n";
        put(dir.path(), "etc/fstab", fstab);
        assert_eq!([of(&root, "/dev/zram0"), of(&root, "/dev/vda1")], [Some(Discard::Once), None]);
        put(dir.path(), "run/systemd/generator/dev-zram0.swap", "[Swap]\nWhat=/dev/zram0\nOptions=discard\n");
        assert_eq!(of(&root, "/dev/zram0"), Some(Discard::Both));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_options(text in "(?s).{0,200}") {
            let _ = (in_fstab(&text, |_| true), in_unit(&text), escaped_path(&text), path_of(&text));
        }
    }
}
