//! Where the machine hibernates to.

use eke_linux::Root;

use super::disks::block_name;
use super::parse;
use crate::facts::Hibernation;

/// What names the place, the strongest first: the running kernel's own setting, its command line, Debian's
/// initramfs-tools. `None` if nothing does.
pub(crate) fn place(root: &Root) -> Option<Hibernation> {
    from_kernel(root)
        .or_else(|| {
            let text = root.read("proc/cmdline").ok()?;
            named(root, "proc/cmdline", parse::cmdline_value(&text, "resume")?)
        })
        .or_else(|| {
            let file = "etc/initramfs-tools/conf.d/resume";
            let text = root.read(file).ok()?;
            named(root, file, parse::shell_value(&text, "RESUME")?)
        })
}

/// `/sys/power/resume`: major:minor, 0:0 for none.
fn from_kernel(root: &Root) -> Option<Hibernation> {
    let text = root.read("sys/power/resume").ok()?;
    let resume = text.trim();
    if resume.is_empty() || resume == "0:0" {
        return None;
    }
    let link = std::fs::read_link(root.path(format!("sys/dev/block/{resume}"))).ok();
    let device = link.and_then(|l| Some(l.file_name()?.to_string_lossy().into_owned()));
    Some(Hibernation { source: "sys/power/resume".into(), resume: resume.into(), device })
}

fn named(root: &Root, source: &str, resume: &str) -> Option<Hibernation> {
    if resume.is_empty() || resume == "none" {
        return None;
    }
    Some(Hibernation {
        source: source.into(),
        resume: resume.into(),
        device: block_name(root, &device_path(resume)),
    })
}

/// `UUID=x` and its like as the link that udev makes for it.
fn device_path(resume: &str) -> String {
    let by = |kind: &str, value: &str| format!("/dev/disk/by-{kind}/{}", value.trim_matches('"'));
    match resume.split_once('=') {
        Some(("UUID", v)) => by("uuid", v),
        Some(("PARTUUID", v)) => by("partuuid", v),
        Some(("LABEL", v)) => by("label", v),
        Some(("PARTLABEL", v)) => by("partlabel", v),
        _ => resume.to_owned(),
    }
}
