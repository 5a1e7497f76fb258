# eke sends this to `sh` on its standard input, on both ends of a link. It answers requests, one per line, and ends with its input.
LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL PATH
server=$PPID
section() { echo "== $1"; }
# The first line of a file; empty if it cannot be read. Starts no process, since it runs before and after each slice.
first() {
    line=
    { read -r line <"$1"; } 2>/dev/null
}
# Finds the file with the time that a CPU quota throttled a process: cgroup v2 (0::PATH), v1 (N:cpu,cpuacct:PATH).
quota() {
    quota=
    { while IFS=: read -r number names path; do
        case "$number:,$names," in
        0:,,) files="/sys/fs/cgroup$path/cpu.stat /sys/fs/cgroup/unified$path/cpu.stat" ;;
        *,cpu,*) files="/sys/fs/cgroup/cpu$path/cpu.stat /sys/fs/cgroup/$names$path/cpu.stat" ;;
        *) files= ;;
        esac
        for file in $files; do
            { while read -r key value; do
                case $key in throttled_time | throttled_usec) quota=$file ;; esac
            done <"$file"; } 2>/dev/null
        done
    done <"/proc/$1/cgroup"; } 2>/dev/null
    quota_pid=$1
}
sample() {
    [ "$quota_pid" = "$1" ] || quota "$1"
    first "/proc/$1/schedstat"; echo "schedstat $line"
    first "/proc/$1/stat"; echo "stat $line"
    first /proc/stat; echo "machine $line"
    if [ -n "$quota" ]; then
        { while read -r key value; do
            case $key in throttled_time | throttled_usec) echo "throttle $key $value" ;; esac
        done <"$quota"; } 2>/dev/null
    fi
    echo end
}
facts() {
    section uname; uname -srm
    section cpu; grep -m 1 -E '^(model name|Model)' /proc/cpuinfo; grep -m 1 -E '^(flags|Features)' /proc/cpuinfo
    section machine; grep '^cpu' /proc/stat
    section connection; echo "$SSH_CONNECTION"
    section addresses; ip -o addr show
    section net
    for dir in /sys/class/net/*; do
        for file in address speed duplex statistics/rx_packets statistics/tx_packets statistics/rx_errors statistics/tx_errors statistics/collisions; do
            [ -r "$dir/$file" ] && echo "${dir##*/} $file $(cat "$dir/$file")"
        done
    done
    section tools
    for tool in eke wg hpnssh hpnsshd; do command -v $tool; done
    section wireguard; [ -d /sys/module/wireguard ] && echo loaded
    section fips; cat /proc/sys/crypto/fips_enabled
    echo end
}
echo eke-link-1
while read -r verb number; do
    case $verb in
    facts) facts 2>/dev/null ;;
    sample) sample "${number:-$server}" ;;
    send) head -c "$number" /dev/zero ;;
    take) head -c "$number" >/dev/null; echo taken ;;
    # It prints its port, and ends with the next line.
    bare) eke lab link-end 2>/dev/null || echo none ;;
    echo) dd bs=64 count="$number" 2>/dev/null ;;
    esac
done
