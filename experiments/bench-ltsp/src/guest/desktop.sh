# The stand-in of a desktop on an LTSP client. Lines that start with @eke-guest are for the host.
readonly OWN=/etc/ltsp/eke-bench
uptime_s() { cut -d' ' -f1 /proc/uptime; }

# A session until it fails, then a load beside a login
desktop() {
    say "desktop $(uptime_s)"
    mkdir -p /root/.ssh && cp $OWN/key.pub /root/.ssh/authorized_keys && chmod 700 /root /root/.ssh
    cp $OWN/session.json /tmp/session.json
    session
    load
    # Loads no program, as memory may be short and the server slow
    echo o >/proc/sysrq-trigger
    poweroff -f
}

# The login at the server's end makes the file, then sends lines and waits for them
load() {
    # LTSP's clients may have their ssh server switched off
    mkdir -p /run/sshd
    pidof sshd >/dev/null || plain /usr/sbin/sshd || say "note no ssh server"
    n=0
    until [ -e /run/eke-bench-login ] || [ $n -ge 60 ]; do
        sleep 1
        n=$((n + 1))
    done
    say "load begins"
    # Not by `plain`: $! would be that function's shell, and the program would outlive it
    sh -c 'echo 0 >/proc/self/oom_score_adj; exec "$@"' sh \
        eke stressor "{\"size\": $(ram 1), \"ratio\": 3, \"passes\": null}" </dev/zero >/dev/null 2>&1 &
    stressor=$!
    until=$(($(cut -d. -f1 /proc/uptime) + 60))
    while [ "$(cut -d. -f1 /proc/uptime)" -lt $until ]; do sleep 2; done
    if kill -0 $stressor 2>/dev/null; then say "stressor survived"; else say "stressor killed"; fi
    say "load ends"
    kill -9 $stressor 2>/dev/null
}
