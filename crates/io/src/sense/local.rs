//! A sensor in this process.

use std::time::Instant;

use eke_linux::Root;

use super::stat::Stat;
use super::{By, Refused, Sense, Windows, zpool};
use crate::figures::{Counted, Reading, Window};

/// A sensor, with what it read last.
pub struct Local {
    root: Root,
    sense: Box<dyn Sense>,
    before: Reading,
    at: Instant,
}

/// What is wanted of a sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// By whom.
    pub by: By,
    /// Never by BPF.
    pub no_bpf: bool,
}

impl Local {
    /// By BPF if that is possible, else from the kernel's averages, with the reason in each window.
    ///
    /// # Errors
    /// Neither can be read.
    pub fn start(root: &Root, wanted: Wanted) -> Result<Self, Refused> {
        let mut local = Self {
            root: root.clone(),
            sense: sense(root, wanted),
            before: Reading::default(),
            at: Instant::now(),
        };
        local.before = local.reading()?;
        local.at = Instant::now();
        Ok(local)
    }

    /// `bpf` or `stat`.
    pub fn name(&self) -> &'static str {
        self.sense.name()
    }

    fn reading(&mut self) -> Result<Reading, Refused> {
        let mut reading = self.sense.read()?;
        match zpool::read(self.root.exists("sys/module/zfs")) {
            None => {}
            Some(Ok(pools)) if pools.is_empty() => {}
            Some(Ok(pools)) => {
                reading.missing.push(zpool::NO_BYTES.to_owned());
                let pools = pools
                    .into_iter()
                    .map(|(name, classes)| (name, Counted { classes, ..Counted::default() }));
                reading.devices.extend(pools);
            }
            Some(Err(refused)) => reading.missing.push(refused.to_string()),
        }
        Ok(reading)
    }
}

impl Windows for Local {
    fn window(&mut self) -> Result<Window, Refused> {
        let now = self.reading()?;
        let seconds = self.at.elapsed().as_secs_f64();
        let window = Window::between(&self.before, &now, seconds, self.sense.name());
        (self.before, self.at) = (now, Instant::now());
        Ok(window)
    }
}

fn sense(root: &Root, wanted: Wanted) -> Box<dyn Sense> {
    let mut why = Vec::new();
    if wanted.no_bpf {
        why.push("BPF was not wanted".to_owned());
    } else {
        match by_bpf(root, wanted.by) {
            Ok(sense) => return sense,
            Err(refused) => why.push(refused.to_string()),
        }
    }
    if wanted.by != By::Nobody {
        why.push("who asks is told only by BPF".to_owned());
    }
    Box::new(Stat::new(root, why))
}

#[cfg(feature = "bpf")]
fn by_bpf(root: &Root, by: By) -> Result<Box<dyn Sense>, Refused> {
    if !root.exists("sys/kernel/btf/vmlinux") {
        let why =
            format!("there is no {} (CONFIG_DEBUG_INFO_BTF)", root.path("sys/kernel/btf/vmlinux").display());
        return Err(Refused::new("trace requests by BPF", why));
    }
    Ok(Box::new(super::bpf::Bpf::start(root, by)?))
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_root: &Root, _by: By) -> Result<Box<dyn Sense>, Refused> {
    Err(Refused::new(
        "trace requests by BPF",
        "this eke-io was built without it (its build needs clang, libelf's and zlib's headers)",
    ))
}
