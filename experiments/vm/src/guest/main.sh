#!/bin/sh
# Runs the script of this boot with its output on the virtio port, prints the marker there, and ends the machine.
export PATH=/sbin:/bin:/usr/sbin:/usr/bin HOME=/root TERM=linux
. /run/eke/conf

# The host announces the port after the driver is there; without this wait, a slow machine writes to a file of that name.
tries=0
until [ -c /dev/vport0p1 ] || [ $tries -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
if [ ! -c /dev/vport0p1 ]; then
    echo "eke-machine: main: no output port after a minute" >/dev/kmsg
    poweroff -f
    sleep 60
fi
# not a terminal, so programs write as into a pipe; it can be opened once only
exec 3>/dev/vport0p1
cd /root
/bin/sh /run/eke/script </dev/null >&3 2>&1 3>&-
status=$?
printf '\n%s %d\n' "$MARK" "$status" >&3

if [ "$ENDING" = power-cut ]; then
    poweroff -n -f
    sleep 60
fi
for hook in /etc/rc0.d/K??*; do
    [ -x "$hook" ] && "$hook" stop >/dev/console 2>&1
done
sync
mount -o remount,ro / 2>/dev/null
poweroff -f
sleep 60
