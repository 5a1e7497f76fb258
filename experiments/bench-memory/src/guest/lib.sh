# What every script of a guest begins with. Lines that start with @eke-guest are for the host.
export PATH=/sbin:/bin:/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8
readonly MIB=1048576 DISK=/dev/vdb ZSWAP=/sys/module/zswap/parameters
readonly GENERATOR=/lib/systemd/system-generators/zram-generator
say() { echo "@eke-guest $*"; }
die() { say "failed $*"; exit 90; }
# This shell only looks on: it is not what the kernel shall kill. What it starts is as everything else.
echo -1000 >/proc/self/oom_score_adj
plain() { sh -c 'echo 0 >/proc/self/oom_score_adj; exec "$@"' sh "$@"; }
ram() { awk -v share="$1" '/^MemTotal:/ { printf "%d", $2 * 1024 * share }' /proc/meminfo; }
said() { tail -n 3 /tmp/said | tr '\n' ' '; }

# BYTES ALGORITHM PRIORITY; without an algorithm the kernel's default
zram_swap() {
    modprobe zram || die "the kernel has no module zram"
    [ -z "$2" ] || echo "$2" >/sys/block/zram0/comp_algorithm || die "zram has no $2"
    echo "$1" >/sys/block/zram0/disksize || die "zram takes no size of $1"
    mkswap /dev/zram0 >/dev/null || die "mkswap /dev/zram0"
    swapon -p "$3" /dev/zram0 || die "swapon /dev/zram0"
}

zram_tools() {
    if [ -x /usr/sbin/zramswap ] && [ -x /bin/bash ]; then
        say by package
        /usr/sbin/zramswap start >/tmp/said 2>&1 || die "zramswap start: $(said)"
    else
        say by values
        zram_swap $((256 * MIB)) lz4 100
    fi
}

# CONFIGURATION (none: the package's own), and for where there is no package: BYTES
zram_generator() {
    if [ -x $GENERATOR ]; then
        say by package
        [ -z "$1" ] || printf '%s\n' "$1" >/etc/systemd/zram-generator.conf
        modprobe zram
        $GENERATOR --setup-device zram0 >/tmp/said 2>&1 || die "zram-generator --setup-device zram0: $(said)"
        # what its swap unit says
        swapon -d -p 100 /dev/zram0 || die "swapon /dev/zram0"
    else
        say by values
        zram_swap "$2" "" 100
    fi
}

zram_tuned() {
    zram_swap "$(ram 2)" zstd 100
    for setting in swappiness=180 watermark_boost_factor=0 watermark_scale_factor=125 page-cluster=0; do
        echo "${setting#*=}" >"/proc/sys/vm/${setting%=*}" || die "vm.$setting"
    done
}

disk_swap() { swapon $DISK || die "swapon $DISK"; }

# COMPRESSOR ZPOOL MAX_POOL_PERCENT, or nothing for the kernel's own. Since Linux 6.18 zsmalloc is the only allocator, and has no file.
zswap() {
    if [ -n "$1" ]; then
        echo "$1" >$ZSWAP/compressor && echo "$3" >$ZSWAP/max_pool_percent || die "zswap takes no $1, $3"
        [ ! -e $ZSWAP/zpool ] || echo "$2" >$ZSWAP/zpool || die "zswap takes no $2"
    fi
    echo 1 >$ZSWAP/enabled || die "zswap cannot be switched on"
    [ -z "$1" ] || [ "$(cat $ZSWAP/compressor)" = "$1" ] || die "zswap has no $1"
    disk_swap
}

# As at boot: with the figures of an earlier measurement, where there are any
eke_up() {
    mkdir -p /etc/eke
    printf '[guard]\nenabled = "off"\n' >/etc/eke/no-guard.toml
    [ -s /var/lib/eke/measured.json ] || say "note eke had no figures of an earlier measurement"
    plain eke up --boot "$@" >/tmp/said 2>&1 || die "eke up: $(said)"
    cat /tmp/said
}

settings() {
    for name in swappiness page-cluster watermark_scale_factor; do
        say "set vm.$name $(cat /proc/sys/vm/$name)"
    done
    for name in enabled compressor zpool max_pool_percent; do
        [ ! -e $ZSWAP/$name ] || say "set zswap.$name $(cat $ZSWAP/$name)"
    done
    for place in /sys/block/zram*; do
        [ -e "$place/disksize" ] || continue
        name=${place##*/}
        say "set $name.disksize $(cat "$place/disksize")"
        say "set $name.comp_algorithm $(sed 's/.*\[\(.*\)\].*/\1/' "$place/comp_algorithm")"
    done
}

file() { say "text $1" && cat "$2" && say end; }

# What the compressed pools hold, with the shell's own means: little is left to start a program with
pool() {
    orig=0 compr=0 used=0 available=0 pool=0 stored=0
    for stat in /sys/block/zram*/mm_stat; do
        [ -e "$stat" ] || continue
        read -r o c u _ <"$stat"
        orig=$((orig + o)) compr=$((compr + c)) used=$((used + u))
    done
    while read -r name value _; do
        case $name in
        MemAvailable:) available=$value ;;
        Zswap:) pool=$value ;;
        Zswapped:) stored=$value ;;
        esac
    done </proc/meminfo
    say "pool $orig $compr $used $((stored * 1024)) $((pool * 1024)) $((available * 1024))"
}

watch_pool() { while sleep 4; do pool; done; }

# The session of /tmp/session.json, with what the kernel counted before and after
session() {
    settings
    file before-meminfo /proc/meminfo
    file before-vmstat /proc/vmstat
    watch_pool &
    watcher=$!
    plain eke-bench lab session @/tmp/session.json </dev/null
    say "session $?"
    kill $watcher
    pool
    file after-vmstat /proc/vmstat
    file swaps /proc/swaps
    dmesg | grep -i 'killed process' | while read -r line; do say "killed $line"; done
    grep -h 'Ended:\|Stopped for' /run/eke/agent.log 2>/dev/null | while read -r line; do say "killed $line"; done
}

# Measures while the session of /tmp/session.json has its first document open: as somebody says `eke up` at work
measure() {
    plain eke-bench lab session @/tmp/session.json </dev/null >/tmp/session.out 2>&1 &
    driver=$!
    until grep -q '"opened"' /tmp/session.out; do
        kill -0 $driver 2>/dev/null || die "the session to measure ended: $(tail -n 2 /tmp/session.out)"
        sleep 1
    done
    plain eke up "$@" >/tmp/said 2>&1 || die "eke up: $(said)"
    cat /tmp/said
    [ -s /var/lib/eke/measured.json ] || die "eke up kept no figures: $(said)"
    say "measured $(tr -d '\n' </var/lib/eke/measured.json)"
    # the session goes with the machine
}
