//! The machine's part of a row.

use eke_linux::Root;
use eke_linux::sampler::Sampler;
use eke_model::model::Model;
use eke_model::sample::Sample;

use crate::error::Result;
use crate::row::Row;

/// Samples as rows.
#[derive(Debug)]
pub struct MachineRows {
    sampler: Sampler,
    ms_per_tick: u64,
}

impl MachineRows {
    /// Reads once, so that an unreadable machine is an error at once.
    ///
    /// # Errors
    /// `/proc/meminfo` or `/proc/vmstat` cannot be read.
    pub fn open(root: &Root) -> Result<Self> {
        let mut sampler = Sampler::new(root);
        sampler.brief(0)?;
        Ok(Self { sampler, ms_per_tick: 1000 / rustix::param::clock_ticks_per_second().max(1) })
    }

    /// A row of now, with counters since boot.
    ///
    /// # Errors
    /// `/proc/meminfo` or `/proc/vmstat` cannot be read.
    pub fn read(&mut self, time_ms: u64) -> Result<Row> {
        let sample = self.sampler.brief(time_ms)?;
        let mut row = memory_columns(&sample);
        row.time_ms = time_ms;
        add_pressure(&mut row, &sample);
        self.add_cpu(&mut row, &sample);
        Ok(row)
    }

    fn add_cpu(&self, row: &mut Row, sample: &Sample) {
        let (total, idle) = (sample.cpu.total, sample.cpu.idle);
        // no `/proc/stat`
        if total > 0 {
            row.cpu_total_ms = Some(total * self.ms_per_tick);
            row.cpu_busy_ms = Some(total.saturating_sub(idle) * self.ms_per_tick);
        }
    }
}

fn add_pressure(row: &mut Row, sample: &Sample) {
    if let Some(p) = &sample.pressure {
        (row.memory_some_us, row.memory_full_us) = (Some(p.some_total_us), Some(p.full_total_us));
    }
    if let Some(p) = &sample.io_pressure {
        (row.io_some_us, row.io_full_us) = (Some(p.some_total_us), Some(p.full_total_us));
    }
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
        let mut sampler = MachineRows::open(&Root::at(dir.path())).unwrap();
        let row = sampler.read(7).unwrap();
        assert_eq!((row.time_ms, row.free_bytes, row.swapped_bytes), (7, Some(102_400), Some(30_720)));
        assert_eq!((row.pages_in, row.major_faults, row.pool_bytes), (Some(7), Some(9), Some(0)));
        assert_eq!((row.cpu_total_ms, row.cpu_busy_ms, row.memory_some_us), (Some(1200), Some(200), None));
        put(dir.path(), "proc/swaps", "Filename\n/dev/zram0 partition 100 0 5\n");
        let row = sampler.read(8).unwrap();
        assert_eq!((row.held_bytes, row.pool_bytes), (Some(4096), Some(8192)));
    }
}
