//! The kept description of the machines. Pure.

use anyhow::{Context, ensure};
use serde::Deserialize;

/// One machine of `machines.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name, as in `FIELD=NAME`.
    pub name: String,
    /// What it is for, for the table.
    pub purpose: String,
    /// The image that it starts with, by the name of another machine; its own if absent.
    #[serde(default)]
    pub image: Option<String>,
    /// Debian's suite.
    pub suite: String,
    /// Debian's architecture: amd64, arm64 or i386.
    pub arch: String,
    /// The kernel's package.
    pub kernel: String,
    /// systemd, sysvinit or openrc.
    pub init: String,
    /// RAM in MiB.
    pub memory_mib: u32,
    /// The emulated processor.
    pub cpu: String,
    /// Other installed packages.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Packages in the image's cache, not installed.
    #[serde(default)]
    pub offered: Vec<String>,
    /// The size of a swap disk, `/dev/vdb`.
    #[serde(default)]
    pub swap_mib: Option<u32>,
    /// More arguments of the kernel.
    #[serde(default)]
    pub kernel_args: Vec<String>,
    /// Limits of the disk.
    pub disk: Disk,
    /// The list of steps, by name.
    pub steps: String,
    /// Variables of the steps: `NAME=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// All time limits are multiplied by this: some processors are emulated more slowly.
    #[serde(default = "once")]
    pub slowness: u32,
}

const fn once() -> u32 {
    1
}

/// A disk's limits, as of a kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disk {
    /// None
    Fast,
    /// Rotating: 120 requests a second, 60 MB/s
    Rotating,
    /// An SD card: 1500 requests a second, 20 MB/s
    SdCard,
}

impl Machine {
    /// The name of its image.
    #[must_use]
    pub fn image_name(&self) -> &str {
        self.image.as_deref().unwrap_or(&self.name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    machine: Vec<Machine>,
}

/// The machines of a description.
///
/// # Errors
/// A wrong key or value with its line; two machines of one name; an image that no machine makes.
pub fn parse(text: &str) -> anyhow::Result<Vec<Machine>> {
    let machines = toml::from_str::<File>(text).context("machines.toml")?.machine;
    for (index, machine) in machines.iter().enumerate() {
        let before = machines.get(..index).unwrap_or_default();
        ensure!(
            before.iter().all(|m| m.name != machine.name),
            "machines.toml: two machines {}",
            machine.name
        );
        let made = machines.iter().any(|m| m.name == machine.image_name() && m.image.is_none());
        ensure!(made, "machines.toml: {}: no machine makes the image {}", machine.name, machine.image_name());
        let known = matches!(machine.arch.as_str(), "amd64" | "arm64" | "i386");
        ensure!(known, "machines.toml: {}: the architecture {} is unknown", machine.name, machine.arch);
        ensure!((1..=20).contains(&machine.slowness), "machines.toml: {}: slowness is 1 to 20", machine.name);
    }
    Ok(machines)
}

/// The machines of a list such as `debian13,arm64-16k`; all if it is empty.
///
/// # Errors
/// A name that no machine has.
pub fn select(machines: &[Machine], names: &str) -> anyhow::Result<Vec<Machine>> {
    let names: Vec<&str> = names.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Ok(machines.to_vec());
    }
    let find = |name: &str| {
        let known = || machines.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = machines.iter().find(|m| m.name == name).cloned();
        found.with_context(|| format!("no machine is called {name}; there are {}", known()))
    };
    names.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::{Disk, parse, select};

    const ONE: &str = "[[machine]]\nname = \"a\"\npurpose = \"p\"\nsuite = \"trixie\"\narch = \"amd64\"\nkernel = \"linux-image-amd64\"\n\
                       init = \"systemd\"\nmemory_mib = 512\ncpu = \"max\"\ndisk = \"sd-card\"\nsteps = \"all\"\n";

    #[test]
    fn machines_are_read_and_found_by_name() {
        let text = format!("{ONE}{}image = \"a\"\n", ONE.replace("\"a\"", "\"b\""));
        let machines = parse(&text).unwrap();
        assert_eq!((machines[0].disk, machines[1].image_name()), (Disk::SdCard, "a"));
        assert_eq!(
            (machines[0].slowness, parse(&format!("{ONE}slowness = 4\n")).unwrap()[0].slowness),
            (1, 4)
        );
        assert_eq!(select(&machines, "b,a").unwrap()[0].name, "b");
        assert_eq!(select(&machines, "").unwrap().len(), 2);
        assert!(select(&machines, "c").unwrap_err().to_string().contains("there are a, b"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(parse(&format!("{ONE}{ONE}")).unwrap_err().to_string().contains("two machines a"));
        assert!(parse(&format!("{ONE}image = \"c\"\n")).unwrap_err().to_string().contains("the image c"));
        assert!(parse(&format!("{ONE}speed = 3\n")).is_err());
        assert!(parse(&format!("{ONE}slowness = 0\n")).unwrap_err().to_string().contains("1 to 20"));
        assert!(parse(&ONE.replace("amd64\"\nkernel", "vax\"\nkernel")).is_err());
    }

    #[test]
    fn the_kept_description_is_valid() {
        let machines = parse(include_str!("../machines.toml")).unwrap();
        let steps = crate::steps::parse(include_str!("../steps.toml")).unwrap();
        for machine in &machines {
            assert!(
                !crate::steps::of(&steps, &machine.steps).is_empty(),
                "{}: {}",
                machine.name,
                machine.steps
            );
        }
    }
}
