//! The sampler: reads a [`Sample`] from the machine, for the agent, `eke status` and recordings.
//!
//! On the running machine each file stays open, which makes a sample cheap enough for recordings (`docs/recording.md`
//! has the cost). Below any other root the files may be replaced, so each sample opens them.

use std::borrow::Cow;

use eke_model::sample::{CpuTicks, Pressure, Sample, SwapArea, ZramStat};

use crate::areas;
use crate::error::{Error, Result};
use crate::hot_file::HotFile;
use crate::parse::{self, arcstats};
use crate::read;
use crate::root::Root;

/// A kernel file that is read repeatedly.
#[derive(Debug)]
struct Text {
    path: String,
    open: Option<HotFile>,
}

impl Text {
    fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), open: None }
    }

    fn read(&mut self, root: &Root) -> Result<Cow<'_, str>> {
        if !root.is_host() {
            return root.read(&self.path).map(Cow::Owned);
        }
        let path = root.path(&self.path);
        let answer = |e| Error::io("read", &path, e);
        if self.open.is_none() {
            self.open = Some(HotFile::open(&path).map_err(answer)?);
        }
        match &mut self.open {
            Some(file) => file.text().map_err(answer),
            None => Ok(Cow::Borrowed("")),
        }
    }

    fn if_there(&mut self, root: &Root) -> Option<Cow<'_, str>> {
        self.read(root).ok()
    }
}

/// Reads samples.
#[derive(Debug)]
pub struct Sampler {
    root: Root,
    meminfo: Text,
    vmstat: Text,
    stat: Text,
    swaps: Text,
    pressure: [Text; 3],
    /// Missing without ZFS.
    arcstats: Text,
    /// `mm_stat` of each swap device on zram, by the device's name.
    zram: Vec<(String, Text)>,
    /// The kernel's reclaim threads.
    kswapd: Vec<Text>,
}

impl Sampler {
    /// A sampler that has only found the reclaim threads.
    pub fn new(root: &Root) -> Self {
        let kswapd = read::kswapd_pids(root).into_iter().map(|pid| Text::new(format!("proc/{pid}/stat")));
        Self {
            root: root.clone(),
            meminfo: Text::new("proc/meminfo"),
            vmstat: Text::new("proc/vmstat"),
            stat: Text::new("proc/stat"),
            swaps: Text::new("proc/swaps"),
            pressure: ["memory", "io", "cpu"].map(|of| Text::new(format!("proc/pressure/{of}"))),
            arcstats: Text::new("proc/spl/kstat/zfs/arcstats"),
            zram: Vec::new(),
            kswapd: kswapd.collect(),
        }
    }

    /// Reads all counters; `time_ms` is the caller's clock.
    ///
    /// # Errors
    /// If `/proc/meminfo` or `/proc/vmstat` cannot be read, or the zram devices cannot be listed. Counters that the
    /// kernel lacks are absent from the sample.
    pub fn full(&mut self, time_ms: u64) -> Result<Sample> {
        let mut sample = self.without_zram(time_ms)?;
        sample.zram = read::zram_stats(&self.root)?;
        Ok(sample)
    }

    /// Reads a subset, for many samples a second: without size and algorithm of zram devices, and without devices that
    /// are not swap.
    ///
    /// # Errors
    /// If `/proc/meminfo` or `/proc/vmstat` cannot be read.
    pub fn brief(&mut self, time_ms: u64) -> Result<Sample> {
        let mut sample = self.without_zram(time_ms)?;
        sample.zram = self.held_by_zram(&sample.swaps);
        Ok(sample)
    }

    fn without_zram(&mut self, time_ms: u64) -> Result<Sample> {
        let [memory, io, cpu] = &mut self.pressure;
        let pressure = |file: &mut Text| parse::pressure::parse(&file.if_there(&self.root)?);
        let (pressure, io_pressure, cpu_pressure): (Option<Pressure>, _, _) =
            (pressure(memory), pressure(io), pressure(cpu));
        Ok(Sample {
            time_ms,
            page_bytes: self.root.page_size().bytes(),
            memory: parse::meminfo::parse(&self.meminfo.read(&self.root)?),
            vm: parse::vmstat::parse(&self.vmstat.read(&self.root)?),
            swaps: self.swaps()?,
            zram: Vec::new(),
            pressure,
            io_pressure,
            cpu_pressure,
            cpu: self.cpu(),
            zfs_cache: self
                .arcstats
                .if_there(&self.root)
                .map(|t| arcstats::reclaimable(&t))
                .unwrap_or_default(),
        })
    }

    fn swaps(&mut self) -> Result<Vec<SwapArea>> {
        let text = match self.swaps.read(&self.root) {
            Ok(text) => text,
            // a kernel without swap
            Err(e) if e.is_absent() => Cow::Borrowed(""),
            Err(e) => return Err(e),
        };
        Ok(areas::identified(&self.root, parse::swaps::parse(&text)))
    }

    fn held_by_zram(&mut self, swaps: &[SwapArea]) -> Vec<ZramStat> {
        let names: Vec<&str> = swaps.iter().filter_map(SwapArea::zram_name).collect();
        if !names.iter().eq(self.zram.iter().map(|(name, _)| name)) {
            let file = |name: &&str| ((*name).to_owned(), Text::new(format!("sys/block/{name}/mm_stat")));
            self.zram = names.iter().map(file).collect();
        }
        let stat =
            |(name, file): &mut (String, Text)| Some(parse::zram::mm_stat(name, &file.if_there(&self.root)?));
        self.zram.iter_mut().filter_map(stat).collect()
    }

    fn cpu(&mut self) -> CpuTicks {
        let (total, idle) =
            self.stat.if_there(&self.root).map(|t| parse::stat::machine(&t)).unwrap_or_default();
        let ticks = |file: &mut Text| Some(parse::process_stat::parse(&file.if_there(&self.root)?)?.ticks());
        CpuTicks { total, idle, kswapd: self.kswapd.iter_mut().filter_map(ticks).sum() }
    }
}

#[cfg(test)]
mod tests {
    use eke_model::units::Bytes;
    use eke_testkit::tree::put;

    use super::*;

    #[test]
    fn a_brief_sample_has_only_zram_devices_in_swap() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\n");
        put(dir.path(), "proc/vmstat", "pswpin 3\n");
        put(dir.path(), "proc/swaps", "Filename\n");
        put(dir.path(), "sys/block/zram0/mm_stat", "4096 100 8192 0 0 1 0 0");
        put(dir.path(), "sys/block/zram0/disksize", "65536\n");
        put(dir.path(), "sys/block/zram0/comp_algorithm", "lzo [lz4]\n");
        let mut sampler = Sampler::new(&Root::at(dir.path()));
        assert_eq!((sampler.brief(1).unwrap().zram.len(), sampler.full(1).unwrap().zram.len()), (0, 1));
        put(dir.path(), "proc/swaps", "Filename\n/dev/zram0 partition 100 0 5\n");
        let brief = sampler.brief(2).unwrap();
        assert_eq!((brief.zram[0].orig_data.0, brief.zram[0].algorithm.as_str()), (4096, ""));
        assert_eq!(sampler.full(3).unwrap().zram[0].algorithm, "lz4");
    }

    #[test]
    fn zfs_cache_is_read_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "proc/meminfo", "MemTotal: 1000 kB\n");
        put(dir.path(), "proc/vmstat", "pswpin 3\n");
        let mut sampler = Sampler::new(&Root::at(dir.path()));
        assert_eq!(sampler.brief(0).unwrap().zfs_cache, Bytes(0));
        let lists = "mru_evictable_data 4 9000\nmru_evictable_metadata 4 0\nmfu_evictable_data 4 0\nmfu_evictable_metadata 4 0\n";
        put(dir.path(), "proc/spl/kstat/zfs/arcstats", &format!("c_min 4 1000\nsize 4 5000\n{lists}"));
        assert_eq!(sampler.brief(1).unwrap().zfs_cache, Bytes(4000));
    }

    #[test]
    fn without_meminfo_there_is_no_sample() {
        let dir = tempfile::tempdir().unwrap();
        let error = Sampler::new(&Root::at(dir.path())).brief(0).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains("proc/meminfo"), "{error}");
    }

    #[test]
    fn the_running_machine_is_read_twice_from_the_same_files() {
        let mut sampler = Sampler::new(&Root::host());
        let first = sampler.full(0).unwrap();
        let second = sampler.full(1).unwrap();
        assert!(second.cpu.total >= first.cpu.total && first.memory.total == second.memory.total);
    }
}
