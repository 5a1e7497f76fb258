//! `vm.overcommit_memory=2`: the kernel refuses allocations beyond `CommitLimit`, a share of RAM and all of swap (overcommit-accounting.rst). A zram device
//! counts with its declared size, which is memory that the machine has not got.

use eke_model::step::Reason;

use super::backend::{Backend, nothing};
use crate::facts::Facts;

/// The mode that never overcommits.
const NEVER: u32 = 2;

/// The automatic choice, or nothing in place of zram: who sets that mode wants a refusal early, not the end of a program late. zswap adds no area.
pub(super) fn unless_limited(facts: &Facts, chosen: (Backend, Reason)) -> (Backend, Reason) {
    if chosen.0 != Backend::Zram || !is_limited(facts) {
        return chosen;
    }
    nothing(
        "vm.overcommit_memory is 2, and its limit counts swap: with zram, programs would get memory that they are refused now, and one would be ended later in place of that (--backend zram sets it up all the same)".into(),
    )
}

/// What a requested zram means there.
pub(super) fn note(facts: &Facts) -> Option<String> {
    is_limited(facts).then(|| {
        "vm.overcommit_memory is 2, and its limit (CommitLimit) grows by the size of zram: programs get memory that they are refused now. `eke down` works while what they were promised (Committed_AS) is below the limit without zram".to_owned()
    })
}

fn is_limited(facts: &Facts) -> bool {
    facts.overcommit_memory == Some(NEVER)
}
