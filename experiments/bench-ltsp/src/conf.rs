//! The texts of LTSP's files, of the server's, and of the client's image. Pure.

use crate::plan::{Means, addresses};

/// The server's address.
pub const SERVER: &str = "192.168.67.1";
/// The unit that stands for a display manager: it runs the script that came with `ltsp.img`.
pub const DISPLAY_MANAGER: &str = "[Unit]\nDescription=the stand-in of a desktop\nAfter=systemd-user-sessions.service\n\
    [Service]\nExecStart=/bin/sh -c 'exec /bin/sh /etc/ltsp/eke-bench/desktop.sh </dev/null >/dev/virtio-ports/eke 2>&1'\n\
    [Install]\nWantedBy=multi-user.target\n";
/// Modules of the clients' initrd. With LTSP's own hook it has the drivers of all network cards: 73 MB unpacked, with which a client of 124 MB
/// does not boot.
pub const INITRD_MODULES: &str =
    "virtio_pci\nvirtio_net\nvirtio_console\nsquashfs\noverlay\nloop\nnfs\nnfsv3\n";

/// What the clients' kernel gets beside the arguments of LTSP's menu.
const KERNEL_PARAMETERS: &str = "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off no_timer_check";

/// `ltsp.conf`: the menu is not shown, and the clients log in by themselves, so their accounts are not merged with the server's.
#[must_use]
pub fn ltsp_conf(means: Means) -> String {
    let own = match means {
        Means::Plain => "",
        // Right of "||": LTSP ends the boot if a line of ltsp.conf fails.
        Means::ZramScript => {
            "POST_INIT_ZRAM=\"modprobe zram && awk '/^MemTotal/ { print int(\\$2 / 2) \\\"K\\\" }' /proc/meminfo >/sys/block/zram0/disksize && \
             mkswap /dev/zram0 >/dev/null && swapon -p 100 /dev/zram0 || true\"\n"
        }
        Means::Eke | Means::EkeAgain => "EKE=auto\nEKE_METRICS=on\n",
    };
    format!(
        "[server]\nMENU_TIMEOUT=-1\nKERNEL_PARAMETERS=\"{KERNEL_PARAMETERS}\"\n[common]\n[clients]\nPAM_AUTH_TYPE=0\n{own}"
    )
}

/// NFS in user space, version 3, as LTSP's clients use it.
#[must_use]
pub fn ganesha() -> String {
    format!(
        "NFS_CORE_PARAM {{ Protocols = 3; mount_path_pseudo = false; Enable_NLM = false; Enable_RQUOTA = false; Bind_addr = {SERVER}; }}\n\
         EXPORT {{ Export_Id = 1; Path = /srv/ltsp; Pseudo = /srv/ltsp; Access_Type = RO; Squash = No_root_squash; SecType = sys; \
         Protocols = 3; Transports = TCP,UDP; FSAL {{ Name = VFS; }} }}\n"
    )
}

/// dnsmasq as `ltsp dnsmasq` sets it up: addresses and TFTP, no DNS. The clients' ROM is iPXE already, so it gets LTSP's menu at once.
#[must_use]
pub fn dnsmasq(clients: usize) -> String {
    let hosts: String = (0..clients)
        .map(|client| {
            let (mac, ip) = addresses(client);
            format!("dhcp-host={mac},{ip},pc{:02}\n", client + 1)
        })
        .collect();
    format!(
        "port=0\nuser=root\ninterface=br0\nbind-interfaces\nenable-tftp\ntftp-root=/srv/tftp\ndhcp-boot=ltsp/ltsp.ipxe\ndhcp-range=192.168.67.20,192.168.67.250,12h\n{hosts}"
    )
}

/// The server, as process 1 of a namespace: with it everything ends. `$1` is its tree.
pub const SERVER_SCRIPT: &str = "set -e; cd \"$1\"; mount --make-rprivate /; mount --bind . .; cd \"$1\"\n\
    mount -t proc proc proc; mount --rbind /dev dev; mkdir -p run/rpcbind run/ganesha; rm -f run/rpcbind.lock run/rpcbind.sock\n\
    chroot . rpcbind -w -f & chroot . ganesha.nfsd -F -L /dev/stdout -f /etc/ganesha/ganesha.conf & chroot . dnsmasq -k -C /etc/eke-dnsmasq.conf --log-facility=- &\n\
    wait\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ekes_clients_have_its_line() {
        assert!(ltsp_conf(Means::Eke).contains("\nEKE=auto\n"));
        assert!(!ltsp_conf(Means::Plain).contains("EKE") && !ltsp_conf(Means::ZramScript).contains("EKE="));
    }

    #[test]
    fn a_shell_takes_ltsp_conf_and_the_servers_script() {
        let assigned = ltsp_conf(Means::ZramScript)
            .lines()
            .filter(|l| !l.starts_with('['))
            .fold(String::new(), |text, line| text + line + "\n");
        let checked = format!("{assigned}sh -n -c \"$POST_INIT_ZRAM\" && printf %s \"$POST_INIT_ZRAM\"");
        let output = std::process::Command::new("sh").args(["-c", &checked]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("{ print int($2 / 2) \"K\" }"), "{text}");
        assert!(
            std::process::Command::new("sh").args(["-n", "-c", SERVER_SCRIPT]).status().unwrap().success()
        );
    }

    #[test]
    fn every_client_has_its_lease_and_ltsps_menu() {
        assert!(dnsmasq(1).contains("\ndhcp-boot=ltsp/ltsp.ipxe\n"));
        assert!(dnsmasq(2).contains("dhcp-host=52:54:00:6b:65:02,192.168.67.22,pc02\n"));
    }
}
