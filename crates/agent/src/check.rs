//! Compares the plan's prediction with the machine.

use eke_model::model::Model;
use eke_model::sample::{Sample, SwapArea, ZramStat};
use eke_model::step::Prediction;
use eke_model::units::Bytes;
use eke_swap::measure::ratio::TABLE_BYTES;

/// The ratio of fewer compressed bytes is that of a few pages, not of the machine.
pub const HELD_AT_LEAST: Bytes = Bytes::mib(16);
/// Relative deviation from which a prediction is reported as wrong.
pub const TOLERANCE: f64 = 0.10;
const PAUSE_MS: u64 = 3_600_000;
/// Shares of pages that differ by less are no reason.
const SAME_SHARE: f64 = 0.02;
/// zsmalloc's steps between sizes leave up to this share of a pool unused.
const USUAL_UNUSED: f64 = 0.10;

/// Remembers when a wrong prediction was last reported.
#[derive(Debug, Default)]
pub struct Check {
    reported_ms: Option<u64>,
}

impl Check {
    /// Returns a sentence if the prediction is wrong, at most once an hour. `sample` is the one that `model` is of.
    pub fn compare(
        &mut self,
        prediction: &Prediction,
        model: &Model,
        sample: &Sample,
        now_ms: u64,
    ) -> Option<String> {
        if self.reported_ms.is_some_and(|ms| now_ms.saturating_sub(ms) < PAUSE_MS) {
            return None;
        }
        let sentence = deviation(prediction, model, sample)?;
        self.reported_ms = Some(now_ms);
        Some(sentence)
    }
}

/// Describes a deviation of the ratio, or a lack of capacity, of more than [`TOLERANCE`], and why. `None` below it, or while less than
/// [`HELD_AT_LEAST`] is compressed. More capacity alone is no wrong prediction: the agent adds devices itself.
pub fn deviation(prediction: &Prediction, model: &Model, sample: &Sample) -> Option<String> {
    let (predicted, is) = (prediction.ratio, model.effective_ratio?);
    if model.held < HELD_AT_LEAST || predicted <= 0.0 {
        return None;
    }
    let capacity = Capacity::of(prediction, sample, is);
    if !is_off(predicted, is) && !capacity.is_some_and(Capacity::is_too_small) {
        return None;
    }
    let room = capacity.map_or(String::new(), |c| {
        let Capacity { predicted, now, .. } = c;
        format!("; with full swap the machine holds {now:.2} times its RAM, predicted was {predicted:.2}")
    });
    let more = capacity.map_or(is > predicted, |c| c.now > c.predicted);
    let end = match more {
        true => "so there is more room than planned",
        false => "`eke down` and then `eke up` measure the present pages and plan anew",
    };
    let why = reasons(prediction, model, sample, capacity).join("; ");
    let held = model.held;
    Some(format!(
        "The compression ratio is {is:.1} for {held}, predicted was {predicted:.1}{room}: {why}; {end}."
    ))
}

fn is_off(predicted: f64, is: f64) -> bool {
    (is - predicted).abs() > TOLERANCE * predicted
}

/// How many times its RAM the machine holds when its swap is full.
#[derive(Debug, Clone, Copy)]
struct Capacity {
    predicted: f64,
    /// At the present ratio, with the present areas.
    now: f64,
    /// The swap that the plan counted with, as a multiple of RAM,
    planned_areas: f64,
    /// and what there is.
    areas: f64,
}

impl Capacity {
    fn is_too_small(self) -> bool {
        self.now < self.predicted && is_off(self.predicted, self.now)
    }

    /// `None` if nothing was predicted, or nothing can be held.
    fn of(prediction: &Prediction, sample: &Sample, ratio: f64) -> Option<Self> {
        let ram = sample.memory.total.saturating_sub(sample.memory.unevictable).0 as f64;
        let (zram, disks): (Vec<_>, Vec<_>) =
            sample.swaps.iter().partition(|area| area.zram_name().is_some());
        let share = |areas: Vec<&SwapArea>| areas.iter().map(|area| area.size.0).sum::<u64>() as f64 / ram;
        let is_zram = !zram.is_empty();
        // zram's table has an entry for each page of the declared size.
        let table = if is_zram { TABLE_BYTES / page_bytes(sample) as f64 } else { 0.0 };
        let saved = |ratio: f64| 1.0 - 1.0 / ratio - table;
        let predicted = prediction.holds_times_ram;
        let planned_areas = (predicted - 1.0) / saved(prediction.ratio);
        if ram <= 0.0 || predicted <= 1.0 || saved(prediction.ratio) <= 0.0 {
            return None;
        }
        let areas = match is_zram {
            true => share(zram),
            false => in_zswap(planned_areas, share(disks), ratio / prediction.ratio),
        };
        Some(Self { predicted, now: 1.0 + areas * saved(ratio), planned_areas, areas })
    }
}

/// What zswap holds: its pool is a share of RAM, and each page needs a slot on a disk.
fn in_zswap(planned: f64, slots: f64, ratio_times: f64) -> f64 {
    let slots_were_the_limit = planned >= slots * (1.0 - TOLERANCE);
    if slots_were_the_limit { slots } else { (planned * ratio_times).min(slots) }
}

fn page_bytes(sample: &Sample) -> u64 {
    if sample.page_bytes == 0 { 4096 } else { sample.page_bytes }
}

/// At least one sentence.
fn reasons(
    prediction: &Prediction,
    model: &Model,
    sample: &Sample,
    capacity: Option<Capacity>,
) -> Vec<String> {
    let is_less = model.effective_ratio.unwrap_or_default() < prediction.ratio;
    let stored = Stored::of(sample);
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut why = Vec::new();
    if let Some(now) = model.incompressible_share {
        let grew = now - prediction.incompressible_share;
        if (if is_less { grew } else { -grew }) > SAME_SHARE {
            let predicted = percent(prediction.incompressible_share);
            why.push(format!("{} of the pages do not compress, predicted was {predicted}", percent(now)));
        }
    }
    if let Some(unused) = stored.as_ref().map(|s| s.unused).filter(|u| is_less && *u > USUAL_UNUSED) {
        why.push(format!("{} of the pool is unused space between objects", percent(unused)));
    }
    if why.is_empty() && is_off(prediction.ratio, model.effective_ratio.unwrap_or_default()) {
        let how = if is_less { "less" } else { "better" };
        why.push(format!("the stored pages compress {how} than the measured ones"));
    }
    why.extend(stored.map(|s| s.described()));
    if let Some(c) = capacity.filter(|c| is_off(c.planned_areas, c.areas)) {
        let Capacity { areas, planned_areas, .. } = c;
        why.push(format!("swap has room for {areas:.2} times the RAM, planned was {planned_areas:.2}"));
    }
    why
}

/// What zram's swap areas store, by `mm_stat`.
struct Stored {
    /// The share of the pool that has no data.
    unused: f64,
    /// The share of pages that repeat one word and take no memory.
    same_filled: f64,
    /// The compressed size of the pages that are neither that nor incompressible, as a share of their size.
    others: f64,
}

impl Stored {
    /// `None` if zram stores nothing.
    fn of(sample: &Sample) -> Option<Self> {
        let names: Vec<&str> = sample.swaps.iter().filter_map(SwapArea::zram_name).collect();
        let areas = sample.zram.iter().filter(|z| names.contains(&z.name.as_str()));
        let sum = |of: fn(&ZramStat) -> u64| areas.clone().map(of).sum::<u64>() as f64;
        let page = page_bytes(sample) as f64;
        let (pages, same) = (sum(|z| z.orig_data.0) / page, sum(|z| z.same_pages));
        let (huge, data, used) = (sum(|z| z.huge_pages), sum(|z| z.compr_data.0), sum(|z| z.mem_used.0));
        (pages > 0.0 && used > 0.0).then(|| Self {
            unused: (1.0 - data / used).max(0.0),
            same_filled: same / pages,
            others: (data - huge * page).max(0.0) / ((pages - same - huge).max(1.0) * page),
        })
    }

    fn described(&self) -> String {
        let Self { same_filled, others, .. } = self;
        format!(
            "{:.0} % are same-filled, and those that compress take {:.0} % of their size",
            100.0 * same_filled,
            100.0 * others
        )
    }
}

#[cfg(test)]
mod tests {
    use eke_model::sample::Memory;

    use super::*;

    /// A machine of 1000 MiB with so much swap on zram, its `mm_stat` in MiB and pages.
    struct Machine {
        swap_mib: u64,
        orig_mib: u64,
        data_mib: u64,
        used_mib: u64,
        same: u64,
        huge: u64,
    }

    /// 60 MiB in 20: 3 to 1.
    const AS_PREDICTED: Machine =
        Machine { swap_mib: 1000, orig_mib: 60, data_mib: 19, used_mib: 20, same: 0, huge: 0 };

    impl Machine {
        fn sample(&self) -> Sample {
            let mib = Bytes::mib;
            let area =
                SwapArea { size: mib(self.swap_mib), device: Some("zram1".into()), ..SwapArea::default() };
            let stat = ZramStat {
                name: "zram1".into(),
                orig_data: mib(self.orig_mib),
                compr_data: mib(self.data_mib),
                mem_used: mib(self.used_mib),
                same_pages: self.same,
                huge_pages: self.huge,
                ..ZramStat::default()
            };
            let memory = Memory { total: mib(1000), ..Memory::default() };
            Sample { swaps: vec![area], zram: vec![stat], memory, ..Sample::default() }
        }

        fn deviation(&self, prediction: &Prediction) -> Option<String> {
            let sample = self.sample();
            deviation(prediction, &Model::new(&sample, None), &sample)
        }
    }

    /// 1000 MiB of swap in 1000 MiB of RAM at 3 to 1.
    fn prediction() -> Prediction {
        let holds_times_ram = 1.0 + (1.0 - 1.0 / 3.0 - TABLE_BYTES / 4096.0);
        Prediction { ratio: 3.0, holds_times_ram, ..Prediction::default() }
    }

    fn says(machine: &Machine, prediction: &Prediction, parts: &[&str]) {
        let sentence = machine.deviation(prediction).unwrap();
        assert!(parts.iter().all(|part| sentence.contains(part)), "{sentence}");
    }

    #[test]
    fn what_comes_as_predicted_is_not_reported() {
        assert_eq!(AS_PREDICTED.deviation(&prediction()), None);
        for used_mib in [19, 21, 22] {
            assert_eq!(Machine { used_mib, ..AS_PREDICTED }.deviation(&prediction()), None, "{used_mib}");
        }
        assert!(Machine { used_mib: 23, ..AS_PREDICTED }.deviation(&prediction()).is_some(), "2.6 to 1");
        let few = Machine { orig_mib: 15, data_mib: 15, used_mib: 15, ..AS_PREDICTED };
        assert_eq!(few.deviation(&prediction()), None, "a few pages");
        assert_eq!(deviation(&prediction(), &Model::default(), &Sample::default()), None);
        assert_eq!(AS_PREDICTED.deviation(&Prediction::default()), None, "nothing was predicted");
    }

    #[test]
    fn other_data_is_reported_with_ratio_capacity_and_what_it_compresses_to() {
        let worse = Machine { data_mib: 29, used_mib: 30, ..AS_PREDICTED };
        says(
            &worse,
            &prediction(),
            &[
                "The compression ratio is 2.0 for 60 MiB, predicted was 3.0; ",
                "the machine holds 1.50 times its RAM, predicted was 1.66: ",
                "the stored pages compress less than the measured ones; 0 % are same-filled, ",
                "those that compress take 48 % of their size; `eke down` and then `eke up` measure",
            ],
        );
        let better = Machine { data_mib: 9, used_mib: 10, same: 7680, ..AS_PREDICTED };
        says(
            &better,
            &prediction(),
            &["compress better than", "50 % are same-filled", "more room than planned."],
        );
    }

    #[test]
    fn more_pages_that_do_not_compress_are_the_reason() {
        let hard = Machine { data_mib: 29, used_mib: 30, huge: 4608, ..AS_PREDICTED };
        let predicted = Prediction { incompressible_share: 0.05, ..prediction() };
        says(
            &hard,
            &predicted,
            &["RAM, predicted was 1.66: 30 % of the pages do not compress, predicted was 5 %"],
        );
        let sentence = hard.deviation(&Prediction { incompressible_share: 0.29, ..prediction() }).unwrap();
        assert!(!sentence.contains("do not compress"), "as many as predicted: {sentence}");
        assert!(sentence.contains("compress less than the measured ones"), "{sentence}");
    }

    #[test]
    fn a_pool_with_unused_space_is_the_reason() {
        let fragmented = Machine { used_mib: 30, ..AS_PREDICTED };
        says(&fragmented, &prediction(), &["37 % of the pool is unused space between objects"]);
        assert!(!fragmented.deviation(&prediction()).unwrap().contains("compress less"));
    }

    #[test]
    fn another_size_of_swap_changes_the_capacity_alone() {
        let shrunk = Machine { swap_mib: 500, ..AS_PREDICTED };
        let parts =
            ["holds 1.33 times its RAM, predicted was 1.66", "room for 0.50 times the RAM, planned was 1.00"];
        says(&shrunk, &prediction(), &parts);
        assert!(!shrunk.deviation(&prediction()).unwrap().contains("than the measured ones"));
        let grown = Machine { swap_mib: 2000, ..AS_PREDICTED };
        assert_eq!(grown.deviation(&prediction()), None, "the agent has added devices");
        let parts =
            ["holds 1.99 times its RAM, predicted was 1.66", "room for 2.00 times the RAM, planned was 1.00"];
        says(&Machine { data_mib: 29, used_mib: 30, ..grown }, &prediction(), &parts);
    }

    /// In front of 2000 MiB of disk, with a pool of 200 MiB: 600 MiB at 3 to 1.
    #[test]
    fn zswaps_pool_holds_more_at_a_better_ratio_and_never_more_than_its_slots() {
        let on_disk = |slots_mib, pool_mib| {
            let area =
                SwapArea { path: "/dev/sda2".into(), size: Bytes::mib(slots_mib), ..SwapArea::default() };
            let memory = Memory {
                total: Bytes::mib(1000),
                zswap_stored: Some(Bytes::mib(60)),
                zswap_pool: Some(Bytes::mib(pool_mib)),
                ..Memory::default()
            };
            let sample = Sample { swaps: vec![area], memory, ..Sample::default() };
            let predicted = Prediction { ratio: 3.0, holds_times_ram: 1.4, ..Prediction::default() };
            deviation(&predicted, &Model::new(&sample, None), &sample)
        };
        assert_eq!(on_disk(2000, 20), None);
        assert!(on_disk(2000, 10).unwrap().contains("holds 2.00 times its RAM, predicted was 1.40"));
        assert!(on_disk(600, 10).unwrap().contains("holds 1.50 times its RAM"), "600 slots");
        assert!(on_disk(2000, 30).unwrap().contains("holds 1.20 times its RAM"), "400 MiB in 200");
    }

    #[test]
    fn it_is_reported_once_an_hour() {
        let mut check = Check::default();
        let sample = Machine { data_mib: 29, used_mib: 30, ..AS_PREDICTED }.sample();
        let model = Model::new(&sample, None);
        let mut compare = |now| check.compare(&prediction(), &model, &sample, now).is_some();
        assert_eq!(
            [0, 10_000, 3_599_999, 3_600_000, 3_600_001].map(&mut compare),
            [true, false, false, true, false]
        );
    }
}
