//! What eke does not do, but the user may want to.

use eke_core::step::Reason;

use super::backend::Backend;
use crate::facts::Facts;
use crate::measure::figures::Measured;

/// Sentences for the end of the plan; `changes` says whether the plan changes anything.
pub fn advice(facts: &Facts, measured: &Measured, backend: &Backend, changes: bool) -> Vec<Reason> {
    let mut all = Vec::new();
    if changes {
        all.extend(early_kill(facts));
        all.extend(hibernation(facts, backend));
        all.extend(boot_config(backend));
        all.extend(card(facts, backend));
    }
    all.extend(managers(facts, backend));
    if measured.estimated {
        all.push(Reason::new("the figures are estimates from user space (run as root for measured ones)"));
    }
    all
}

/// Compressed swap can turn an OOM kill into a freeze: the machine thrashes in memory instead of failing.
fn early_kill(facts: &Facts) -> Option<Reason> {
    if let Some(daemon) = facts.oom_daemons.first() {
        return Some(Reason::new(format!(
            "{daemon} runs: it counts zram's free space as free memory and may act late; let it act on available memory or pressure"
        )));
    }
    match facts.min_ttl_ms {
        Some(0) => Some(Reason::new(
            "against freezes when even compressed memory runs out: `echo 1000 > /sys/kernel/mm/lru_gen/min_ttl_ms` makes the kernel kill early, before the last second's working set is evicted",
        )),
        Some(_) => None,
        None => Some(Reason::new(
            "against freezes when even compressed memory runs out: an OOM daemon (systemd-oomd, earlyoom) kills early",
        )),
    }
}

fn hibernation(facts: &Facts, backend: &Backend) -> Option<Reason> {
    let h = facts.hibernation.as_ref()?;
    matches!(backend, Backend::Zram).then(|| {
        Reason::new(format!("this machine hibernates to {} ({}): that area is left as it is; compressed swap must fit into RAM and that area when it hibernates", h.resume, h.source))
    })
}

fn boot_config(backend: &Backend) -> Option<Reason> {
    matches!(backend, Backend::Zswap { .. }).then(|| Reason::new("`eke swap boot-config` sets the same zswap on the kernel's command line, so that it is on before the first program starts"))
}

fn card(facts: &Facts, backend: &Backend) -> Option<Reason> {
    let area = facts.disk_areas.first()?;
    matches!(backend, Backend::Zram).then(|| {
        Reason::new(format!(
            "{} stays on behind zram, for when that is full; nothing moves there by itself before",
            area.path
        ))
    })
}

fn managers(facts: &Facts, backend: &Backend) -> Option<Reason> {
    let active = facts.managers.iter().find(|m| m.active)?;
    matches!(backend, Backend::Zram | Backend::Zswap { .. }).then(|| {
        Reason::new(format!("{} is installed ({}) and will set up its own compressed swap at the next boot: `eke enable` works beside it (it adopts), but one of the two is enough", active.name, active.found.join(", ")))
    })
}
