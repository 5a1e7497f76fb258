//! How much memory prefetch may fill now.

use eke_linux::parse::{meminfo, vmstat};
use eke_linux::{Root, read};
use eke_model::config::PrefetchSettings;

use eke_prefetch_model::choose::{Allowance, Memory, Occasion, Rules, allowance};
use eke_prefetch_model::learn::Now;

/// Samples memory and keeps the last sample for rates.
#[derive(Debug, Default)]
pub(crate) struct MemorySampler {
    last: Option<(Now, u64)>,
}

impl MemorySampler {
    /// The memory that prefetch may fill on this occasion.
    pub fn allowance(
        &mut self,
        root: &Root,
        settings: &PrefetchSettings,
        occasion: Occasion,
        now: Now,
    ) -> Allowance {
        let memory = self.sample(root, now);
        let rules = Rules {
            share: f64::from(settings.memory_percent) / 100.0,
            on_battery: settings.on_battery,
            ..Rules::of(memory.total)
        };
        allowance(&memory, &rules, occasion)
    }

    fn sample(&mut self, root: &Root, now: Now) -> Memory {
        let info = root.read("proc/meminfo").unwrap_or_default();
        let memory = meminfo::parse(&info);
        let refaults = vmstat::parse(&root.read("proc/vmstat").unwrap_or_default()).refault_file;
        let since = self.last.replace((now, refaults));
        let per_s = since.map_or(0.0, |(at, before)| {
            let seconds = now.mono.saturating_sub(at.mono).as_secs_f64();
            if seconds > 0.0 { refaults.saturating_sub(before) as f64 / seconds } else { 0.0 }
        });
        Memory {
            total: memory.total,
            available: memory.available,
            refaults_per_s: per_s,
            on_battery: read::on_battery(root) == Some(true),
        }
    }
}
