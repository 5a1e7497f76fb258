//! A new dictionary for the pages of now, in a process of its own: it samples memory as `eke up` does, which is too much for the agent.
//!
//! The old device keeps its pages and its dictionary. If the new dictionary gains, a device with it gets a higher priority, so the kernel fills that one; the
//! agent swaps the old one off when there is room ([`crate::live`]). Each device is in the journal before it exists: whenever this process dies, `eke down`
//! finds what it made. Pages and dictionary have the protections of [`crate::measure`].

use eke_apply::state;
use eke_linux::{Root, read};
use eke_model::applied::Applied;
use eke_model::config::SwapSettings;
use eke_model::date::time;
use eke_model::sample::SwapArea;
use eke_model::step::{PlannedStep, Reason, Step, ZramSpec};
use eke_model::units::{Bytes, MIB};
use serde::{Deserialize, Serialize};

use crate::decide::replace::{Two, replace};
use crate::error::Result;
use crate::facts::Facts;
use crate::live::{act, generations};
use crate::measure::dictionaries::{Dictionaries, dictionaries};
use crate::measure::{Dictionary, Limits, Measured, Scope};
use crate::probe;
use crate::remedy::Journaled;

/// Where the last attempt is: in `/run`, so it ends with the boot, as the dictionary does. It has no page.
pub const RECORD: &str = "run/eke/dictionary.json";

/// The last attempt, and the dictionary in use if it is not the first one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// When it began, by the monotonic clock of this boot, in milliseconds.
    pub tried_ms: u64,
    /// The same in seconds since 1970.
    pub unix_s: u64,
    /// The ratio of what was stored when it began, unless it gained.
    pub ratio_then: Option<f64>,
    /// Its outcome as a sentence; empty until then.
    pub outcome: String,
    /// The dictionary in use.
    pub newest: Option<Newest>,
}

/// A dictionary that replaced another one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Newest {
    /// The first device with it: `zram2`.
    pub device: String,
    /// The ratio that it was chosen for, of pages that are not same-filled.
    pub ratio: f64,
    /// Since when, in seconds since 1970.
    pub unix_s: u64,
}

impl Record {
    /// The record of this boot, if there was an attempt. A dictionary of before the last `eke up` is none of its devices'.
    pub fn load(root: &Root) -> Option<Self> {
        let record: Self = state::load(root, RECORD)?;
        let up_unix_s = state::load::<Applied>(root, state::APPLIED).map(|applied| applied.unix_s);
        let is_since_up = |unix_s: u64| up_unix_s.is_some_and(|up| unix_s >= up);
        let newest = record.newest.filter(|newest| is_since_up(newest.unix_s));
        let ratio_then = record.ratio_then.filter(|_| is_since_up(record.unix_s));
        Some(Self { newest, ratio_then, ..record })
    }

    /// What `eke status` says.
    pub fn sentence(&self) -> String {
        let since = self.newest.as_ref().map_or(String::new(), |newest| {
            format!(" {} has the newest dictionary, since {}.", newest.device, time(newest.unix_s))
        });
        match self.outcome.as_str() {
            "" => format!(
                "The training of a new dictionary, begun at {}, was interrupted.{since}",
                time(self.unix_s)
            ),
            outcome => format!("{outcome}{since}"),
        }
    }
}

/// The ratio that the dictionary of `device` was chosen for, of pages that are not same-filled: the kernel swaps the others out without a device (Linux
/// 6.12). `None` if nobody predicted one.
pub fn chosen_for(root: &Root, device: &str) -> Option<f64> {
    let newest = Record::load(root).and_then(|record| record.newest);
    let predicted = || {
        let applied: Applied = state::load(root, state::APPLIED)?;
        let prediction = applied.plans.into_iter().find_map(|plan| plan.prediction)?;
        let measured: Option<Measured> = state::load(root, state::MEASURED);
        Some(prediction.ratio * measured.map_or(1.0, |measured| measured.pages.stored_share()))
    };
    newest.filter(|newest| newest.device == device).map(|newest| newest.ratio).or_else(predicted)
}

/// Notes that an attempt begins. A crash after this counts as an attempt.
///
/// # Errors
/// The kernel's answer; nothing must begin then.
pub fn begin(
    root: &Root,
    tried_ms: u64,
    unix_s: u64,
    ratio_then: Option<f64>,
) -> eke_linux::error::Result<()> {
    let newest = Record::load(root).and_then(|record| record.newest);
    state::save(root, RECORD, &Record { tried_ms, unix_s, ratio_then, outcome: String::new(), newest })
}

/// Trains on pages of `scope`, compares, and sets a device up if the new dictionary gains; writes the outcome into the record, which [`begin`] began.
///
/// # Errors
/// The outcome cannot be written.
pub fn run(root: &Root, settings: &SwapSettings, scope: &Scope, unix_s: u64) -> eke_linux::error::Result<()> {
    let record = Record::load(root).unwrap_or_default();
    let done = match attempt(root, settings, scope, unix_s) {
        Ok((newest, why)) => {
            let outcome = format!("Swap goes to {} first: {why}.", newest.device);
            Record { outcome, newest: Some(newest), ratio_then: None, ..record }
        }
        Err(why) => Record { outcome: format!("The dictionary stays as it is: {why}."), ..record },
    };
    state::save(root, RECORD, &done)
}

/// The new device and the reason for it, or why there is none.
fn attempt(
    root: &Root,
    settings: &SwapSettings,
    scope: &Scope,
    unix_s: u64,
) -> std::result::Result<(Newest, String), String> {
    let own = own(root)?;
    let (_, newest) = generations::split(&own);
    let (device, spec) = newest.first().ok_or("no swap device of eke's is in use")?;
    may_replace(spec)?;
    let old = Dictionary::kept(root, device).map_err(|e| e.to_string())?;
    let facts = probe::probe(root).map_err(|e| e.to_string())?;
    let room = Room { facts: &facts, newest, pool: pool(root, &own), settings };
    // What has no place need not be sampled.
    room.device(chosen_for(root, device).unwrap_or(USUAL_RATIO))?;
    let compared = measured(root, &facts, scope, (spec, &old)).map_err(|e| e.to_string())?;
    let compared = compared.ok_or("too few pages could be sampled")?;
    let file_read = state::load::<Measured>(root, state::MEASURED).and_then(|measured| measured.file_read);
    let two = Two { old: &compared.old, new: &compared.new };
    let reason = replace(two, &facts, file_read, settings)?;
    let planned = planned(spec, &compared, &room, reason)?;
    match act::grow(root, &planned) {
        Ok(Some(path)) => {
            let device = path.trim_start_matches("/dev/").to_owned();
            let ratio = compared.new.ratio * compared.pages.stored_share();
            Ok((Newest { device, ratio, unix_s }, planned.reason.text))
        }
        Ok(None) => Err("another eke changes the machine now".into()),
        Err(e) => Err(format!("no device with the new one could be added: {e}")),
    }
}

fn own(root: &Root) -> std::result::Result<Vec<(String, ZramSpec)>, String> {
    let areas = read::swaps(root).map_err(|e| e.to_string())?;
    let names: Vec<String> = areas.iter().filter_map(SwapArea::zram_name).map(str::to_owned).collect();
    Ok(act::made_by_eke(root, &names))
}

/// Whether a device with these settings can be replaced by one with another dictionary.
///
/// # Errors
/// The reason why not, as a sentence without its full stop.
pub fn may_replace(spec: &ZramSpec) -> std::result::Result<(), &'static str> {
    match spec {
        ZramSpec { dictionary: None, .. } => Err("the device has none"),
        ZramSpec { backing_dev: Some(_), .. } | ZramSpec { backing_file: Some(_), .. } => {
            Err("pages are written back to a disk, which only one device can have")
        }
        _ => Ok(()),
    }
}

fn measured(
    root: &Root,
    facts: &Facts,
    scope: &Scope,
    old: (&ZramSpec, &Dictionary),
) -> Result<Option<Dictionaries>> {
    let mut scratch = Journaled::open(root)?;
    let compared = dictionaries(root, facts, (&Limits::default(), scope), old, &mut scratch);
    scratch.close()?;
    compared
}

fn pool(root: &Root, own: &[(String, ZramSpec)]) -> Bytes {
    own.iter().filter_map(|(name, _)| read::zram_stat(root, name)).map(|stat| stat.mem_used).sum()
}

/// What the size of the new device depends on.
struct Room<'a> {
    facts: &'a Facts,
    /// The devices with the dictionary that is replaced.
    newest: &'a [(String, ZramSpec)],
    /// The memory of all of eke's devices.
    pool: Bytes,
    settings: &'a SwapSettings,
}

/// The smallest device.
const SMALLEST: Bytes = Bytes::mib(16);
/// The safety margin of the ratio.
const RATIO_MARGIN: f64 = 0.9;
/// The ratio of a dictionary if nobody predicted one.
const USUAL_RATIO: f64 = 2.0;

impl Room<'_> {
    /// As large as the devices that it replaces, if that fits beside what all hold now.
    fn size(&self, ratio: f64) -> Bytes {
        let present = generations::size(self.newest);
        let share = Bytes(self.facts.ram.0 / 100 * u64::from(self.settings.pool_percent));
        let more = share.saturating_sub(self.pool).scaled(ratio * RATIO_MARGIN);
        Bytes(present.min(more).0 / MIB * MIB)
    }

    /// Above all areas.
    fn priority(&self) -> Option<i16> {
        let highest = self.facts.areas.iter().map(|area| area.priority).max().unwrap_or(0);
        i16::try_from(highest.checked_add(1)?).ok()
    }

    /// The size and the priority of the new device.
    ///
    /// # Errors
    /// Why there is no place for it. Devices that may not grow are replaced only by one as large, or they would never be removed.
    fn device(&self, ratio: f64) -> std::result::Result<(Bytes, i16), String> {
        let disksize = self.size(ratio);
        let least = if self.settings.grow { SMALLEST } else { generations::size(self.newest) };
        if disksize < least {
            return Err(format!(
                "the pool has room for only {disksize} of pages beside those that swap holds"
            ));
        }
        let priority = self.priority().ok_or("swap has the highest priority that there is")?;
        Ok((disksize, priority))
    }
}

fn planned(
    spec: &ZramSpec,
    compared: &Dictionaries,
    room: &Room<'_>,
    reason: Reason,
) -> std::result::Result<PlannedStep, String> {
    let (disksize, priority) = room.device(compared.new.ratio)?;
    let dictionary = Some(compared.dictionary.path());
    let spec = ZramSpec { dictionary, disksize, swap_priority: Some(priority), ..spec.clone() };
    Ok(PlannedStep { step: Step::AddZram(spec), reason })
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;
    use crate::measure::AlgorithmMeasurement;
    use crate::measure::measurements::PageCounts;

    fn spec(disksize_mib: u64, priority: i16) -> ZramSpec {
        let text = format!(
            r#"{{"algorithm":"zstd","params":"level=8","dictionary":"/old","disksize":{},"swap_priority":{priority}}}"#,
            disksize_mib << 20
        );
        serde_json::from_str(&text).unwrap()
    }

    fn plan_with(pool_mib: u64, priorities: &[i32]) -> std::result::Result<PlannedStep, String> {
        plan_where(pool_mib, priorities, true)
    }

    fn plan_where(pool_mib: u64, priorities: &[i32], grow: bool) -> std::result::Result<PlannedStep, String> {
        let area = |priority: &i32| SwapArea { priority: *priority, ..SwapArea::default() };
        let facts =
            Facts { ram: Bytes::mib(1000), areas: priorities.iter().map(area).collect(), ..Facts::default() };
        let newest = [("zram1".to_owned(), spec(500, 100)), ("zram2".to_owned(), spec(100, 99))];
        let settings = SwapSettings { pool_percent: 50, grow, ..SwapSettings::default() };
        let room = Room { facts: &facts, newest: &newest, pool: Bytes::mib(pool_mib), settings: &settings };
        let row = |ratio| AlgorithmMeasurement { ratio, ..AlgorithmMeasurement::default() };
        let dictionary = Dictionary::of(b"words").unwrap();
        let pages = PageCounts::default();
        let compared = Dictionaries { old: row(2.0), new: row(2.5), dictionary, pages };
        planned(&newest[0].1, &compared, &room, Reason::new("a test"))
    }

    fn planned_spec(pool_mib: u64, priorities: &[i32]) -> ZramSpec {
        match plan_with(pool_mib, priorities).unwrap().step {
            Step::AddZram(spec) => spec,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_new_device_is_the_first_choice_with_the_same_settings_and_another_dictionary() {
        let new = planned_spec(100, &[100, 99, -2, 120]);
        assert!(new.dictionary.as_ref().is_some_and(|path| path.starts_with("/proc/self/fd/")), "{new:?}");
        let expected = ZramSpec { dictionary: new.dictionary.clone(), ..spec(600, 121) };
        assert_eq!(new, expected);
    }

    #[test]
    fn it_fits_beside_what_swap_holds_now() {
        assert_eq!(planned_spec(300, &[100]).disksize, Bytes::mib(450), "200 MiB of pool at 2.25 to 1");
        let why = plan_with(495, &[100]).unwrap_err();
        assert!(why.starts_with("the pool has room for only 11 MiB"), "{why}");
        assert!(plan_with(600, &[100]).is_err(), "the pool is over its share");
        assert!(plan_with(100, &[32_767]).is_err());
        let fixed = |pool_mib| plan_where(pool_mib, &[100], false).is_ok();
        assert!(fixed(200) && !fixed(300), "a smaller one would stay beside the old ones for ever");
    }

    #[test]
    fn what_cannot_be_replaced_says_why() {
        assert_eq!(may_replace(&spec(1, 100)), Ok(()));
        assert!(may_replace(&ZramSpec { dictionary: None, ..spec(1, 100) }).is_err());
        let backed = ZramSpec { backing_dev: Some("/dev/vdb".into()), ..spec(1, 100) };
        assert!(may_replace(&backed).unwrap_err().contains("written back"));
    }

    fn applied(root: &Root, unix_s: u64) {
        let prediction = eke_model::step::Prediction { ratio: 3.0, ..Default::default() };
        let plan = eke_model::step::Plan { prediction: Some(prediction), ..Default::default() };
        state::save(root, state::APPLIED, &Applied { unix_s, plans: vec![plan], ..Applied::default() })
            .unwrap();
    }

    #[test]
    fn a_record_is_of_one_eke_up() {
        let root = &FakeKernel::new().root();
        assert_eq!((Record::load(root), chosen_for(root, "zram2")), (None, None));
        applied(root, 100);
        let newest = Newest { device: "zram2".into(), ratio: 2.5, unix_s: 150 };
        let record = Record {
            tried_ms: 7,
            unix_s: 149,
            outcome: "Done.".into(),
            newest: Some(newest),
            ..Record::default()
        };
        state::save(root, RECORD, &record).unwrap();
        assert_eq!([chosen_for(root, "zram2"), chosen_for(root, "zram1")], [Some(2.5), Some(3.0)]);
        let sentence = Record::load(root).unwrap().sentence();
        assert_eq!(sentence, "Done. zram2 has the newest dictionary, since 1970-01-01 00:02:30 UTC.");
        begin(root, 9, 200, Some(1.5)).unwrap();
        let begun = Record::load(root).unwrap();
        assert_eq!((begun.tried_ms, begun.ratio_then, begun.newest.is_some()), (9, Some(1.5), true));
        assert!(begun.sentence().starts_with(
            "The training of a new dictionary, begun at 1970-01-01 00:03:20 UTC, was interrupted. zram2"
        ));
        applied(root, 300);
        let record = Record::load(root).unwrap();
        assert_eq!((record.newest, record.ratio_then, record.tried_ms), (None, None, 9));
        assert_eq!(chosen_for(root, "zram2"), Some(3.0));
    }

    /// The kernel swaps same-filled pages out without a device, so the ratio of what is stored is without them.
    #[test]
    fn a_prediction_counts_without_same_filled_pages() {
        let root = &FakeKernel::new().root();
        applied(root, 100);
        let pages = PageCounts { sampled: 100, zero: 15, same_filled: 5, ..PageCounts::default() };
        state::save(root, state::MEASURED, &Measured { pages, ..Measured::default() }).unwrap();
        assert!(chosen_for(root, "zram1").is_some_and(|ratio| (ratio - 2.4).abs() < 1e-9));
    }

    #[test]
    fn without_a_device_of_ekes_it_says_so_and_changes_nothing() {
        let machine = FakeKernel::new();
        let root = machine.root();
        begin(&root, 1, 2, None).unwrap();
        let settings = SwapSettings::default();
        run(&root, &settings, &Scope::default(), 3).unwrap();
        let outcome = "The dictionary stays as it is: no swap device of eke's is in use.";
        assert_eq!(Record::load(&root).unwrap().sentence(), outcome);
        assert!(machine.log().iter().all(|line| line.contains("run/eke")), "{:?}", machine.log());
    }
}
