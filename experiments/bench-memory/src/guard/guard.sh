# A machine with a login over ssh, an editor, and one load that takes all memory. Lines that start with @eke-guest are for the host.
uptime_s() { cut -d' ' -f1 /proc/uptime; }
bytes() { awk -v share="$1" '/^MemTotal:/ { printf "%d", $2 * 1024 * share }' /proc/meminfo; }
oom_kills() { awk '/^oom_kill / { print $2 }' /proc/vmstat; }
# NAME: whether a program of this name runs
runs() { pidof "$1" >/dev/null; }
# NAME SHARE RATIO PASSES
stress() { plain "/root/$1" stressor "{\"size\": $(bytes "$2"), \"ratio\": $3, \"passes\": $4}" >/dev/null 2>&1; }

# All variants have the same swap: eke's.
swap_up() {
    # As programs reserve memory: without asking whether it is there
    echo 1 >/proc/sys/vm/overcommit_memory
    plain eke up >/tmp/said 2>&1 || die "eke up: $(said)"
    say "set swap $(awk 'NR == 2 { print $1, int($3 / 1024) " MiB" }' /proc/swaps)"
}

ssh_up() {
    mkdir -p /run/sshd /root/.ssh
    ip link set lo up || die "no loopback"
    grep -q '^sshd:' /etc/passwd || echo 'sshd:x:74:74::/run/sshd:/bin/false' >>/etc/passwd
    ssh-keygen -q -t ed25519 -N '' -f /root/key || die "ssh-keygen"
    cp /root/key.pub /root/.ssh/authorized_keys
    chmod 700 /root /root/.ssh && chmod 600 /root/.ssh/authorized_keys
    plain /usr/sbin/sshd -f /dev/null -h /root/key -o UsePAM=no -o PidFile=none || die "sshd"
    # The asking end is not measured: it is locked in memory, and neither the kernel nor a guard takes it.
    eke-bench lab echo -- ssh -F /dev/null -T -i /root/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
        root@127.0.0.1 cat >/tmp/echo 2>/tmp/echo.said &
    until [ -s /tmp/echo ]; do
        kill -0 $! 2>/dev/null || die "ssh: $(cat /tmp/echo.said)"
        sleep 1
    done
}

editor_up() {
    sleep 100000 | plain /root/editor stressor "{\"size\": $(bytes 0.12), \"ratio\": 3, \"passes\": null}" >/dev/null 2>/tmp/editor &
    until grep -q filled /tmp/editor; do sleep 1; done
}

# A browser: a process, and each second a tab, which it declares dispensable
tabs() {
    stress browser 0.1 3 null </dev/zero &
    while runs browser; do
        sh -c 'echo 300 >/proc/self/oom_score_adj; exec "$@"' sh /root/tab stressor "{\"size\": $(bytes 0.08), \"ratio\": 2, \"passes\": null}" \
            </dev/zero >/dev/null 2>&1 &
        sleep 1
    done
}
crowd() {
    n=0
    while [ $n -lt 24 ]; do
        setsid /root/crowd stressor "{\"size\": $(bytes 0.3), \"ratio\": 2, \"passes\": null}" </dev/zero >/dev/null 2>&1 &
        n=$((n + 1))
    done
    wait
}
build() {
    n=0
    while [ $n -lt 24 ]; do
        /root/cc1 stressor "{\"size\": $(bytes 0.2), \"ratio\": 2, \"passes\": 4}" >/dev/null 2>&1 &
        n=$((n + 1))
    done
    wait
}
load() {
    case $1 in
    leak) stress leak 8 3 1 ;;
    incompressible) stress leak 8 1 1 ;;
    # It needs all of RAM and no more.
    fits) stress leak 1 3 1 ;;
    *) $1 ;;
    esac
    echo $? >/tmp/load.status
}

# LOAD SECONDS: runs it until it is over, or for so long
trial() {
    ssh_up
    editor_up
    sleep 2
    kernel=$(oom_kills) began=$(uptime_s)
    (plain sh -c ". /tmp/library; load $1" >/dev/null 2>&1) &
    while :; do
        sleep 1
        past=$(awk -v began="$began" '{ print $1 - began }' /proc/uptime)
        if [ "$1" = tabs ]; then over=$([ "$(oom_kills)" != "$kernel" ] || ended_by_guard && echo 1); else over=$([ -e /tmp/load.status ] && echo 1); fi
        [ -z "$over" ] || break
        [ "${past%.*}" -lt "$2" ] || { past=-1; break; }
    done
    say "over $past $(cat /tmp/load.status 2>/dev/null)"
    sleep 3
    say "kernel $(($(oom_kills) - kernel))"
    for name in sshd editor eke-agent; do runs $name || say "lost $name"; done
    [ "$1" != tabs ] || runs browser || say "lost browser"
    say "echo $(tail -n 1 /tmp/echo)"
    say "guard $(eke status --json 2>/dev/null | grep -o '"guard":{[^}]*}')"
}
ended_by_guard() { eke status --json 2>/dev/null | grep -q '"ended":[1-9]' || grep -qi 'sending sig' /tmp/earlyoom 2>/dev/null; }
