#!/bin/sh
# /etc/init.d/rcS of the root disk: what sysvinit would do at boot. /proc, /sys, /dev, /run and cgroups are mounted already.
export PATH=/sbin:/bin:/usr/sbin:/usr/bin HOME=/root TERM=linux
. /run/eke/conf
hostname eke-machine
mount -t tmpfs -o mode=1777 tmp /tmp
for module in $LOAD; do
    modprobe "$module" || echo "eke-machine: rcS: modprobe $module failed"
done
for hook in /etc/rcS.d/S??* /etc/rc2.d/S??*; do
    [ -x "$hook" ] && "$hook" start
done
[ -x /etc/rc.local ] && /etc/rc.local
exit 0
