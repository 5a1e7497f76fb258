# eke on LTSP clients: docs/ltsp.md. `eke ltsp install` writes this to /etc/ltsp/client/init, `ltsp initrd` puts it into ltsp.img, and
# `ltsp init` on a client sources it, as process 1, and calls eke_main before it starts the real init.
# POSIX sh. Nothing here may stop the boot: no `re` and no `die`, which would.
# @LTSP.CONF: EKE EKE_SWAP EKE_POOL_PERCENT EKE_PREFETCH EKE_GUARD EKE_METRICS EKE_METRICS_FROM

eke_main() {
    # Left of "||", `set -e` of LTSP does not count. The subshell keeps names, and an exit, to itself.
    (eke_boot) || eke_say "the set-up on this client failed; the client boots without it"
}

eke_boot() {
    at=${_EKE_ROOT:-} # for tests: the directory that stands for /
    units=$at/etc/systemd/system
    case ${EKE:-off} in
        auto) ;;
        *)
            [ "${EKE:-off}" = off ] || eke_say "EKE=\"$EKE\" in ltsp.conf is neither auto nor off: eke stays off here"
            # The image may be made of a machine where eke is enabled, and that machine's settings name its own disks.
            rm -f "$units/multi-user.target.wants/eke.service"
            return
            ;;
    esac
    eke_programs || return 0
    eke_forget_server || return
    eke_settings || return
    # Without the parameter the module makes a zram0 that nothing uses.
    modprobe -q zram num_devices=0 || [ -e "$at/sys/class/zram-control" ] ||
        eke_say "this client's kernel has no zram module: compressed swap needs one"
    eke_units
}

# To the console, to the journal of this client, and to the server's log if the server listens to syslog (RFC 5426). One datagram, and two
# seconds at most: a server that is down holds nothing up.
eke_say() {
    printf 'eke: %s\n' "$*" >&2
    printf '<4>eke: %s\n' "$*" 2>/dev/null >"${_EKE_ROOT:-}/dev/kmsg" || :
    # shellcheck disable=SC3028 # LTSP sets HOSTNAME
    [ -z "${SERVER:-}" ] || timeout 2 logger --server "$SERVER" --udp --port 514 --priority daemon.warning --tag eke \
        -- "${HOSTNAME:-client} ${MAC_ADDRESS:-}: $*" 2>/dev/null || :
}

# Sets bin. A client's image lacks eke, or has an older one.
eke_programs() {
    for bin in /usr/bin /usr/local/bin; do
        if [ -x "$at$bin/eke" ] && [ -x "$at$bin/eke-agent" ]; then return; fi
    done
    eke_say "this client's image has no eke: install the package eke in it, then run \`ltsp image\` on the server"
    return 1
}

# Settings and measurements of the machine that the image was made of say nothing about this one.
eke_forget_server() {
    if ! { mkdir -p "$at/etc/eke/eke.toml.d" "$at/var/lib/eke" && true >"$at/etc/eke/eke.toml"; } 2>/dev/null; then
        eke_say "/etc/eke cannot be written: is this client's root file system read-only?"
        return 1
    fi
    rm -rf "$at/etc/eke/eke.toml.d/"* "$at/var/lib/eke/"*
    eke_keep "$at/etc/ltsp/eke/eke.toml" "$at/etc/eke/eke.toml"
    # What this client measured at an earlier boot, if the administrator kept it.
    eke_keep "$at/etc/ltsp/eke/measured/${MAC_ADDRESS:-none}.json" "$at/var/lib/eke/measured.json"
}

eke_keep() {
    [ ! -f "$1" ] || cp "$1" "$2" || eke_say "$1 cannot be copied to $2"
}

# Writes the options as settings. A wrong one is reported and left out.
eke_settings() {
    file=$at/etc/eke/eke.toml.d/90-ltsp.toml
    eke_unknown
    swap=''
    agent=--up
    case ${EKE_SWAP:-auto} in
        auto) ;;
        zram | zswap) swap="backend = \"$EKE_SWAP\"" ;;
        off) agent= ;;
        *) eke_wrong EKE_SWAP "auto, zram, zswap or off" ;;
    esac
    case ${EKE_POOL_PERCENT:-} in
        '') ;;
        [1-8][0-9] | 90) swap="$swap
pool_percent = $EKE_POOL_PERCENT" ;;
        *) eke_wrong EKE_POOL_PERCENT "a number from 10 to 90" ;;
    esac
    prefetch=off
    case ${EKE_PREFETCH:-off} in
        auto | off) prefetch=${EKE_PREFETCH:-off} ;;
        *) eke_wrong EKE_PREFETCH "auto or off" ;;
    esac
    guard=''
    case ${EKE_GUARD:-auto} in
        auto) ;;
        on | off) guard="[guard]
enabled = \"$EKE_GUARD\"" ;;
        *) eke_wrong EKE_GUARD "auto, on or off" ;;
    esac
    eke_metrics_options
    printf '# From ltsp.conf, at each boot.\n[swap]\n%s\n[prefetch]\nenabled = "%s"\n%s\n' "$swap" "$prefetch" "$guard" >"$file" ||
        return 1
    eke_checked
}

# Sets port, which is empty without metrics, and from.
eke_metrics_options() {
    port=''
    from=''
    case ${EKE_METRICS:-off} in
        off) ;;
        on) port=7118 ;;
        *[!0-9]* | ??????* | 0*) eke_wrong EKE_METRICS "on, off or a port from 1024 to 65535" ;;
        *) if [ "$EKE_METRICS" -ge 1024 ] && [ "$EKE_METRICS" -le 65535 ]; then
            port=$EKE_METRICS
        else
            eke_wrong EKE_METRICS "on, off or a port from 1024 to 65535"
        fi ;;
    esac
    case ${EKE_METRICS_FROM:-} in
        *[!0-9a-fA-F.:/\ ]*) eke_wrong EKE_METRICS_FROM "IP addresses or networks with blanks between them" ;;
        *) from=${EKE_METRICS_FROM:-} ;;
    esac
    if [ -n "$port" ] && [ -z "${IP_ADDRESS:-}" ]; then
        eke_say "this client's IP address is unknown: its metrics are not served"
        port=
    fi
    if [ -n "$port" ] && [ -z "${SERVER:-}$from" ]; then
        eke_say "the address of the LTSP server is unknown, so nobody may read this client's metrics: set SERVER or EKE_METRICS_FROM"
    fi
}

eke_wrong() {
    value=''
    eval "value=\${$1:-}"
    eke_say "$1=\"$value\" in ltsp.conf is not valid and ignored: give $2"
}

# A name that is misspelt would otherwise have no effect, silently.
eke_unknown() {
    for name in $(set | LC_ALL=C sed -n 's/^\(EKE_[A-Za-z0-9_]*\)=.*/\1/p'); do
        case $name in
            EKE_SWAP | EKE_POOL_PERCENT | EKE_PREFETCH | EKE_GUARD | EKE_METRICS | EKE_METRICS_FROM) ;;
            *) eke_say "$name in ltsp.conf is no option of eke and ignored" ;;
        esac
    done
}

# The image's eke reads the settings before it does anything. An older one may not know a key; then its defaults count.
eke_checked() {
    said=$(eke_try) && return
    eke_say "this client's eke does not accept its settings and uses its defaults: $said"
    rm -f "$file"
    said=$(eke_try) && return
    true >"$at/etc/eke/eke.toml"
    said=$(eke_try) && return
    eke_say "this client's eke does not run: $said"
    return 1
}

eke_try() {
    { timeout 10 "$at$bin/eke" metrics --table >/dev/null; } 2>&1
}

# Swap before the desktop, but the desktop starts in any case: Before= only orders, and TimeoutStartSec= ends what hangs. Without a kept measurement
# `--boot` measures in short; what is cut off undoes itself, and eke.service measures again beside the desktop.
eke_units() {
    mkdir -p "$units/multi-user.target.wants" "$units/eke.service.d" || return
    for unit in /etc /usr/lib /lib ''; do
        [ ! -f "$at$unit/systemd/system/eke.service" ] || break
    done
    if [ -z "$unit" ]; then
        eke_say "this client's image has no eke.service: install the package eke in it, then run \`ltsp image\` on the server"
        return
    fi
    ln -sf "$unit/systemd/system/eke.service" "$units/multi-user.target.wants/eke.service" || return
    printf '[Service]\nExecStart=\nExecStart=%s/eke-agent %s\n' "$bin" "$agent" >"$units/eke.service.d/50-ltsp.conf" || return
    [ -z "$agent" ] || eke_unit eke-ltsp.service <<UNIT || return
[Unit]
Description=eke: compressed swap before the desktop of this LTSP client
After=swap.target systemd-sysctl.service
Before=display-manager.service eke.service
[Service]
Type=oneshot
ExecStart=$bin/eke up --boot --agent none
# 5: done in part; eke status shows what is missing.
SuccessExitStatus=5
TimeoutStartSec=60
StandardError=journal+console
[Install]
WantedBy=multi-user.target
UNIT
    [ -z "$port" ] || eke_unit eke-ltsp-metrics.service <<UNIT || return
[Unit]
Description=eke: metrics of this LTSP client for its server
After=eke.service
[Service]
ExecStart=$bin/eke metrics --listen $IP_ADDRESS:$port
Restart=on-failure
RestartSec=10s
IPAddressDeny=any
IPAddressAllow=$IP_ADDRESS ${SERVER:-} $from
DynamicUser=yes
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateDevices=yes
MemoryDenyWriteExecute=yes
[Install]
WantedBy=multi-user.target
UNIT
}

# Writes a unit from standard input and enables it.
eke_unit() {
    cat >"$units/$1" && ln -sf "/etc/systemd/system/$1" "$units/multi-user.target.wants/$1"
}
