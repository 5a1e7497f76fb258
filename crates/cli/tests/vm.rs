//! eke in the small machine: 124 MB, Debian's kernel, static binaries. `make test-vm`; EKE_VM allows downloads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use eke_bench_desktop::session::{Act, Ballast, End, Event, Spec};
use eke_bench_memory::guest::{self, GuestRun, Peer};
use eke_model::units::Bytes;
use eke_vm::{
    Disk, Ending, Format, GuestFile, Kit, Outcome, Recipe, Userland, build_static, kit_for_tests,
    kit_for_tests_of, make_root, run,
};

#[path = "vm/backing.rs"]
mod backing;
#[path = "vm/exported.rs"]
mod exported;
#[path = "vm/farm.rs"]
mod farm;
#[path = "vm/groups.rs"]
mod groups;
#[path = "vm/ltsp.rs"]
mod ltsp;
#[path = "vm/ratios.rs"]
mod ratios;
#[path = "vm/relief.rs"]
mod relief;
#[path = "vm/replaced.rs"]
mod replaced;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Lab {
    kit: Kit,
    place: tempfile::TempDir,
    _lock: MutexGuard<'static, ()>,
}

fn binaries() -> &'static [PathBuf] {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        build_static(workspace, &["eke", "eke-agent", "eke-stressor"]).expect("the static binaries build")
    })
}

/// Absent from the other machines, whose memory is counted.
fn cache_binary() -> Vec<PathBuf> {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    build_static(workspace, &["eke-cache"]).expect("the static binary builds")
}

/// The programs that drive sessions, in machines that have one.
fn bench_binary() -> Vec<PathBuf> {
    let workspace = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    build_static(workspace, &["eke-bench"]).expect("the static binary builds")
}

impl Lab {
    fn new() -> Option<Self> {
        Self::with(kit_for_tests)
    }

    /// One with the kernel of Debian 13, Linux 6.12.
    fn with_newer_kernel() -> Option<Self> {
        Self::with(|| kit_for_tests_of("trixie"))
    }

    fn with(kit: impl Fn() -> eke_vm::Result<Option<Kit>>) -> Option<Self> {
        let lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let kit = kit().expect("the small machine's kit")?;
        Some(Self { kit, place: tempfile::tempdir().expect("a temporary directory"), _lock: lock })
    }

    /// A root disk with eke on it and these files.
    fn root(&self, files: Vec<GuestFile>) -> PathBuf {
        self.root_with(&[], files)
    }

    /// The same with these kernel modules, too.
    fn root_with(&self, modules: &[&str], files: Vec<GuestFile>) -> PathBuf {
        let image = self.place.path().join("root");
        let mut userland = Userland { files, binaries: binaries().to_vec(), ..Userland::default() };
        userland.modules.extend(modules.iter().map(ToString::to_string));
        make_root(&self.kit, &image, 96 << 20, &userland).expect("a root disk");
        image
    }

    fn disk(&self, name: &str, mib: u64, format: Format) -> Disk {
        Disk::new(self.place.path().join(name), mib << 20, format)
    }

    /// Runs a script that must succeed; its output goes to the test's log.
    fn run(&self, root: &Path, disks: Vec<Disk>, script: &str) -> Outcome {
        self.run_to(Ending::PowerOff, root, disks, script)
    }

    fn run_to(&self, ending: Ending, root: &Path, disks: Vec<Disk>, script: &str) -> Outcome {
        let mut recipe = Recipe::new(format!("{BASICS}\n{script}")).on_root(root);
        recipe.disks = disks;
        recipe.ending = ending;
        recipe.timeout = Duration::from_secs(480);
        let outcome = run(&self.kit, &recipe).unwrap_or_else(|e| panic!("{e}"));
        eprintln!("{}\n({:.1} s)", outcome.output, outcome.seconds);
        assert_eq!(outcome.status, 0, "console: {}", outcome.console);
        outcome
    }
}

/// The functions of every script, which print what they check.
const BASICS: &str = r#"
set -u
# As programs reserve memory: without asking whether it is there
echo 1 > /proc/sys/vm/overcommit_memory
step() { echo "== $*"; }
die() { echo "FAILED: $*"; cat /run/eke/agent.log 2>/dev/null; dmesg | tail -5; exit 1; }
state() { cat /proc/sys/vm/swappiness /proc/sys/vm/page-cluster /sys/module/zswap/parameters/* /sys/kernel/mm/lru_gen/enabled; awk '{print $1, $2, $3, $5}' /proc/swaps; ls /sys/block /sys/module | grep -v '^lz\|^zsmalloc\|^deflate\|^z3fold\|^zstd\|^xxhash'; }
stressor() { eke stressor "{\"size\": $(($1 * 1048576)), \"ratio\": $2, \"passes\": 1}"; }
# A program whose pages are measured: on a machine that does nothing there are none. It ends with its input.
twin() { [ -e /root/twin ] || cp /bin/eke-stressor /root/twin; sleep 1000 | /root/twin "{\"size\": $(($1 * 1048576)), \"ratio\": $2, \"passes\": null}" 2>/tmp/twin >/dev/null & waits "the twin" 'grep -q filled /tmp/twin'; }
twin_ends() { killall twin sleep; wait; }
waits() { n=0; until eval "$2"; do n=$((n + 1)); [ $n -gt ${3:-60} ] && die "waited for $1"; sleep 1; done; }
"#;

#[test]
fn zram_carries_what_was_killed_before() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root(vec![]);
    let outcome = lab.run(&root, vec![], r#"
state > /tmp/before
step without eke; stressor 90 3; [ $? = 137 ] || die "90 MiB fit into $(grep MemTotal /proc/meminfo)"
eke plan --json > /tmp/plan || die plan
state > /tmp/after-plan; cmp /tmp/before /tmp/after-plan || die "plan left something: $(diff /tmp/before /tmp/after-plan)"
for a in zstd lz4 lz4hc lzo-rle; do grep -q "\"name\": \"$a\"" /tmp/plan || die "$a is not measured: $(cat /tmp/plan)"; done
twin 20 3; eke up || die up; twin_ends
grep -q zram /proc/swaps || die "no zram swap"
step with eke; stressor 90 3 || die "the memory stressor ended with $?"
eke status || die status
eke advise --most 3
eke down || die down
state > /tmp/end; cmp /tmp/before /tmp/end || die "down left something: $(diff /tmp/before /tmp/end)"
"#);
    assert!(outcome.output.contains("chosen"));
}

#[test]
fn zswap_before_a_disk_with_the_planned_algorithm_and_with_deflate() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root(vec![]);
    let swap = lab.disk("swap", 256, Format::Swap);
    let outcome = lab.run(&root, vec![swap], r#"
step without swap; stressor 90 3; [ $? = 137 ] || die "90 MiB fit"
swapon /dev/vdb || die swapon
state > /tmp/before
for algorithm in auto deflate; do
    step "with $algorithm"
    twin 20 3; eke up --algorithm $algorithm || die "up $algorithm"; twin_ends
    [ $(cat /sys/module/zswap/parameters/enabled) = Y ] || die "zswap is off"
    [ $(cat /sys/module/zswap/parameters/zpool) = zsmalloc ] || die "not zsmalloc"
    [ $algorithm = auto ] || [ $(cat /sys/module/zswap/parameters/compressor) = $algorithm ] || die "not $algorithm"
    before=$(awk '/^zswpout/ {print $2}' /proc/vmstat)
    stressor 90 3 || die "the memory stressor ended with $?"
    out=$(($(awk '/^zswpout/ {print $2}' /proc/vmstat) - before))
    [ $out -gt 1000 ] || die "only $out pages went to zswap"
    eke status || die status
    eke down || die down
    state > /tmp/end; cmp /tmp/before /tmp/end || die "down left something: $(diff /tmp/before /tmp/end)"
done
"#);
    assert!(
        outcome.output.contains("deflate *")
            && outcome.output.contains("zswap, because there is swap on a disk")
    );
}

#[test]
fn a_box_on_cgroup_v2() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root(vec![]);
    lab.run(&root, vec![], r#"
step without; eke box --memory 24M -- eke stressor "{\"size\": $((32 * 1048576)), \"ratio\": 3}"; [ $? = 137 ] || die "not killed"
eke up || die up
step with; eke box --json --memory 24M -- eke stressor "{\"size\": $((32 * 1048576)), \"ratio\": 3}" || die "the box ended with $?"
eke box --memory 24M -- sh -c 'exit 7'; [ $? = 7 ] || die "the status is not passed on"
[ -z "$(find /sys/fs/cgroup -name 'eke*')" ] || die "groups are left"
eke down || die down
"#);
}

/// The console's memory (vcs(4)): nothing of the old screen, only characters of every font, and nothing left afterwards.
#[test]
fn the_screen_on_a_real_console() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root(vec![]);
    lab.run(
        &root,
        vec![],
        r##"
screen() { fold -w $(stty size </dev/tty1 | cut -d ' ' -f 2) /dev/vcs1; }
for i in $(seq 60); do echo "before before before before before before before before"; done >/dev/tty1
screen | grep -q before || die "this console has no screen: $(screen)"
TERM=linux LANG=C.UTF-8 setsid eke top --every 500ms </dev/tty1 >/dev/tty1 2>/tmp/top & top=$!
waits "the screen" 'screen | grep -q "q  quit"'
waits "a refresh" 'screen | grep -q "no agent runs; eke top samples the machine itself"'
screen
screen | grep -q '^# anonymous .* [0-9.]* MiB' || die "no legend"
screen | grep before && die "what was there shows through"
[ $(screen | tr -d ' -~\n' | wc -c) = 0 ] || die "signs that not every font has"
eke-agent 2>/dev/null & waits "the agent" 'screen | grep -q "^eke top  agent $!, up"'
kill $top; wait $top || die "it ended with $?: $(cat /tmp/top)"
[ $(screen | tr -d ' \n' | wc -c) = 0 ] || die "something is left: $(screen)"
"##,
    );
}

#[test]
fn enable_survives_a_reboot_and_disable_too() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root(vec![]);
    lab.run(
        &root,
        vec![],
        r#"
find /etc -type f | sort | xargs md5sum > /var/etc-before
eke enable || die enable
twin 20 3; eke up || die up; twin_ends
"#,
    );
    lab.run(&root, vec![], r#"
waits "zram swap after the reboot" 'grep -q zram /proc/swaps'
waits "the agent" 'eke status > /tmp/status'
cat /tmp/status
stressor 90 3 || die "the memory stressor ended with $?"
eke disable || die disable
find /etc -type f | sort | xargs md5sum > /tmp/etc-after; cmp /var/etc-before /tmp/etc-after || die "disable left something: $(diff /var/etc-before /tmp/etc-after)"
"#);
    lab.run(
        &root,
        vec![],
        r#"
sleep 2
! grep -q zram /proc/swaps || die "still there after disable"
"#,
    );
}

/// The kernel's NFS, server and client in one machine. The script fills nfsd's caches of exports itself: `$options` are the export's.
/// The client caches attributes of an open file for ten minutes.
const NFS: &str = r#"
for m in fuse nfsd nfsv4; do modprobe $m || die "modprobe $m"; done
ifconfig lo 127.0.0.1 up
mkdir -p /export /nfs /fast
mount -t ext4 /dev/vdb /export || die "mount /dev/vdb"; mount -t nfsd nfsd /proc/fs/nfsd
# a client with a delegation gets notified of changes
echo 0 > /proc/sys/fs/leases-enable
always=2147483647
exports() {
    echo "nfsd 127.0.0.1 $always all" > /proc/net/rpc/auth.unix.ip/channel
    echo "all /export $always $options 65534 65534 0" > /proc/net/rpc/nfsd.export/channel
    printf 'all 1 \\x00000000 %s /export\n' $always > /proc/net/rpc/nfsd.fh/channel
}
exports
echo 10 > /proc/fs/nfsd/nfsv4leasetime; echo 10 > /proc/fs/nfsd/nfsv4gracetime
echo "-3 +4 +4.1 +4.2" > /proc/fs/nfsd/versions
echo "tcp 2049" > /proc/fs/nfsd/portlist 2>/dev/null
echo 2 > /proc/fs/nfsd/threads
serves() {
    # noatime: else a read makes the client ask for the time of that
    mount -i -t nfs4 -o noatime,vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,actimeo=600 127.0.0.1:/ /nfs || die "mount"
    echo '{"dir":"/nfs","place":"/fast","memory":{"bytes":16777216},"compress":"sync","others":true,"passthrough":"never","watch":false}' | eke-cache serve &
    waits "the mount" 'grep -q " /fast " /proc/mounts'
}
"#;

/// Runs a script in a machine with NFS.
fn with_nfs(options: u32, script: &str) {
    let Some(lab) = Lab::new() else { return };
    let image = lab.place.path().join("root");
    let binaries = [binaries().to_vec(), cache_binary()].concat();
    let mut userland = Userland { binaries, ..Userland::default() };
    userland.modules.extend(["fuse", "nfsd", "nfsv4"].map(str::to_owned));
    make_root(&lab.kit, &image, 96 << 20, &userland).expect("a root disk");
    let export = lab.disk("export", 32, Format::Ext4);
    lab.run(&image, vec![export], &format!("options={options}\n{NFS}\n{script}"));
}

/// `NFSEXP_FSID | NFSEXP_NOSUBTREECHECK | NFSEXP_INSECURE_PORT`
const EXPORT: u32 = 0x2402;
/// `NFSEXP_ROOTSQUASH`, the default of exports(5).
const ROOT_SQUASH: u32 = 4;

#[test]
fn an_open_of_an_open_file_asks_the_nfs_server() {
    with_nfs(
        EXPORT,
        r#"
fill() { yes $1 | head -c 200000 > /tmp/content; dd if=/tmp/content of=/export/file conv=notrunc bs=64k 2>/dev/null; }
fill old
serves
sleep 1000 < /fast/file & reader=$!
[ "$(tail -c 4 /fast/file)" = old ] || die "it reads $(tail -c 4 /fast/file)"
sleep 1; fill new
[ "$(stat -c %y /nfs/file)" != "$(stat -c %y /export/file)" ] || die "the client asks by itself: this shows nothing"
[ "$(head -c 3 /fast/file) $(tail -c 4 /fast/file)" = "new new" ] || die "stale: $(head -c 3 /fast/file) $(tail -c 4 /fast/file)"
kill $reader; wait $reader || true
# ext4 gives the number of a removed file to the next one, and the client of this kernel knows no birth.
echo one > /export/a
[ "$(cat /fast/a)" = one ] || die "a: $(cat /fast/a 2>&1)"
number=$(stat -c %i /export/a); rm /export/a
# The server may have the removed file open for a while, and the number is not free until then.
waits "the number" 'rm -f /export/b; echo two > /export/b; [ "$(stat -c %i /export/b)" = "$number" ]'
[ "$(cat /fast/b)" = two ] || die "b: $(cat /fast/b 2>&1)"
umount /fast
"#,
    );
}

#[test]
fn users_see_their_own_files_on_a_server_that_squashes_root() {
    with_nfs(
        EXPORT | ROOT_SQUASH,
        r#"
mkdir -m 700 /export/home; echo mine > /export/home/secret; chmod 600 /export/home/secret; ln -s secret /export/home/link
chown -R 1000:1000 /export/home; chmod 755 /export
mkdir -m 770 /export/group; echo ours > /export/group/file; chmod 640 /export/group/file; chown -R 1002:2000 /export/group
echo "ours:x:2000:u1000" >> /etc/group
serves
! cat /nfs/home/secret 2>/dev/null || die "root is not squashed: this shows nothing"
for id in 1000 1001; do echo "u$id:x:$id:$id::/:/bin/sh" >> /etc/passwd; echo "u$id:x:$id:" >> /etc/group; done
as() { uid=$1; shift; su -s /bin/sh -c "$*" u$uid; }
as 1000 'test "$(id -u)" = 1000' || die "no su"
[ "$(as 1000 'ls /fast/home')" = "link
secret" ] || die "the list: $(as 1000 'ls /fast/home' 2>&1)"
[ "$(as 1000 'cat /fast/home/link')" = mine ] || die "the content: $(as 1000 'cat /fast/home/link' 2>&1)"
as 1000 'echo more >> /fast/home/secret; echo new > /fast/home/new; mkdir /fast/home/dir; mv /fast/home/new /fast/home/dir/moved' || die "changes"
[ "$(cat /export/home/secret /export/home/dir/moved)" = "mine
more
new" ] || die "what came of it: $(cat /export/home/secret /export/home/dir/moved)"
[ "$(as 1000 'cat /fast/group/file; echo new > /fast/group/new; rm /fast/group/file; ls /fast/group')" = "ours
new" ] || die "by another group: $(as 1000 'ls -l /fast/group; cat /fast/group/file' 2>&1)"
! as 1001 'ls /fast/group' 2>/dev/null || die "without the group"
! as 1001 'cat /fast/home/secret' 2>/dev/null || die "another user reads it"
! cat /fast/home/secret 2>/dev/null || die "squashed root reads it"
umount /fast
"#,
    );
}

/// Two pages, each with a black bar at a different position.
const DOCUMENT: &str = "%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 /MediaBox [0 0 400 500] >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /Contents 5 0 R >> endobj
4 0 obj << /Type /Page /Parent 2 0 R /Contents 6 0 R >> endobj
5 0 obj << /Length 19 >> stream
40 40 300 60 re f  
endstream endobj
6 0 obj << /Length 19 >> stream
40 340 300 90 re f 
endstream endobj
trailer << /Root 1 0 R >>
";

/// The disk of guests with that document, and the document's path there; `None` if a program is missing.
fn guest_disk(lab: &Lab) -> Option<(PathBuf, PathBuf)> {
    let document = lab.place.path().join("a.pdf");
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    std::fs::write(&document, DOCUMENT).unwrap();
    let own = [binaries(), &bench_binary()].concat();
    let mut parts = guest::parts("xpdf", &own).unwrap();
    let there = parts.document(&document, "a.pdf");
    let image = lab.place.path().join("guest");
    match guest::make_image(&lab.kit, &image, &parts, &[]) {
        Ok(()) => Some((image, there)),
        Err(guest::Error::TestImage(e @ eke_bench_core::test_image::Error::Missing { .. })) => {
            eprintln!("skipped: a_document_in_a_guest: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_document_in_a_guest() {
    let Some(lab) = Lab::new() else { return };
    let Some((image, document)) = guest_disk(&lab) else { return };
    let spec = Spec {
        screen: (800, 600),
        viewer: "xpdf".into(),
        documents: vec![document],
        ballast: Ballast { size: Bytes(0), ratio: 1.0 },
        merge_same_pages: false,
        acts: vec![Act::Open { document: 0 }, Act::Browse { document: 0, pages: 1, back: false }],
        patience_s: 120.0,
        expected: Vec::new(),
    };
    let timeout = Duration::from_secs(300);
    let run = GuestRun { peer: Peer::ZramGenerator, memory_mib: 124, spec, measured: None, timeout };
    let mut events = Vec::new();
    let outcome =
        guest::run(&lab.kit, &image, &run, &AtomicBool::new(false), &mut |e| events.push(e.clone()));
    let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(events, outcome.events, "the events while it runs");
    let pages: Vec<u64> = events.iter().filter_map(shown).collect();
    assert!(pages.len() == 2 && pages[0] != pages[1], "{outcome:?}");
    assert_eq!(events.last(), Some(&Event::Ended(End::Finished)), "{outcome:?}");
    assert_eq!((outcome.set_up_by.as_str(), outcome.session_status), ("values", Some(0)));
    // half the RAM, on whole pages
    let size: u64 = outcome.settings["zram0.disksize"].parse().unwrap();
    assert!(size.abs_diff(outcome.memory.0 / 2) < 4096, "{outcome:?}");
    assert!(outcome.counters.major_faults > 0 && outcome.memory < Bytes::mib(124), "{outcome:?}");

    let interrupted = guest::run(&lab.kit, &image, &run, &AtomicBool::new(true), &mut |_| {});
    assert!(interrupted.unwrap_err().is_interrupted());
}

fn shown(event: &Event) -> Option<u64> {
    match event {
        Event::Opened { content, .. } | Event::Page { content, .. } => Some(*content),
        _ => None,
    }
}

/// A leak, a crowd of programs and a service, while another program works and has memory: only what takes the memory ends, not by the
/// kernel, and all that was stopped continues.
#[test]
fn the_guard_ends_what_takes_all_memory_and_nothing_else() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root(vec![]);
    let outcome = lab.run(&root, vec![], r#"
cp /bin/eke-stressor /root/editor; cp /bin/eke-stressor /root/leak; cp /bin/eke-stressor /root/crowd
kills() { awk '/^oom_kill / {print $2}' /proc/vmstat; }
has_ended() { ! kill -0 $1 2>/dev/null; }
twin 20 3; eke up || die up; twin_ends
sleep 1000 | /root/editor '{"size": 12582912, "ratio": 3, "passes": null}' 2>/tmp/editor >/dev/null & waits "the editor" 'grep -q filled /tmp/editor'
editor=$(pidof editor)
waits "the agent" 'eke status | grep -q "^guard"'
eke status | grep "^guard"
kernel=$(kills)
ended() { eke status --json | tr -d ' \n' | sed 's/.*"guard":{[^}]*"ended":\([0-9]*\).*/\1/'; }
step a leak
# On an emulated CPU that others use, too, the kernel is sometimes faster; of three leaks the guard must be first at one.
n=0; while [ $(ended) = 0 ] && [ $n -lt 3 ]; do
    n=$((n + 1))
    /root/leak '{"size": 419430400, "ratio": 3, "passes": 1}' >/dev/null 2>&1; echo "it ended with $?"
    eke status | grep "^guard\|^decided"
    has_ended $editor && die "the editor was ended"
    sleep 3
done
eke status --json | grep -o '"guard":{[^}]*}'
[ $(ended) -gt 0 ] || die "the guard ended nothing"
step a crowd
before=$(ended)
n=0; while [ $n -lt 12 ]; do setsid /root/crowd '{"size": 33554432, "ratio": 3, "passes": null}' </dev/zero >/dev/null 2>&1 & n=$((n + 1)); sleep 0.5; done
waits "the guard" '[ $(ls /proc | while read p; do cat /proc/$p/comm 2>/dev/null; done | grep -c crowd) -lt 4 ]' 90
eke status | grep "^guard\|^decided"
has_ended $editor && die "the editor was ended: $(ps)"
# On an emulated CPU the kernel may be faster with some of twelve at once, so its share is printed and not judged.
echo "the kernel ended $(($(kills) - kernel)), the guard $(($(ended) - before))"
[ $(ended) -gt $before ] || die "the guard ended none of the crowd"
killall crowd; waits "the crowd" '! pidof crowd >/dev/null'
step a service
echo "+memory +cpu" > /sys/fs/cgroup/cgroup.subtree_control || die "no memory or cpu controller"
group=/sys/fs/cgroup/stressor.service; mkdir $group
was() { grep -q "$1: process" /run/eke/agent.log; }
# Where it fills memory within a second or two, the guard does not slow it but stops and ends it at once: each time it gets less of the CPU.
n=0; until was Slowed && was "Stopped for a moment" || [ $n -ge 6 ]; do
    set -- max 40000 20000 10000 5000 2500; shift $n; echo "$1 100000" > $group/cpu.max || die "no limit of CPU time"
    n=$((n + 1))
    (echo $(sh -c 'echo $PPID') > $group/cgroup.procs; exec /root/leak '{"size": 419430400, "ratio": 2, "passes": 1}') >/dev/null 2>&1
    eke status | grep "^guard\|^decided"
done
was Slowed || die "the service was not slowed: $(cat /run/eke/agent.log)"
was "Stopped for a moment" || die "it was not stopped"
waits "its limit to be lifted" '[ $(cat $group/memory.high) = max ] && [ $(cat $group/cgroup.freeze) = 0 ]'
has_ended $editor && die "the editor was ended"
grep -l "State:.*T" /proc/[0-9]*/status && die "something stays stopped"
eke down || die down
"#);
    assert!(outcome.output.contains("== a service"), "the last step");
}
