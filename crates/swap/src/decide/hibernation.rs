//! The hibernation target: an installer names any swap area there, also one that can hold no image.

use eke_model::units::Bytes;

use crate::facts::Facts;

/// An area of less than this share of RAM is no place for an image: the kernel aims at two fifths of RAM (`hibernate_image_size_init`,
/// kernel/power/snapshot.c). Compression may make it fit, but nobody can rely on that.
const IMAGE: f64 = 0.4;

/// The sentence for the end of a plan; `effect` is what the plan means for the image.
pub(super) fn note(facts: &Facts, effect: &str) -> Option<String> {
    let target = facts.hibernation.as_ref()?;
    let (resume, source) = (&target.resume, &target.source);
    Some(match size(facts).filter(|size| *size < least(facts)) {
        Some(size) => format!(
            "{resume} ({source}) is too small to hibernate to: it has {size}, and an image of this machine takes {} or so",
            least(facts)
        ),
        None => format!("this machine hibernates to {resume} ({source}): {effect}"),
    })
}

/// The size of the target, if it is on as swap.
fn size(facts: &Facts) -> Option<Bytes> {
    let targets = || facts.disk_areas.iter().filter(|disk| disk.hibernation);
    facts.areas.iter().filter(|a| targets().any(|disk| disk.path == a.path)).map(|a| a.size).max()
}

/// Locked memory is part of the image.
fn least(facts: &Facts) -> Bytes {
    (facts.ram + facts.never_swapped).scaled(IMAGE)
}
