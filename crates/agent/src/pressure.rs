//! The kernel's word that memory is short, before the next tick.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use eke_linux::Root;
use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

const FILE: &str = "proc/pressure/memory";
/// Some task waited for memory for 150 ms of 2 s. A window in multiples of 2 s is what the kernel grants without
/// CAP_SYS_RESOURCE, too (Linux 6.5; Documentation/accounting/psi.rst). At most one event comes a window.
const THRESHOLD: &[u8] = b"some 150000 2000000\0";

/// A trigger, for as long as it is held; readable with `POLLPRI`.
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
/// Why there is none, as a part of a sentence.
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
        return Err(format!("{} is not the kernel's", path.display()));
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
    fn a_file_that_is_not_the_kernels_is_not_written_to() {
        let machine = eke_testkit::fake_kernel::FakeKernel::new();
        assert!(watch(&machine.root()).unwrap_err().contains("cannot be opened"));
        machine.put(FILE, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        assert!(watch(&machine.root()).unwrap_err().contains("is not the kernel's"));
        assert!(machine.root().read(FILE).unwrap().starts_with("some avg10"));
    }
}
