//! The arrangements of an experiment in a box. Pure.

use eke_model::step::{Plan, Step, ZramSpec};
use eke_model::units::Bytes;
use eke_results::report::{Role, Variant};
use eke_swap::decide::NO_DEVICES;

use super::host::Host;
use super::table::{self, Lacking, Means, NO_ZSWAP_IN_A_BOX, PEERS, Peer, Zram};
use super::{Arrangement, Error, KERNELS_PAGE_CLUSTER, KERNELS_SWAPPINESS, plan};

/// The variants, and the reasons for those left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InBox {
    /// In the order of the table.
    pub arrangements: Vec<Arrangement>,
    /// Variants left out, substitutes, and the effect of the machine's own swap on the results.
    pub notes: Vec<String>,
}

/// The peers that `which` names (all of them, if none) in a box of `budget`, which their formulas get as RAM.
///
/// # Errors
/// A name that is not in the table.
pub fn in_box(budget: Bytes, host: &Host, which: &[String]) -> Result<InBox, Error> {
    if let Some(name) = which.iter().find(|name| table::find(name).is_none()) {
        let known = PEERS.iter().map(|p| p.name.to_owned()).collect();
        return Err(Error::Unknown { name: name.clone(), known });
    }
    let wanted = PEERS.iter().filter(|p| which.is_empty() || which.iter().any(|name| name == p.name));
    let mut all = InBox { notes: host.other_swap().into_iter().collect(), ..InBox::default() };
    for peer in wanted {
        match arrangement(peer, budget, host) {
            Ok(arrangement) => all.arrangements.push(arrangement),
            Err(why) => all.notes.push(format!("{}: {why}", peer.name)),
        }
    }
    Ok(all)
}

/// The name of plain zram of that size.
pub fn size_name(mib: u64) -> String {
    format!("zram of {mib} MiB")
}

/// The study's curve: plain zram of each size.
pub fn sizes(host: &Host, mib: &[u64]) -> Vec<Arrangement> {
    let one = |mib: &u64| {
        let size = Bytes::mib(*mib);
        let variant = Variant {
            name: size_name(*mib),
            role: Role::Baseline,
            set_up:
                "plain zram with the kernel's default algorithm, nothing else: a point of the study's curve"
                    .into(),
        };
        on_zram(variant, &table::study_zram(), size, host)
    };
    mib.iter().map(one).collect()
}

/// # Errors
/// The reason for leaving it out, as the rest of a sentence.
fn arrangement(peer: &Peer, budget: Bytes, host: &Host) -> Result<Arrangement, String> {
    let variant = |set_up: String, role: Role| Variant { name: peer.name.to_owned(), role, set_up };
    match peer.means {
        Means::Nothing => {
            let variant = variant(peer.documented.to_owned(), Role::Baseline);
            Ok(Arrangement { variant, ..Arrangement::default() })
        }
        Means::Zswap(_) => Err(NO_ZSWAP_IN_A_BOX.to_owned()),
        Means::Zram(_) if !host.has_zram() => Err("left out: this kernel has no zram".to_owned()),
        Means::Zram(documented) => {
            let zram = here(&documented, host)?;
            let size = whole_pages((zram.size)(budget));
            let variant = variant(set_up(peer, &documented, &zram, size, budget), Role::Peer);
            Ok(on_zram(variant, &zram, size, host))
        }
    }
}

/// The peer's settings on this kernel.
fn here(documented: &Zram, host: &Host) -> Result<Zram, String> {
    match (documented.algorithm, documented.lacking) {
        (Some(name), Lacking::LeaveOut) if !host.offers(name) => {
            Err(format!("left out: this kernel's zram lacks {name}, without which it sets up nothing"))
        }
        (Some(name), Lacking::KernelsDefault { page_cluster }) if !host.offers(name) => {
            Ok(Zram { algorithm: None, page_cluster, ..*documented })
        }
        _ => Ok(*documented),
    }
}

fn set_up(peer: &Peer, documented: &Zram, here: &Zram, size: Bytes, budget: Bytes) -> String {
    let algorithm = match (here.algorithm, documented.algorithm) {
        (Some(name), _) => name.to_owned(),
        (None, None) => "the kernel's default algorithm".to_owned(),
        (None, Some(name)) => {
            format!("the kernel's default algorithm (its own would be {name}, which this kernel lacks)")
        }
    };
    let sysctls = [("swappiness", here.swappiness), ("page-cluster", here.page_cluster)];
    let sysctls = sysctls.iter().filter_map(|(name, value)| Some(format!(", {name} {}", (*value)?)));
    let rest = match documented.not_in_a_box {
        "" => String::new(),
        rest => format!("; {rest}"),
    };
    format!(
        "by documented values, with {budget} as RAM ({}): zram of {size} ({}), {algorithm}{}{rest}",
        peer.documented,
        here.formula,
        sysctls.collect::<String>()
    )
}

/// zram takes any size, a swap area whole pages; the largest page of any kernel is 64 KiB.
fn whole_pages(size: Bytes) -> Bytes {
    Bytes(size.0 >> 16 << 16)
}

fn on_zram(variant: Variant, zram: &Zram, size: Bytes, host: &Host) -> Arrangement {
    let spec = ZramSpec {
        swap_priority: Some(host.priority(zram.priority.unwrap_or(100))),
        ..ZramSpec::new(zram.algorithm.unwrap_or_default(), size)
    };
    let mut steps = before_zram(host);
    steps.push(Step::AddZram(spec));
    steps.push(Step::set("vm.page-cluster", zram.page_cluster.unwrap_or(KERNELS_PAGE_CLUSTER)));
    let swappiness = zram.swappiness.unwrap_or(KERNELS_SWAPPINESS);
    let of_the_box = host.groups_have_swappiness().then_some(swappiness);
    if of_the_box.is_none() {
        steps.push(Step::set("vm.swappiness", swappiness));
    }
    let why = format!("the experiment's variant \"{}\"", variant.name);
    Arrangement {
        plan: plan(steps, &why),
        variant,
        swap: true,
        swappiness: of_the_box,
        merge_same_pages: false,
    }
}

/// Loads zram's module, if it is a module, and disables zswap, which would sit in front of every variant's device.
fn before_zram(host: &Host) -> Vec<Step> {
    let mut steps = Vec::new();
    if !host.facts.zram.control {
        steps.push(Step::LoadModule { name: "zram".into(), params: NO_DEVICES.into() });
    }
    if host.facts.zswap.as_ref().is_some_and(|z| z.enabled) {
        steps.push(Step::set("zswap.enabled", "N"));
    }
    steps
}

/// The zram device of a plan.
pub(super) fn device_of(plan: &mut Plan) -> Option<&mut ZramSpec> {
    plan.steps.iter_mut().find_map(|p| match &mut p.step {
        Step::AddZram(spec) => Some(spec),
        _ => None,
    })
}
