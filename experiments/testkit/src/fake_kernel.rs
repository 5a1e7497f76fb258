//! A simulated machine in a directory: the parts of Linux that eke changes, with injected faults.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use eke_apply::swapoff::Interrupt;
use eke_apply::testing::{FilesOnly, OpenDevice, Sys, simulated};
use eke_linux::Root;
use eke_linux::discard::Discard;
use eke_linux::source::{Files, Source};
use eke_model::process::ProcessId;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::tree;

/// Injected faults. They count effects: writes, appends, `hot_add` reads, swapon, swapoff, and changes of files.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// The process dies after this many effects; later ones do not reach the machine.
    pub crash_after: Option<usize>,
    /// If the last effect is an append, only half of it is written.
    pub torn: bool,
    /// After the first number of appends, the file system is full for the second number: half of each is written, then
    /// ENOSPC.
    pub full: Option<(usize, usize)>,
    /// The end of a path, an errno, and how often it is returned.
    pub errors: Vec<(String, i32, usize)>,
}

#[derive(Debug, Default)]
struct State {
    faults: Faults,
    effects: usize,
    areas: BTreeMap<String, (u64, u64, i32)>,
    discards: BTreeMap<String, Option<Discard>>,
    detached: bool,
    holds_swapoffs: bool,
    sizes: BTreeMap<String, u64>,
    log: Vec<String>,
}

/// The machine. Dropping it removes its directory.
#[derive(Debug)]
pub struct FakeKernel {
    dir: TempDir,
    state: Mutex<State>,
}

const ALGORITHMS: [&str; 3] = ["lzo-rle", "lz4", "zstd"];
const CONTROL: &str = "sys/class/zram-control";
const CRASHED: &str = "the process is dead";

impl FakeKernel {
    /// A machine with 1000 MiB of RAM, one idle zram0, zswap off, swappiness 60.
    ///
    /// # Panics
    /// If no temporary directory can be created.
    pub fn new() -> Arc<Self> {
        let machine = Self { dir: tree::in_memory(), state: Mutex::default() };
        for (path, text) in [
            (
                "proc/meminfo",
                "MemTotal: 1024000 kB\nMemFree: 500000 kB\nMemAvailable: 600000 kB\nAnonPages: 200000 kB\nCached: 100000 kB\n",
            ),
            ("proc/vmstat", "pswpin 0\npswpout 0\n"),
            ("proc/stat", "cpu  10 0 10 100 0 0 0 0 0 0\n"),
            ("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n"),
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/vm/page-cluster", "3\n"),
            ("sys/module/zswap/parameters/enabled", "N\n"),
            ("dev/mapper/control", ""),
            ("sys/module/zswap/parameters/compressor", "lzo\n"),
            ("sys/module/zswap/parameters/max_pool_percent", "20\n"),
            ("sys/module/zswap/parameters/accept_threshold_percent", "90\n"),
        ] {
            tree::put(machine.dir(), path, text);
        }
        machine.make_control();
        machine.make_zram(0);
        machine.show_areas(&machine.state());
        Arc::new(machine)
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A root on it.
    pub fn root(self: &Arc<Self>) -> Root {
        simulated(self.dir(), Arc::clone(self))
    }

    /// Sets the faults and restarts the count of effects.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.state();
        state.faults = faults;
        state.effects = 0;
    }

    /// Adds an active swap area.
    pub fn add_area(&self, path: &str, size_kib: u64, used_kib: u64, priority: i32) {
        if let Some(name) = path.strip_prefix("/dev/").filter(|name| !name.starts_with("zram")) {
            tree::put(self.dir(), &format!("sys/class/block/{name}/partition"), "2\n");
        }
        let mut state = self.state();
        state.areas.insert(path.to_owned(), (size_kib, used_kib, priority));
        state.sizes.insert(path.to_owned(), size_kib);
        self.show_areas(&state);
    }

    /// Swaps an area off as another program would.
    pub fn remove_area(&self, path: &str) {
        let mut state = self.state();
        state.areas.remove(path);
        self.show_areas(&state);
    }

    /// Each swapoff that can be interrupted lasts from now on until it is, or until `false`.
    pub fn hold_swapoffs(&self, holds: bool) {
        self.state().holds_swapoffs = holds;
    }

    /// Makes `/proc/swaps` show paths of a deleted mount namespace: `/zram1`.
    pub fn detach_mounts(&self) {
        let mut state = self.state();
        state.detached = true;
        self.show_areas(&state);
    }

    /// Writes a file as another program would, without counting an effect.
    pub fn put(&self, path: &str, text: &str) {
        tree::put(self.dir(), path, text);
    }

    /// Makes zram a module that is not loaded, with this `modules.dep`.
    pub fn make_zram_loadable(&self, release: &str, modules_dep: &str) {
        let _ = fs::remove_dir_all(self.dir().join(CONTROL));
        let _ = fs::remove_dir_all(self.dir().join("sys/block/zram0"));
        let _ = fs::remove_file(self.dir().join("dev/zram0"));
        self.put("proc/sys/kernel/osrelease", release);
        self.put(&format!("lib/modules/{release}/modules.dep"), modules_dep);
    }

    /// The discard option of the area's last swapon.
    pub fn discard(&self, path: &str) -> Option<Discard> {
        self.state().discards.get(path).copied().flatten()
    }

    /// All files except eke's run directory.
    pub fn tree(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        tree::read(self.dir(), &["run"])
    }

    /// The effects so far in order, one per line.
    pub fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.dir()).unwrap_or(path).to_owned()
    }

    /// Counts an effect, or returns an injected error or the crash. `Ok(true)` for the last effect before the crash.
    fn effect(&self, what: &str, path: &Path) -> io::Result<bool> {
        let mut state = self.state();
        let relative = self.relative(path).to_string_lossy().into_owned();
        if let Some(error) = state.injected(&relative) {
            return Err(error);
        }
        if state.is_dead() {
            return Err(io::Error::other(CRASHED));
        }
        state.effects += 1;
        state.log.push(format!("{what} {relative}"));
        Ok(state.is_dead())
    }

    fn alive(&self) -> io::Result<()> {
        if self.state().is_dead() { Err(io::Error::other(CRASHED)) } else { Ok(()) }
    }

    fn make_control(&self) {
        for file in ["hot_add", "hot_remove"] {
            tree::put(self.dir(), &format!("{CONTROL}/{file}"), "");
        }
    }

    fn make_zram(&self, number: u32) {
        let at = format!("sys/block/zram{number}");
        for (file, text) in [
            ("comp_algorithm", "[lzo-rle] lz4 zstd\n"),
            ("disksize", "0\n"),
            ("reset", ""),
            ("mm_stat", "0 0 0 0 0 0 0 0 0\n"),
            ("recompress", ""),
            ("writeback", ""),
            ("idle", ""),
            ("compact", ""),
            ("backing_dev", "none\n"),
            ("recomp_algorithm", ""),
            ("writeback_limit", "0\n"),
            ("writeback_limit_enable", "0\n"),
            ("bd_stat", "0 0 0\n"),
        ] {
            tree::put(self.dir(), &format!("{at}/{file}"), text);
        }
        tree::put(self.dir(), &format!("dev/zram{number}"), "");
    }

    fn hot_add(&self) -> Vec<u8> {
        let free = (0..).find(|n| !self.dir().join(format!("sys/block/zram{n}")).exists()).unwrap_or(0);
        self.make_zram(free);
        format!("{free}\n").into_bytes()
    }

    fn hot_remove(&self, number: &str) -> io::Result<()> {
        if self.state().areas.contains_key(&format!("/dev/zram{number}")) {
            return Err(io::Error::from_raw_os_error(16));
        }
        fs::remove_file(self.dir().join(format!("dev/zram{number}")))?;
        fs::remove_dir_all(self.dir().join(format!("sys/block/zram{number}")))
    }

    fn set_attribute(&self, path: &Path, relative: &str, value: &str) -> io::Result<()> {
        let file = relative.rsplit('/').next().unwrap_or_default();
        match file {
            "hot_remove" => self.hot_remove(value.trim()),
            "reset" => self.reset(relative),
            "comp_algorithm" => store(path, &self.algorithm(relative, value)?),
            "disksize" if read_text(path).trim() != "0" => Err(io::Error::from_raw_os_error(16)),
            // BLKDEV_MIN_RQ
            "nr_requests" if value.trim().parse().is_ok_and(|requests: u64| requests < 4) => {
                store(path, "4\n")
            }
            "enabled" | "shrinker_enabled" => {
                store(path, if matches!(value, "1" | "Y") { "Y\n" } else { "N\n" })
            }
            _ => store(path, &format!("{}\n", value.trim())),
        }
    }

    fn algorithm(&self, relative: &str, value: &str) -> io::Result<String> {
        let device = relative.trim_end_matches("comp_algorithm");
        if read_text(&self.dir().join(device).join("disksize")).trim() != "0" {
            return Err(io::Error::from_raw_os_error(16));
        }
        if !ALGORITHMS.contains(&value.trim()) {
            return Err(io::Error::from_raw_os_error(22));
        }
        let shown = ALGORITHMS.map(|a| if a == value.trim() { format!("[{a}]") } else { a.to_owned() });
        Ok(shown.join(" ") + "\n")
    }

    fn reset(&self, relative: &str) -> io::Result<()> {
        let name = relative.split('/').nth(2).unwrap_or_default();
        if self.state().areas.contains_key(&format!("/dev/{name}")) {
            return Err(io::Error::from_raw_os_error(16));
        }
        self.make_zram(name.trim_start_matches("zram").parse().unwrap_or(0));
        Ok(())
    }

    fn show_areas(&self, state: &State) {
        let mut text = String::from("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
        for (path, (size, used, priority)) in &state.areas {
            let path = if state.detached { path.trim_start_matches("/dev") } else { path };
            text += &format!("{path}\tpartition\t{size}\t{used}\t{priority}\n");
        }
        tree::put(self.dir(), "proc/swaps", &text);
    }
}

impl State {
    fn is_dead(&self) -> bool {
        self.faults.crash_after.is_some_and(|n| self.effects >= n)
    }

    fn is_full(&mut self) -> bool {
        match &mut self.faults.full {
            Some((after @ 1.., _)) => *after -= 1,
            Some((0, times @ 1..)) => {
                *times -= 1;
                return true;
            }
            _ => {}
        }
        false
    }

    fn injected(&mut self, relative: &str) -> Option<io::Error> {
        let fault = self
            .faults
            .errors
            .iter_mut()
            .find(|(end, _, times)| *times > 0 && relative.ends_with(end.as_str()))?;
        fault.2 -= 1;
        Some(io::Error::from_raw_os_error(fault.1))
    }
}

fn read_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "the fake's own file")]
fn store(path: &Path, text: &str) -> io::Result<()> {
    fs::metadata(path)?;
    fs::write(path, text)
}

impl Source for FakeKernel {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.ends_with("zram-control/hot_add") {
            self.effect("read", path)?;
            return Ok(self.hot_add());
        }
        self.alive()?;
        Files.read(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.alive()?;
        Files.list(path)
    }

    fn block_device(&self, path: &Path) -> Option<String> {
        let name = self.relative(path).strip_prefix("dev").ok()?.to_str()?.to_owned();
        let dirs = ["sys/block", "sys/class/block"].map(|dir| self.dir().join(dir).join(&name));
        dirs.iter().any(|dir| dir.exists()).then_some(name)
    }

    fn sleep(&self, _: Duration) {}
}

impl Sys for FakeKernel {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let relative = self.relative(path).to_string_lossy().into_owned();
        let value = String::from_utf8_lossy(bytes).into_owned();
        let shown = if relative.starts_with("dev/") { "(a page)" } else { value.as_str() };
        self.effect(&format!("write {shown} to"), path)?;
        fs::metadata(path)?;
        if relative.starts_with("dev/") {
            return FilesOnly.write(path, bytes);
        }
        self.set_attribute(path, &relative, &value)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let last = self.effect("append to", path)?;
        let full = self.state().is_full();
        let half = full || last && self.state().faults.torn;
        FilesOnly.append(path, if half { &bytes[..bytes.len() / 2] } else { bytes })?;
        if full { Err(io::Error::from_raw_os_error(28)) } else { Ok(()) }
    }

    fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.effect("replace", path)?;
        FilesOnly.replace(path, bytes, mode)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if !path.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.effect("remove", path)?;
        FilesOnly.remove(path)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        if path.exists() {
            return Ok(());
        }
        self.effect("make", path)?;
        FilesOnly.create_dir(path, mode)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.effect("remove", path)?;
        FilesOnly.remove_dir(path)
    }

    /// Not kept: the file system below may have no such attributes.
    fn set_attribute_of(&self, path: &Path, name: &str, value: &str) -> io::Result<()> {
        self.effect(&format!("set {name} to {value} of"), path).map(drop)
    }

    fn signal(&self, process: ProcessId, signal: Signal) -> io::Result<()> {
        let path = self.dir().join(format!("proc/{}", process.pid));
        if !path.exists() {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
        }
        self.effect(&format!("send {signal:?} to"), &path)?;
        if signal == Signal::KILL { fs::remove_dir_all(&path) } else { Ok(()) }
    }

    fn swapon(&self, path: &Path, priority: Option<i16>, discard: Option<Discard>) -> io::Result<()> {
        self.effect("swap on", path)?;
        let name = format!("/{}", self.relative(path).display());
        let device = name.trim_start_matches("/dev/");
        let disksize: u64 =
            read_text(&self.dir().join(format!("sys/block/{device}/disksize"))).trim().parse().unwrap_or(0);
        let mut state = self.state();
        let size_kib = state.sizes.get(&name).copied().unwrap_or(disksize / 1024);
        state.discards.insert(name.clone(), discard);
        state.areas.insert(name, (size_kib, 0, priority.map_or(-2, i32::from)));
        self.show_areas(&state);
        Ok(())
    }

    fn swapoff(&self, path: &Path) -> io::Result<()> {
        self.effect("swap off", path)?;
        let name = format!("/{}", self.relative(path).display());
        let mut state = self.state();
        let removed = state.areas.remove(&name);
        self.show_areas(&state);
        removed.map(drop).ok_or_else(|| io::Error::from_raw_os_error(22))
    }

    fn swapoff_until(&self, path: &Path, interrupt: &Interrupt) -> io::Result<()> {
        while self.state().holds_swapoffs && !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if interrupt.is_set() { Err(io::ErrorKind::Interrupted.into()) } else { self.swapoff(path) }
    }

    fn load_module(&self, name: &str, _: &str) -> io::Result<()> {
        let at = self.dir().join(format!("sys/module/{}", name.replace('-', "_")));
        self.effect("load", &at)?;
        if name == "zram" {
            self.make_control();
        }
        FilesOnly.create_dir(&at, 0o755)
    }

    fn unload_module(&self, name: &str) -> io::Result<()> {
        let at = self.dir().join(format!("sys/module/{}", name.replace('-', "_")));
        self.effect("unload", &at)?;
        // Without `make_zram_loadable` zram is built in.
        if name == "zram" && self.dir().join("lib/modules").exists() {
            fs::remove_dir_all(self.dir().join(CONTROL))?;
        }
        FilesOnly.remove_dir(&at)
    }

    fn unnamed_file(&self, dir: &Path, _: u64) -> io::Result<fs::File> {
        self.effect("make a file in", dir)?;
        tempfile::tempfile()
    }

    fn loop_device(&self, file: &fs::File) -> io::Result<OpenDevice> {
        let path = self.dir().join("dev/loop7");
        self.effect("attach", &path)?;
        Ok(OpenDevice { path, file: file.try_clone()? })
    }

    /// Between both effects the mapping would outlive a process that dies.
    fn encrypted_device(&self, name: &str, below: &Path, _: Range<u64>) -> io::Result<OpenDevice> {
        let mapping = self.dir().join("dev/mapper").join(name);
        self.effect(&format!("map {} to", self.relative(below).display()), &mapping)?;
        tree::put(self.dir(), &format!("dev/mapper/{name}"), "");
        self.effect("resume", &mapping)?;
        fs::remove_file(&mapping)?;
        Ok(OpenDevice { path: self.dir().join("dev/dm-3"), file: tempfile::tempfile()? })
    }

    fn remove_mapping(&self, name: &str) -> io::Result<()> {
        let mapping = self.dir().join("dev/mapper").join(name);
        self.effect("unmap", &mapping)?;
        match fs::remove_file(&mapping) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}
