//! A trigger of the kernel that wakes the agent before its tick when memory is short.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use eke_linux::Root;
use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

const FILE: &str = "proc/pressure/memory";
/// Some task waited for memory for 150 ms within 2 s. Without CAP_SYS_RESOURCE the kernel accepts only windows in
/// multiples of 2 s (Linux 6.5; Documentation/accounting/psi.rst). It sends at most one event per window.
const THRESHOLD: &[u8] = b"some 150000 2000000\0";

/// A trigger that lasts until it is dropped; an event makes it readable with `POLLPRI`.
#[derive(Debug)]
pub struct Trigger(OwnedFd);

impl AsFd for Trigger {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets the trigger (Linux 5.2).
///
/// # Errors
/// Why there is no trigger, as a clause.
pub fn watch(root: &Root) -> Result<Trigger, String> {
    let path = root.path(FILE);
    let open = OpenOptions::new().read(true).write(true).open(&path);
    let mut file = open.map_err(|e| {
        format!(
            "{} cannot be opened: {e} (the kernel lacks CONFIG_PSI or was started without psi=1)",
            path.display()
        )
    })?;
    if !fstatfs(&file).is_ok_and(|fs| fs.f_type == PROC_SUPER_MAGIC) {
        return Err(format!("{} is not a kernel file", path.display()));
    }
    file.write_all(THRESHOLD).map_err(|e| format!("{} takes no trigger: {e}", path.display()))?;
    Ok(Trigger(file.into()))
}

#[cfg(test)]
mod tests {
    use eke_testkit::real::{lacking, skip};

    use super::*;

    #[test]
    fn the_real_kernel_takes_the_trigger() {
        match lacking(&["/proc/pressure/memory"]) {
            Some(why) => skip("the_real_kernel_takes_the_trigger", &why),
            None => drop(watch(&Root::host()).unwrap()),
        }
    }

    #[test]
    fn only_a_kernel_file_is_written_to() {
        let machine = eke_testkit::fake_kernel::FakeKernel::new();
        assert!(watch(&machine.root()).unwrap_err().contains("cannot be opened"));
        machine.put(FILE, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        assert!(watch(&machine.root()).unwrap_err().contains("is not a kernel file"));
        assert!(machine.root().read(FILE).unwrap().starts_with("some avg10"));
    }
}
