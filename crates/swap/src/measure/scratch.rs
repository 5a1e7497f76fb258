//! zram devices for the time of a measurement.

use eke_apply::zram;
use eke_linux::Root;
use eke_model::step::ZramSpec;

use crate::error::{Error, Result};

/// Makes scratch devices and removes them. The production implementation writes each to the journal first, so that `eke down` removes the devices of a
/// killed measurement.
pub trait Scratch {
    /// Makes a device by `spec`, without swap on it, and returns its name (`zram1`).
    ///
    /// # Errors
    /// The kernel's refusal; no device is left then.
    fn add(&mut self, spec: &ZramSpec) -> eke_linux::error::Result<String>;

    /// Resets and removes the device.
    ///
    /// # Errors
    /// The kernel's refusal; the device may still exist then.
    fn remove(&mut self, name: &str) -> eke_linux::error::Result<()>;
}

/// Devices without a journal, for trials and tests alone: a kill leaves them.
#[derive(Debug)]
pub struct Unjournaled {
    root: Root,
}

impl Unjournaled {
    /// Makes devices on this machine.
    pub fn new(root: &Root) -> Self {
        Self { root: root.clone() }
    }
}

impl Scratch for Unjournaled {
    fn add(&mut self, spec: &ZramSpec) -> eke_linux::error::Result<String> {
        let name = zram::hot_add(&self.root)?;
        if let Err(why) = zram::configure(&self.root, &name, spec) {
            zram::remove(&self.root, &name)?;
            return Err(why);
        }
        Ok(name)
    }

    fn remove(&mut self, name: &str) -> eke_linux::error::Result<()> {
        zram::remove(&self.root, name)
    }
}

/// Refuses every device, for a measurement that must not touch the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoScratch;

impl Scratch for NoScratch {
    fn add(&mut self, _: &ZramSpec) -> eke_linux::error::Result<String> {
        Err(eke_linux::Error::Refused("this measurement makes no scratch device".into()))
    }

    fn remove(&mut self, _: &str) -> eke_linux::error::Result<()> {
        Ok(())
    }
}

/// A scratch device. Drop removes it, on every path.
pub(crate) struct Device<'a> {
    scratch: &'a mut dyn Scratch,
    /// The device, after a `zram0` that had to be made to skip it.
    names: Vec<String>,
}

impl<'a> Device<'a> {
    /// Makes a device that is never `zram0`: programs such as zram-generator use that name. If the kernel returns it, it is kept and a second one is
    /// made.
    pub(crate) fn add(scratch: &'a mut dyn Scratch, spec: &ZramSpec) -> Result<Self> {
        let mut device = Self { scratch, names: Vec::new() };
        for _ in 0..2 {
            let name = device.scratch.add(spec)?;
            device.names.push(name);
            if device.name() != "zram0" {
                break;
            }
        }
        Ok(device)
    }

    /// `zram1`.
    pub(crate) fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Removes it and reports an error, which drop would not.
    ///
    /// # Errors
    /// The device could not be removed.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.remove_all()
    }

    fn remove_all(&mut self) -> Result<()> {
        let mut failure = None;
        while let Some(device) = self.names.pop() {
            if let Err(source) = self.scratch.remove(&device) {
                failure = Some(Error::NotRemoved { device, source });
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Drop for Device<'_> {
    fn drop(&mut self) {
        let _ = self.remove_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the given names in order; an empty one is a refusal.
    struct Names {
        next: Vec<&'static str>,
        removed: Vec<String>,
    }

    impl Scratch for Names {
        fn add(&mut self, _: &ZramSpec) -> eke_linux::error::Result<String> {
            match self.next.remove(0) {
                "" => Err(eke_linux::Error::Refused("no".into())),
                name => Ok(name.into()),
            }
        }

        fn remove(&mut self, name: &str) -> eke_linux::error::Result<()> {
            self.removed.push(name.into());
            Ok(())
        }
    }

    fn spec() -> ZramSpec {
        ZramSpec::new("lz4", eke_model::units::Bytes::mib(1))
    }

    #[test]
    fn zram0_is_kept_and_another_is_used() {
        let mut names = Names { next: vec!["zram0", "zram1"], removed: vec![] };
        assert_eq!(Device::add(&mut names, &spec()).unwrap().name(), "zram1");
        assert_eq!(names.removed, ["zram1", "zram0"]);
    }

    #[test]
    fn a_refusal_in_the_middle_leaves_nothing() {
        let mut names = Names { next: vec!["zram0", ""], removed: vec![] };
        assert!(Device::add(&mut names, &spec()).is_err());
        assert_eq!(names.removed, ["zram0"]);
    }
}
