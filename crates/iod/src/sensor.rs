//! Measures by BPF if that is possible, else from the kernel's averages.

use eke_io::sensor::local::LocalSensor;
use eke_io::sensor::{Attribution, Refused, Sensor, SensorOptions};
use eke_linux::Root;

/// Starts the best sensor that this machine permits. Each window of averages has the reason why BPF is not used.
///
/// # Errors
/// The kernel's averages cannot be read either.
pub fn start(root: &Root, options: SensorOptions) -> Result<LocalSensor, Refused> {
    if options.no_bpf {
        return LocalSensor::averages(root, options, "BPF is switched off".to_owned());
    }
    match by_bpf(root, options.attribution) {
        Ok(sensor) => LocalSensor::start(root, options, sensor),
        Err(refused) => LocalSensor::averages(root, options, refused.to_string()),
    }
}

/// How requests are measured on this machine, in words.
pub fn source(root: &Root) -> String {
    match by_bpf(root, Attribution::None) {
        Ok(_) => "BPF".to_owned(),
        Err(refused) => format!("the kernel's averages; not BPF: {refused}"),
    }
}

#[cfg(feature = "bpf")]
fn by_bpf(root: &Root, attribution: Attribution) -> Result<Box<dyn Sensor>, Refused> {
    if !root.exists("sys/kernel/btf/vmlinux") {
        let why =
            format!("there is no {} (CONFIG_DEBUG_INFO_BTF)", root.path("sys/kernel/btf/vmlinux").display());
        return Err(Refused::new("trace requests by BPF", why));
    }
    Ok(Box::new(crate::bpf::Bpf::start(root, attribution)?))
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_root: &Root, _attribution: Attribution) -> Result<Box<dyn Sensor>, Refused> {
    Err(Refused::new(
        "trace requests by BPF",
        "this eke-io was built without it, as in the static package and that for i386",
    ))
}
