//! Memory that is short: pages are written back at once, before a program has to end for it.

use eke_vm::{Format, GuestFile};

use crate::Lab;
use crate::backing::CRYPT;

const SETTINGS: &str =
    "[swap]\nwriteback_device = \"/dev/vdb\"\n[guard]\nenabled = \"off\"\n[agent]\ntick_s = 1\n";

/// One program's pages do not compress and fill the pool; another one works, and memory stays short. Maintenance waits for calm, which never comes.
#[test]
fn pages_are_written_back_at_once_when_memory_is_short() {
    let Some(lab) = Lab::with_newer_kernel() else { return };
    let root = lab.root_with(&CRYPT, vec![GuestFile::new("/etc/eke/eke.toml", 0o644, SETTINGS)]);
    let disk = lab.disk("writeback", 128, Format::None);
    let script = r#"
for module in dm-crypt xts ecb; do modprobe $module; done; state > /tmp/before
eke up --size 64M || die up
twin 16 1; killall -STOP twin
zram=$(sed -n 's,^/dev/\(zram[0-9]*\) .*,\1,p' /proc/swaps); numbers() { cat /sys/block/$zram/mm_stat /sys/block/$zram/bd_stat; }
waits "the agent" 'eke status >/tmp/status'
cp /bin/eke-stressor /root/worker
sleep 1000 | /root/worker '{"size": 62914560, "ratio": 3, "passes": null}' 2>/tmp/worker >/dev/null &
waits "writeback" '[ $(awk "{print \$3}" /sys/block/$zram/bd_stat) -gt 500 ]' 120
numbers; cat /proc/pressure/memory; grep "MemAvailable\|MemTotal" /proc/meminfo
pidof worker >/dev/null || die "the worker ended: $(cat /tmp/worker)"
killall worker
waits "the sentence" 'grep -q "Memory was short: .* went to the writeback device" /run/eke/agent.log' 90
cat /run/eke/agent.log
killall -CONT twin; killall twin sleep; wait
eke down || die down
state > /tmp/end; cmp /tmp/before /tmp/end || die "down left something: $(diff /tmp/before /tmp/end)"
"#;
    lab.run(&root, vec![disk], script);
}
