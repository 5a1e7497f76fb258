//! Which devices of eke's have the newest dictionary, and which older one to remove next; pure.
//!
//! The journal has them in order, and each new dictionary begins with a device of a higher priority than all before it; devices that are added because the
//! areas are full have a lower one. So the first device with the highest priority begins the newest generation. The kernel fills it first, and what older
//! ones hold becomes less as programs use it.

use eke_model::step::ZramSpec;
use eke_model::units::Bytes;

use super::facts::Device;

/// Memory that stays available after an older device is swapped off, as a share of RAM. Its pages would be swapped out again with less.
const LEFT_AVAILABLE: f64 = 0.15;

/// A device that eke made, with its settings.
pub type Own = (String, ZramSpec);

/// The devices of older generations, and those of the newest one.
pub fn split(own: &[Own]) -> (&[Own], &[Own]) {
    let highest = own.iter().map(|(_, spec)| spec.swap_priority).max();
    let begin = own.iter().position(|(_, spec)| Some(spec.swap_priority) == highest);
    own.split_at(begin.unwrap_or(0))
}

/// The next device of `older` to swap off: the one with the fewest pages, if all of them fit into memory that nobody uses, in calm. Nothing is swapped out
/// for that. None goes while the newest generation is smaller than the older ones: the machine would have less swap.
pub fn to_drain<'a>(
    (older, newest): (&'a [Own], &[Own]),
    devices: &[Device],
    (ram, available): (Bytes, Bytes),
    is_calm: bool,
) -> Option<&'a str> {
    let used = |name: &str| devices.iter().find(|device| device.name == name).map(|device| device.used);
    let in_use = older.iter().filter_map(|(name, _)| Some((name, used(name)?)));
    let (name, holds) = in_use.min_by_key(|(_, used)| *used)?;
    let has_room = holds + ram.scaled(LEFT_AVAILABLE) <= available;
    (is_calm && has_room && size(newest) >= size(older)).then_some(name)
}

/// The declared size of these devices together.
pub fn size(own: &[Own]) -> Bytes {
    own.iter().map(|(_, spec)| spec.disksize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(priorities: &[i16]) -> Vec<(String, ZramSpec)> {
        let spec = |priority: i16| {
            let text = format!(r#"{{"algorithm":"zstd","disksize":1048576,"swap_priority":{priority}}}"#);
            serde_json::from_str::<ZramSpec>(&text).unwrap()
        };
        priorities.iter().enumerate().map(|(n, p)| (format!("zram{}", n + 1), spec(*p))).collect()
    }

    #[test]
    fn a_higher_priority_begins_a_generation_and_a_lower_one_belongs_to_it() {
        for (priorities, older) in [
            (&[][..], 0),
            (&[100], 0),
            (&[100, 99, 98], 0),
            (&[100, 101], 1),
            (&[100, 99, 101, 98], 2),
            (&[100, 101, 102], 2),
            (&[0, 0], 0),
        ] {
            assert_eq!(split(&own(priorities)).0.len(), older, "{priorities:?}");
        }
    }

    #[test]
    fn the_emptiest_goes_first_where_its_pages_fit_in_calm() {
        let own = own(&[100, 99, 101]);
        let (older, newest) = split(&own);
        let newest = [newest, newest].concat();
        let device =
            |name: &str, mib| Device { name: name.into(), used: Bytes::mib(mib), ..Device::default() };
        let devices = [device("zram1", 300), device("zram2", 200), device("zram3", 0)];
        let next = |available, calm| {
            to_drain((older, &newest), &devices, (Bytes::mib(1000), Bytes::mib(available)), calm)
        };
        assert_eq!(next(350, true), Some("zram2"));
        assert_eq!(next(349, true), None);
        assert_eq!(next(900, false), None);
        let memory = |available| (Bytes::mib(1000), Bytes::mib(available));
        assert_eq!(to_drain((&[], &newest), &devices, memory(900), true), None);
        assert_eq!(to_drain((older, &newest), &devices[..1], memory(450), true), Some("zram1"));
        assert_eq!(
            to_drain((older, &newest[..1]), &devices, memory(900), true),
            None,
            "less swap than before"
        );
    }
}
