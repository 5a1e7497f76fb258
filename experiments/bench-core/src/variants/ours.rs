//! eke's own plan for a box, and that plan with one feature changed at a time. Pure.

use eke_model::config::Settings;
use eke_model::step::{PlannedStep, Step};
use eke_model::units::Bytes;
use eke_results::report::{Role, Variant};
use eke_swap::decide::{self, Decision, Overrides};
use eke_swap::measure::Measured;

use super::in_box::device_of;
use super::{Arrangement, Error, Host, KERNELS_PAGE_CLUSTER, KERNELS_SWAPPINESS, OWNER, plan};

/// The name of the variant that is eke.
pub const EKE: &str = "eke";

/// ksmd scans 50,000 pages per second, so it needs a second for a box. Measured: 8 % of one CPU.
const KSM: [(&str, u32); 3] = [("ksm.pages_to_scan", 1000), ("ksm.sleep_millisecs", 20), ("ksm.run", 1)];

/// What eke does beyond a fixed formula. Each feature can be switched off, to measure its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// The size from the measured ratio; off: the box's whole budget, as Fedora has it.
    pub size: bool,
    /// The pool may take four fifths of RAM; off: half of it.
    pub large_pool: bool,
    /// The algorithm by measurement; off: the kernel's default.
    pub algorithm: bool,
    /// Swappiness from measured costs; off: the kernel's 60.
    pub swappiness: bool,
    /// Page-cluster 0; off: the kernel's 3.
    pub page_cluster: bool,
    /// Merge equal pages of the session's programs. Only within one user: across users it leaks data.
    pub merging: bool,
}

impl Default for Features {
    /// The features of `eke up`.
    fn default() -> Self {
        Self {
            size: true,
            large_pool: true,
            algorithm: true,
            swappiness: true,
            page_cluster: true,
            merging: false,
        }
    }
}

/// A change of one feature: the variant's name, its description, and the change.
type Flip = (&'static str, &'static str, fn(&mut Features));

const FLIPS: [Flip; 6] = [
    ("eke: size of RAM", "the size is the box's budget, whatever the ratio", |l| l.size = false),
    ("eke: pool of half", "the pool may take half of RAM", |l| l.large_pool = false),
    ("eke: kernel's algorithm", "the kernel's default algorithm, whatever was measured", |l| {
        l.algorithm = false
    }),
    ("eke: swappiness 60", "the kernel's swappiness, whatever a page costs", |l| l.swappiness = false),
    ("eke: page-cluster 3", "the kernel's page-cluster: eight pages at a time", |l| l.page_cluster = false),
    (
        "eke: merging pages",
        "equal pages of the session's programs are merged (KSM), which `eke up` does not do",
        |l| l.merging = true,
    ),
];

/// The names of the variants that [`variations`] makes. They have no commas, since the user separates names by commas.
pub fn variation_names() -> impl Iterator<Item = &'static str> {
    FLIPS.iter().map(|(name, ..)| *name)
}

/// eke in a box of `budget`: its real plan, from the machine's facts and the measurement, with the budget as RAM.
///
/// # Errors
/// A plan that cannot be made.
pub fn ours(
    budget: Bytes,
    host: &Host,
    measured: &Measured,
    features: Features,
) -> Result<Arrangement, Error> {
    let variant = Variant { name: EKE.to_owned(), role: Role::Ours, set_up: String::new() };
    arrange(budget, host, measured, features, variant)
}

/// eke with one feature changed at a time, and a note for each change that has no effect here.
///
/// # Errors
/// A plan that cannot be made.
pub fn variations(
    budget: Bytes,
    host: &Host,
    measured: &Measured,
) -> Result<(Vec<Arrangement>, Vec<String>), Error> {
    let whole = ours(budget, host, measured, Features::default())?;
    let (mut arrangements, mut notes) = (Vec::new(), Vec::new());
    for (name, about, change) in FLIPS {
        let mut features = Features::default();
        change(&mut features);
        let variant = Variant { name: name.to_owned(), role: Role::Variation, set_up: format!("{about}; ") };
        let changed = arrange(budget, host, measured, features, variant)?;
        if features.merging && !host.merges_pages {
            notes.push(format!("{name}: left out, this kernel cannot (CONFIG_KSM)"));
        } else if does_the_same(&whole, &changed) {
            notes.push(format!("{name}: left out, it is what eke chooses here by itself"));
        } else {
            arrangements.push(changed);
        }
    }
    Ok((arrangements, notes))
}

fn does_the_same(a: &Arrangement, b: &Arrangement) -> bool {
    let steps = |a: &Arrangement| a.plan.steps.iter().map(|p| p.step.clone()).collect::<Vec<_>>();
    steps(a) == steps(b) && (a.swappiness, a.merge_same_pages) == (b.swappiness, b.merge_same_pages)
}

fn arrange(
    budget: Bytes,
    host: &Host,
    measured: &Measured,
    features: Features,
    mut variant: Variant,
) -> Result<Arrangement, Error> {
    let mut decision = decide::decide(&host.seen_from_a_box(budget), measured, &overrides(features))?;
    decision.plan.remedy = OWNER.to_owned();
    apply(features, &mut decision, budget, host);
    let swap = device_of(&mut decision.plan).is_some();
    let swappiness = host.groups_have_swappiness().then(|| take_swappiness(&mut decision)).filter(|_| swap);
    variant.set_up += &set_up(&decision, budget, swappiness);
    let mut arrangement =
        Arrangement { variant, plan: decision.plan, swap, swappiness, merge_same_pages: features.merging };
    if features.merging {
        let merge = plan(KSM.map(|(knob, value)| Step::set(knob, value)), "equal pages are merged");
        arrangement.plan.steps.extend(merge.steps);
    }
    Ok(arrangement)
}

/// The shipped defaults. A report must not depend on the user's settings.
fn overrides(features: Features) -> Overrides {
    let mut settings = Settings::from_sources(&[]).unwrap_or_default().swap;
    if !features.large_pool {
        settings.pool_percent = 50;
    }
    Overrides { settings, ..Overrides::default() }
}

/// Sets priorities above the machine's own swap, and replaces what is switched off.
fn apply(features: Features, decision: &mut Decision, budget: Bytes, host: &Host) {
    if let Some(device) = device_of(&mut decision.plan) {
        device.swap_priority = device.swap_priority.map(|p| host.priority(p));
        if !features.size {
            device.disksize = budget;
        }
        if !features.algorithm {
            device.params = None;
            device.dictionary = None;
            device.algorithm = host.default_algorithm.clone().unwrap_or_default();
        }
    }
    if !features.swappiness {
        set(decision, "vm.swappiness", KERNELS_SWAPPINESS);
    }
    if !features.page_cluster {
        set(decision, "vm.page-cluster", KERNELS_PAGE_CLUSTER);
    }
}

/// Changes the value of a step. A knob that the plan does not set stays as it is.
fn set(decision: &mut Decision, name: &str, to: u32) {
    for planned in &mut decision.plan.steps {
        if let Step::Set { knob, value, .. } = &mut planned.step {
            if knob == name {
                *value = to.to_string();
            }
        }
    }
}

/// On cgroup v1 the box has its own swappiness, and the machine's stays. If the costs are unknown, eke sets none, and the box gets
/// the kernel's default.
fn take_swappiness(decision: &mut Decision) -> u32 {
    let steps = &mut decision.plan.steps;
    let of = |p: &PlannedStep| match &p.step {
        Step::Set { knob, value, .. } if knob == "vm.swappiness" => value.parse().ok(),
        _ => None,
    };
    let value = steps.iter().find_map(of);
    steps.retain(|p| of(p).is_none());
    value.unwrap_or(KERNELS_SWAPPINESS)
}

fn set_up(decision: &Decision, budget: Bytes, swappiness: Option<u32>) -> String {
    if decision.plan.steps.is_empty() {
        return format!("`eke up`'s plan with {budget} as RAM: {}", decision.backend_reason.text);
    }
    let mut parts: Vec<String> = decision.plan.steps.iter().map(|p| p.step.to_string()).collect();
    parts.extend(swappiness.map(|v| format!("swappiness {v}")));
    let ratio = decision.plan.prediction.as_ref().map_or(0.0, |p| p.ratio);
    format!(
        "`eke up`'s plan with {budget} as RAM, from pages that compressed {ratio:.2} to 1: {}",
        parts.join("; ")
    )
}
