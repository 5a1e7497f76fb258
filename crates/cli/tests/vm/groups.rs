//! Groups with memory limits: the form of compressed swap whose pool counts towards them.

use eke_vm::Format;

use crate::Lab;

/// The area has slots for the group, and not for the machine: without a group with a limit that means zram.
#[test]
fn a_group_with_a_limit_gets_zswap_and_stays_within_it() {
    let Some(lab) = Lab::with_newer_kernel() else { return };
    let root = lab.root(vec![]);
    let swap = lab.disk("swap", 28, Format::Swap);
    let script = r#"
swapon /dev/vdb || die swapon
state > /tmp/before
said() { eke plan | grep -A3 "^zram\|^zswap" | tr -s '\n ' ' '; }
twin 16 3
said | grep "zram in front of /dev/vdb" || die "not zram: $(said)"
group=/sys/fs/cgroup/shop.service; mkdir $group; echo 48M > $group/memory.max
inside() { (echo $(sh -c 'echo $PPID') > $group/cgroup.procs; exec "$@"); }
inside sleep 1000 & keeper=$!
waits "the group" '[ $(cat $group/memory.current) -gt 0 ]'
said | grep "zswap in front of /dev/vdb, because control groups may have 48 MiB" || die "not zswap: $(said)"
eke up || die up; twin_ends
[ $(cat /sys/module/zswap/parameters/enabled) = Y ] || die "zswap is off"
inside eke stressor '{"size": 62914560, "ratio": 3, "passes": 4}' & work=$!
waits "compressed pages" '[ $(cat $group/memory.zswap.current) -gt 1000000 ]'
cat $group/memory.zswap.current $group/memory.current
wait $work || die "the program in the group ended with $?"
# The kernel charges a compressed page before it takes the page's room back.
[ $(cat $group/memory.peak) -le $((50 << 20)) ] || die "the group had $(cat $group/memory.peak) bytes"
kill $keeper; waits "the group's end" 'rmdir $group 2>/dev/null'
eke down || die down
state > /tmp/end; cmp /tmp/before /tmp/end || die "down left something: $(diff /tmp/before /tmp/end)"
"#;
    lab.run(&root, vec![swap], script);
}
