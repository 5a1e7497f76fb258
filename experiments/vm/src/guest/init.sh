#!/bin/sh
# /init of the small machine: mounts what a system has, then runs the script here or goes to the root disk.
export PATH=/sbin:/bin:/usr/sbin:/usr/bin HOME=/root TERM=linux

die() {
    # The kernel prints before it goes on; what a program writes to the console can be lost when the power goes.
    echo "<2>eke-machine: init: $*" >/dev/kmsg
    poweroff -f
    sleep 60
}

mount_basics() {
    mount -t devtmpfs devtmpfs /dev || die "no /dev"
    mount -t proc proc /proc || die "no /proc"
    mount -t sysfs sysfs /sys || die "no /sys"
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs -o mode=1777 shm /dev/shm
    mount -t tmpfs -o mode=755 run /run || die "no /run"
    mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
    cp -r /eke /run/ || die "no room in /run"
}

mount_v2() {
    mkdir -p "$1"
    mount -t cgroup2 cgroup2 "$1" || die "no cgroup v2 at $1"
}

mount_v1() {
    mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
    for controllers in memory cpu,cpuacct blkio pids freezer cpuset; do
        mkdir -p "/sys/fs/cgroup/$controllers"
        mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/$controllers" || die "no cgroup v1 $controllers"
    done
}

mount_cgroup() {
    case $CGROUP in
    v2)
        mount_v2 /sys/fs/cgroup
        for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
            echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
        done
        ;;
    v1) mount_v1 ;;
    hybrid)
        mount_v1
        mount_v2 /sys/fs/cgroup/unified
        ;;
    esac
}

load() {
    for module in "$@"; do
        modprobe "$module" || die "modprobe $module failed"
    done
}

enter_root() {
    mount -t ext4 "$ROOT" /newroot || die "no ext4 on $ROOT"
    for place in proc sys dev run; do
        mount --move "/$place" "/newroot/$place" || die "cannot move /$place"
    done
    exec switch_root /newroot /sbin/init
    die "switch_root failed"
}

. /eke/conf
mount_basics
mount_cgroup
load $EARLY
[ -n "$ROOT" ] && enter_root
mount -t tmpfs -o mode=1777 tmp /tmp
load $LOAD
exec /bin/sh /run/eke/main
