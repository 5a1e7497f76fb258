//! The values that steps replace.

use eke_model::step::Step;

use crate::facts::Facts;

/// The present value of the knob that `step` sets, in the knob's unit. `None` for another step, and for what the facts lack.
pub fn value(facts: &Facts, step: &Step) -> Option<String> {
    let Step::Set { knob, target, .. } = step else { return None };
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let yes = |is_on: bool| if is_on { "Y" } else { "N" }.to_owned();
    let zswap = facts.zswap.as_ref();
    match knob.as_str() {
        "vm.swappiness" => number(facts.swappiness),
        "vm.page-cluster" => number(facts.page_cluster),
        "memory.swappiness" => {
            let group = facts.memory_groups_v1.iter().find(|group| group.group == *target);
            number(group.map(|group| group.swappiness))
        }
        "zswap.enabled" => zswap.map(|zswap| yes(zswap.enabled)),
        "zswap.compressor" => zswap.map(|zswap| zswap.compressor.clone()),
        "zswap.zpool" => zswap.and_then(|zswap| zswap.zpool.clone()),
        "zswap.max_pool_percent" => number(zswap.and_then(|zswap| zswap.max_pool_percent)),
        "zswap.accept_threshold_percent" => number(zswap.and_then(|zswap| zswap.accept_threshold_percent)),
        "zswap.shrinker_enabled" => zswap.and_then(|zswap| zswap.shrinker).map(yes),
        _ => None,
    }
}
