//! A simulated machine whose zram1 writes back like `writeback_store` (zram_drv.c): until the limit is used up, then
//! EIO.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eke_apply::testing::{Sys, simulated};
use eke_linux::Root;
use eke_linux::discard::Discard;
use eke_linux::source::Source;
use eke_testkit::fake_kernel::FakeKernel;

const DIR: &str = "sys/block/zram1";

pub struct WritesBack {
    machine: Arc<FakeKernel>,
    /// Number of pages that can be written back.
    pages: u64,
}

impl WritesBack {
    pub fn on(machine: Arc<FakeKernel>, pages: u64) -> Root {
        let dir = machine.dir().to_owned();
        simulated(dir, Arc::new(Self { machine, pages }))
    }

    fn number(&self, file: &str, nth: usize) -> u64 {
        let text = std::fs::read_to_string(self.machine.dir().join(DIR).join(file)).unwrap();
        text.split_whitespace().nth(nth).unwrap().parse().unwrap()
    }

    fn write_pages(&self) -> io::Result<()> {
        assert_eq!(self.number("writeback_limit_enable", 0), 1, "writeback without a limit");
        let (limit, before) = (self.number("writeback_limit", 0), self.number("bd_stat", 2));
        let pages = limit.min(self.pages - before);
        self.machine.put(&format!("{DIR}/bd_stat"), &format!("{0} 0 {0}\n", before + pages));
        self.machine.put(&format!("{DIR}/writeback_limit"), &format!("{}\n", limit - pages));
        if pages == limit { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl Source for WritesBack {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.machine.read(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.machine.list(path)
    }

    fn block_device(&self, path: &Path) -> Option<String> {
        self.machine.block_device(path)
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
    fn swapoff(&self, path: &Path) -> io::Result<()> {
        self.machine.swapoff(path)
    }
}
