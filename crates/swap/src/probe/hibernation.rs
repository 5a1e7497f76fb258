//! The hibernation target.

use eke_linux::Root;
use eke_linux::device::path_of;
use eke_model::sample::SwapArea;

use super::disks::{block_name, block_of_number};
use super::parse;
use crate::facts::Hibernation;

/// The target by the running kernel's setting, its command line, or Debian's initramfs-tools, in this order. `None` if none is configured.
pub(crate) fn target(root: &Root, areas: &[SwapArea]) -> Option<Hibernation> {
    from_kernel(root)
        .or_else(|| {
            let text = root.read("proc/cmdline").ok()?;
            named(root, "proc/cmdline", parse::cmdline_value(&text, "resume")?)
        })
        .or_else(|| {
            let file = "etc/initramfs-tools/conf.d/resume";
            let text = root.read(file).ok()?;
            match parse::shell_value(&text, "RESUME")? {
                "auto" => largest(file, areas),
                resume => named(root, file, resume),
            }
        })
}

/// `/sys/power/resume`: major:minor, 0:0 for none.
fn from_kernel(root: &Root) -> Option<Hibernation> {
    let text = root.read("sys/power/resume").ok()?;
    let resume = text.trim();
    if resume.is_empty() || resume == "0:0" {
        return None;
    }
    let device = block_of_number(root, resume);
    Some(Hibernation { source: "sys/power/resume".into(), resume: resume.into(), device })
}

fn named(root: &Root, source: &str, resume: &str) -> Option<Hibernation> {
    if resume.is_empty() || resume == "none" {
        return None;
    }
    Some(Hibernation {
        source: source.into(),
        resume: resume.into(),
        device: block_name(root, &path_of(resume)),
    })
}

/// `RESUME=auto`: the largest swap on a device, as initramfs-tools chooses it. In zram and in a file it looks for no image.
fn largest(source: &str, areas: &[SwapArea]) -> Option<Hibernation> {
    let devices = areas.iter().filter(|a| a.device.is_some() && a.zram_name().is_none());
    let area = devices.max_by_key(|a| a.size)?;
    Some(Hibernation { source: source.into(), resume: area.path.clone(), device: area.device.clone() })
}
