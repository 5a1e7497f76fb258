//! The machine's part of a row.
//!
//! `eke_linux::read::sample` opens, reads and closes every file and lists `/sys/block`: fine for a tick of seconds. Here
//! the files stay open; the text is decoded by the same parsers (figures in `docs/recording.md`).

use eke_linux::Error as KernelError;
use eke_linux::{Root, areas, parse};
use eke_model::model::Model;
use eke_model::sample::{Sample, SwapArea, ZramStat};

use crate::error::Result;
use crate::hot_file::HotFile;
use crate::row::Row;

/// The open files.
#[derive(Debug)]
pub struct Sampler {
    root: Root,
    meminfo: HotFile,
    vmstat: HotFile,
    stat: Option<HotFile>,
    swaps: Option<HotFile>,
    memory_pressure: Option<HotFile>,
    io_pressure: Option<HotFile>,
    zram: Vec<(String, HotFile)>,
    ms_per_tick: u64,
}

impl Sampler {
    /// Opens what there is.
    ///
    /// # Errors
    /// Only for `/proc/meminfo` and `/proc/vmstat`; what else a kernel lacks is absent from the rows.
    pub fn open(root: &Root) -> Result<Self> {
        let optional = |path: &str| HotFile::open(&root.path(path)).ok();
        let needed = |path: &str| {
            let path = root.path(path);
            HotFile::open(&path).map_err(|e| KernelError::io("read", &path, e))
        };
        Ok(Self {
            root: root.clone(),
            meminfo: needed("proc/meminfo")?,
            vmstat: needed("proc/vmstat")?,
            stat: optional("proc/stat"),
            swaps: optional("proc/swaps"),
            memory_pressure: optional("proc/pressure/memory"),
            io_pressure: optional("proc/pressure/io"),
            zram: Vec::new(),
            ms_per_tick: 1000 / rustix::param::clock_ticks_per_second().max(1),
        })
    }

    /// A row of this instant, counters since boot.
    ///
    /// # Errors
    /// Only for `/proc/meminfo` and `/proc/vmstat`.
    pub fn read(&mut self, time_ms: u64) -> Result<Row> {
        let mut sample = Sample {
            memory: parse::meminfo::parse(&needed(&mut self.meminfo)?),
            vm: parse::vmstat::parse(&needed(&mut self.vmstat)?),
            swaps: self.swaps(),
            ..Sample::default()
        };
        sample.zram = self.zram_stats(&sample.swaps);
        let mut row = memory_columns(&sample);
        row.time_ms = time_ms;
        self.add_pressure(&mut row);
        self.add_cpu(&mut row);
        Ok(row)
    }

    fn swaps(&mut self) -> Vec<SwapArea> {
        let areas = maybe(&mut self.swaps).map(|text| parse::swaps::parse(&text)).unwrap_or_default();
        areas::identified(&self.root, areas)
    }

    fn zram_stats(&mut self, swaps: &[SwapArea]) -> Vec<ZramStat> {
        let names: Vec<&str> = swaps.iter().filter_map(SwapArea::zram_name).collect();
        if !names.iter().eq(self.zram.iter().map(|(name, _)| name)) {
            self.zram = names.iter().filter_map(|name| open_zram(&self.root, name)).collect();
        }
        let stat = |(name, file): &mut (String, HotFile)| {
            file.start().ok().map(|text| parse::zram::mm_stat(name, &text))
        };
        self.zram.iter_mut().filter_map(stat).collect()
    }

    fn add_pressure(&mut self, row: &mut Row) {
        if let Some(p) = maybe(&mut self.memory_pressure).and_then(|t| parse::pressure::parse(&t)) {
            (row.memory_some_us, row.memory_full_us) = (Some(p.some_total_us), Some(p.full_total_us));
        }
        if let Some(p) = maybe(&mut self.io_pressure).and_then(|t| parse::pressure::parse(&t)) {
            (row.io_some_us, row.io_full_us) = (Some(p.some_total_us), Some(p.full_total_us));
        }
    }

    fn add_cpu(&mut self, row: &mut Row) {
        let Some(text) = self.stat.as_mut().and_then(|f| f.start().ok()) else { return };
        let (total, idle) = parse::stat::machine(&text);
        row.cpu_total_ms = Some(total * self.ms_per_tick);
        row.cpu_busy_ms = Some(total.saturating_sub(idle) * self.ms_per_tick);
    }
}

fn open_zram(root: &Root, name: &str) -> Option<(String, HotFile)> {
    let file = HotFile::open_short(&root.path(format!("sys/block/{name}/mm_stat"))).ok()?;
    Some((name.to_owned(), file))
}

fn needed(file: &mut HotFile) -> Result<std::borrow::Cow<'_, str>> {
    let path = file.path().to_owned();
    file.text().map_err(|e| KernelError::io("read", &path, e).into())
}

fn maybe(file: &mut Option<HotFile>) -> Option<std::borrow::Cow<'_, str>> {
    file.as_mut()?.text().ok()
}

fn memory_columns(sample: &Sample) -> Row {
    let memory = &sample.memory;
    let model = Model::new(sample, None);
    Row {
        free_bytes: Some(memory.free.0),
        available_bytes: Some(memory.available.0),
        anonymous_bytes: Some(memory.anonymous.0),
        file_cache_bytes: Some(memory.file_cache.0),
        swapped_bytes: Some(memory.swap_total.saturating_sub(memory.swap_free).0),
        held_bytes: Some(model.held.0),
        pool_bytes: Some(model.pool.0),
        pages_in: Some(sample.vm.pswpin.saturating_add(sample.vm.zswpin)),
        pages_out: Some(sample.vm.pswpout.saturating_add(sample.vm.zswpout)),
        major_faults: Some(sample.vm.pgmajfault),
        oom_kills: Some(sample.vm.oom_kill),
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_testkit::tree::put;

    #[test]
    fn a_row_has_what_the_files_say_and_follows_a_new_device() {
        let dir = tempfile::tempdir().unwrap();
        put(
            dir.path(),
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemFree: 100 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n",
        );
        put(dir.path(), "proc/vmstat", "pswpin 3\nzswpin 4\npgmajfault 9\n");
        put(dir.path(), "proc/stat", "cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 1\n");
        put(dir.path(), "proc/swaps", "Filename\n");
        put(dir.path(), "sys/block/zram0/mm_stat", "4096 100 8192 0 0 1 0 0");
        let mut sampler = Sampler::open(&Root::at(dir.path())).unwrap();
        let row = sampler.read(7).unwrap();
        assert_eq!((row.time_ms, row.free_bytes, row.swapped_bytes), (7, Some(102_400), Some(30_720)));
        assert_eq!((row.pages_in, row.major_faults, row.pool_bytes), (Some(7), Some(9), Some(0)));
        assert_eq!((row.cpu_total_ms, row.cpu_busy_ms, row.memory_some_us), (Some(1200), Some(200), None));
        put(dir.path(), "proc/swaps", "Filename\n/dev/zram0 partition 100 0 5\n");
        let row = sampler.read(8).unwrap();
        assert_eq!((row.held_bytes, row.pool_bytes), (Some(4096), Some(8192)));
    }

    #[test]
    fn without_meminfo_it_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let error = Sampler::open(&Root::at(dir.path())).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains("proc/meminfo"), "{error}");
    }
}
