//! What does not compress goes to a disk: to a partition, or to an encrypted file.

use eke_vm::{Ending, Format, GuestFile};

use crate::Lab;

/// What dm-crypt needs on Debian's kernel.
pub(crate) const CRYPT: [&str; 4] = ["dm-mod", "dm-crypt", "xts", "ecb"];

/// Settings with this place, and an agent that does not wait long.
fn settings(place: &str) -> Vec<GuestFile> {
    let text = format!("[swap]\n{place}\n[agent]\ntick_s = 1\n");
    vec![GuestFile::new("/etc/eke/eke.toml", 0o644, text)]
}

/// Functions of both scripts. `goes_out`: a program's pages, which do not compress, leave memory, and the agent writes them to what is behind the device.
const BACKING: &str = r#"
device() { sed -n 's,^/dev/\(zram[0-9]*\) .*,\1,p' /proc/swaps; }
backing() { cat /sys/block/$(device)/backing_dev; }
goes_out() {
    zram=$(device); rm -f /tmp/twin
    mkdir -p /sys/fs/cgroup/cold
    echo $$ > /sys/fs/cgroup/cold/cgroup.procs; twin 28 1; echo $$ > /sys/fs/cgroup/cgroup.procs
    killall -STOP twin
    for i in 1 2 3 4 5; do echo 24M > /sys/fs/cgroup/cold/memory.reclaim; done 2>/dev/null
    waits "writeback" '[ $(awk "{print \$1}" /sys/block/$zram/bd_stat) -gt 100 ]' 120
    cat /sys/block/$zram/bd_stat /sys/block/$zram/mm_stat
}
comes_back() { killall -CONT twin; twin_ends; }
down() { eke down || die down; state > /tmp/end; cmp /tmp/before /tmp/end || die "down left something: $(diff /tmp/before /tmp/end)"; }
"#;

/// What is on the partition is not what was in memory, its edges stay as they were, `kill -9` leaves nothing, and neither does `eke down`.
/// After a power cut it is used again.
#[test]
fn what_does_not_compress_is_written_back_to_an_encrypted_partition() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root_with(&CRYPT, settings("writeback_device = \"/dev/vdb\""));
    let disk = lab.disk("writeback", 128, Format::None);
    let script = r#"
printf "what was before" > /dev/vdb
step "without dm-crypt"
list=/lib/modules/$(uname -r)/modules.dep; cp $list /tmp/list; grep -v /dm-crypt.ko /tmp/list > $list
eke plan | tr -s '\n ' ' ' | grep "is not used: this kernel has no dm-crypt" || die "no note"
cp /tmp/list $list
step "a file system is not overwritten"
printf XFSB > /dev/vdb; eke plan | tr -s '\n ' ' ' | grep "it holds an xfs file system" || die "no note"
printf "what" > /dev/vdb
for module in dm-crypt xts ecb; do modprobe $module; done; state > /tmp/before
eke up --size 24M || die up
backing | grep -q '^/dev/dm-' || die "backing_dev is $(backing)"
mkdir -p /mnt; mount -t ext4 /dev/vdb /mnt 2>&1 | grep -i busy || die "the partition is not taken"
goes_out
cat /var/lib/eke/wear.json || die "no wear ledger"
sync; dd if=/dev/dm-0 of=/tmp/memory bs=4096 skip=8 count=32 2>/dev/null; dd if=/dev/vdb of=/tmp/disk bs=4096 skip=264 count=32 2>/dev/null
[ $(tr -d '\000' < /tmp/memory | wc -c) -gt 100000 ] || die "nothing was written"
cmp -s /tmp/memory /tmp/disk && die "pages are on the disk as they are"
comes_back
eke status
down
step "killed while it is applied"
for sign in dm-0 dm-0/slaves/vdb; do
    eke up --size 24M >/tmp/up 2>&1 & up=$!
    until [ -e /sys/block/$sign ] || [ ! -d /proc/$up ]; do :; done
    kill -9 $up 2>/dev/null || die "up ended before: $(cat /tmp/up)"; wait $up 2>/dev/null
    killall -9 eke-agent 2>/dev/null; down
    [ -z "$(ls -d /sys/block/dm-* 2>/dev/null)" ] || die "left at $sign: $(ls -d /sys/block/dm-*)"
done
step "the power is cut"
eke up --size 24M >/dev/null || die up; goes_out
"#;
    lab.run_to(Ending::PowerCut, &root, vec![disk.clone()], &format!("{BACKING}{script}"));
    let script = r#"
[ "$(head -c 15 /dev/vdb)" = "what was before" ] || die "the first bytes are others"
[ "$(tail -c 1048576 /dev/vdb | tr -d '\000' | wc -c)" = 0 ] || die "the last mebibyte is written"
for module in dm-crypt xts ecb; do modprobe $module; done; state > /tmp/before
eke up --size 24M || die "up after the power cut"
backing | grep -q '^/dev/dm-' || die "backing_dev is $(backing)"
down
"#;
    lab.run(&root, vec![disk], &format!("{BACKING}{script}"));
}

/// The file has no name, what is on the disk is not what was in memory, `kill -9` leaves nothing, and neither does `eke down`. A shutdown can unmount its file
/// system.
#[test]
fn without_a_partition_it_is_written_to_an_encrypted_file() {
    let Some(lab) = Lab::new() else { return };
    let place = "writeback_directory = \"/mnt/eke\"\nwriteback_file_mib = 64";
    let root = lab.root_with(&CRYPT, settings(place));
    let disk = lab.disk("files", 160, Format::Ext4);
    let script = r#"
mkdir -p /mnt; mount -t ext4 /dev/vdb /mnt || die mount
eke plan | tr -s '\n ' ' ' | grep "is not used: there is no such directory" || die "no note of a directory that does not exist"
mkdir /mnt/eke; used() { sync; df -k /mnt | awk '/mnt/ {print $3}'; }
for module in loop dm-crypt xts ecb; do modprobe $module; done; state > /tmp/before; before=$(used)
eke up --size 24M || die up
backing | grep -q '^/dev/dm-' || die "backing_dev is $(backing)"
[ -z "$(ls /mnt/eke)" ] || die "the file has a name: $(ls /mnt/eke)"
[ $(used) -ge $((before + 65536)) ] || die "only $(used) KiB are in use, before $before"
ls /sys/block; goes_out
sync; for place in dm-0 loop0; do dd if=/dev/$place of=/tmp/$place bs=4096 skip=8 count=32 2>/dev/null; done
[ $(tr -d '\000' < /tmp/dm-0 | wc -c) -gt 100000 ] || die "nothing was written"
cmp -s /tmp/dm-0 /tmp/loop0 && die "pages are on the disk as they are"
comes_back
step "a program that is killed has left it to the kernel"
killall -9 eke-agent; backing | grep -q '^/dev/dm-' || die "it is gone"
down
[ $(used) -le $((before + 64)) ] || die "$(used) KiB are in use, before $before"
umount /mnt || die "the file system is still in use"
step "at a shutdown"
mount -t ext4 /dev/vdb /mnt
eke up --size 24M || die up; goes_out; comes_back
umount /mnt 2>/dev/null && die "nothing keeps the file system in use"
eke lab let-go || die "let go: $?"
umount /mnt || die "the file system is still in use"
mount -t ext4 /dev/vdb /mnt; down
step "killed while it is applied"
for sign in loop0/loop dm-0 dm-0/slaves/loop0; do
    eke up --size 24M >/tmp/up 2>&1 & up=$!
    until [ -e /sys/block/$sign ] || [ ! -d /proc/$up ]; do :; done
    kill -9 $up 2>/dev/null || die "up ended before: $(cat /tmp/up)"; wait $up 2>/dev/null
    killall -9 eke-agent 2>/dev/null; down
    [ -z "$(ls -d /sys/block/dm-* /sys/block/loop*/loop 2>/dev/null)" ] || die "left at $sign: $(ls -d /sys/block/dm-* /sys/block/loop*/loop)"
done
[ $(used) -le $((before + 64)) ] || die "$(used) KiB are in use, before $before"
umount /mnt || die "the file system is still in use"
"#;
    lab.run(&root, vec![disk], &format!("{BACKING}{script}"));
}
