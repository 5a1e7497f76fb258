//! A simulated machine whose zram1 writes back like `writeback_store` (zram_drv.c): page by page until the limit is
//! exactly 0, then EIO.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eke_apply::swapoff::Interrupt;
use eke_apply::testing::{Sys, simulated};
use eke_linux::Root;
use eke_linux::discard::Discard;
use eke_linux::source::Source;
use eke_model::units::PageSize;
use eke_testkit::fake_kernel::FakeKernel;

const DIR: &str = "sys/block/zram1";

pub struct WritesBack {
    machine: Arc<FakeKernel>,
    /// Number of units that can be written back.
    units: u64,
    page: PageSize,
}

impl WritesBack {
    pub fn on(machine: Arc<FakeKernel>, units: u64) -> Root {
        Self::with_pages(machine, units, PageSize::SMALLEST)
    }

    pub fn with_pages(machine: Arc<FakeKernel>, units: u64, page: PageSize) -> Root {
        let dir = machine.dir().to_owned();
        simulated(dir, Arc::new(Self { machine, units, page }))
    }

    fn number(&self, file: &str, nth: usize) -> u64 {
        let text = std::fs::read_to_string(self.machine.dir().join(DIR).join(file)).unwrap();
        text.split_whitespace().nth(nth).unwrap().parse().unwrap()
    }

    fn write_pages(&self) -> io::Result<()> {
        assert_eq!(self.number("writeback_limit_enable", 0), 1, "writeback without a limit");
        let (mut limit, mut written) = (self.number("writeback_limit", 0), self.number("bd_stat", 2));
        let page_units = self.page.bytes() / 4096;
        while limit > 0 && written + page_units <= self.units {
            limit = limit.wrapping_sub(page_units);
            written += page_units;
        }
        self.machine.put(&format!("{DIR}/bd_stat"), &format!("{written} 0 {written}\n"));
        self.machine.put(&format!("{DIR}/writeback_limit"), &format!("{limit}\n"));
        if limit == 0 { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl Source for WritesBack {
    /// A new device takes parameters, as since Linux 6.12.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let answer = self.machine.read(path)?;
        if path.ends_with("zram-control/hot_add") {
            let number = String::from_utf8_lossy(&answer);
            self.machine.put(&format!("sys/block/zram{}/algorithm_params", number.trim()), "");
        }
        Ok(answer)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.machine.list(path)
    }

    fn block_device(&self, path: &Path) -> Option<String> {
        self.machine.block_device(path)
    }

    fn page_size(&self) -> PageSize {
        self.page
    }

    fn sleep(&self, time: Duration) {
        self.machine.sleep(time);
    }
}

impl Sys for WritesBack {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if path.ends_with("zram1/writeback") { self.write_pages() } else { self.machine.write(path, bytes) }
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.machine.append(path, bytes)
    }
    fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.machine.replace(path, bytes, mode)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.machine.remove(path)
    }
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.machine.create_dir(path, mode)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.machine.remove_dir(path)
    }

    fn swapon(&self, path: &Path, priority: Option<i16>, discard: Option<Discard>) -> io::Result<()> {
        self.machine.swapon(path, priority, discard)
    }
    fn swapoff_until(&self, path: &Path, interrupt: &Interrupt) -> io::Result<()> {
        self.machine.swapoff_until(path, interrupt)
    }

    fn swapoff(&self, path: &Path) -> io::Result<()> {
        self.machine.swapoff(path)
    }
}
