//! A kubelet that does not start while swap is on: the node would leave its cluster at the next start.
//!
//! Its `failSwapOn` is true by default (NewContainerManager, pkg/kubelet/cm/container_manager_linux.go). k3s, RKE2, k0s and MicroK8s set it to false, and
//! so do kind and minikube for the kubelets that they run in containers.

use eke_linux::parse::{keyed, process_status};
use eke_linux::{Root, read};

use super::KUBELET;
use super::parse::{self, KubeletOptions};
use super::surroundings::is_roots;
use crate::facts::Missing;

/// The directories of units; in each, `kubelet.service` and its drop-ins.
const UNIT_DIRS: [&str; 5] = [
    "lib/systemd/system",
    "usr/lib/systemd/system",
    "usr/local/lib/systemd/system",
    "run/systemd/system",
    "etc/systemd/system",
];
/// It starts at boot if any of these exists.
const ENABLED: [&str; 4] = [
    "etc/systemd/system/multi-user.target.wants/kubelet.service",
    "usr/lib/systemd/system/multi-user.target.wants/kubelet.service",
    "etc/systemd/system/kubernetes.target.wants/kubelet.service",
    "etc/runlevels/default/kubelet",
];
/// Where kubeadm and the packages keep its options. A later file counts more.
const VARIABLES: [&str; 4] = [
    "etc/conf.d/kubelet",
    "var/lib/kubelet/kubeadm-flags.env",
    "etc/default/kubelet",
    "etc/sysconfig/kubelet",
];
/// Of kubeadm, whose unit passes it on.
const CONFIG: &str = "/var/lib/kubelet/config.yaml";

/// What shows it: a process, or its start at boot. `None`: there is no kubelet, it allows swap, or a file that may allow it cannot be read, as kubeadm's
/// without root; then that file is `missing`.
pub(crate) fn refuses_swap(root: &Root, missing: &mut Vec<Missing>) -> Option<String> {
    let mut files = Files { root, unread: None };
    let (found, options) = match running(root) {
        Some((pid, options)) => (format!("process {pid}"), options),
        None => enabled(&mut files)?,
    };
    match (files.fail_swap_on(&options), files.unread) {
        (Some(false), _) => None,
        (_, Some(file)) => {
            let why =
                format!("cannot read {file}, which may say that kubelet ({found}) starts while swap is on");
            missing.push(Missing::new(KUBELET, why));
            None
        }
        (_, None) => Some(found),
    }
}

/// The link that starts it at boot, with the options.
fn enabled(files: &mut Files<'_>) -> Option<(String, KubeletOptions)> {
    // units are enabled by links, whose targets may be outside this root
    let link = ENABLED.iter().find(|link| files.root.path(link).symlink_metadata().is_ok())?;
    let options = files.options_at_boot();
    let config = options.config.or_else(|| Some(CONFIG.to_owned()));
    Some((format!("/{link}"), KubeletOptions { config, ..options }))
}

/// The kubelet that runs outside containers, with its options.
fn running(root: &Root) -> Option<(u32, KubeletOptions)> {
    let is_kubelet = |pid: &u32| {
        let name = root.read(format!("proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "kubelet" && read::answers(root, *pid) && is_nodes(root, *pid)
    };
    let pid = read::pids(root).into_iter().find(is_kubelet)?;
    let command = root.read(format!("proc/{pid}/cmdline")).ok()?;
    Some((pid, parse::kubelet_options(command.split('\0'))))
}

/// Is it root's, and has it the machine's process numbers (`NSpid`, Linux 4.1)?
fn is_nodes(root: &Root, pid: u32) -> bool {
    let text = root.read(format!("proc/{pid}/status")).unwrap_or_default();
    let numbers = keyed::value(&text, "NSpid").map_or(1, |numbers| numbers.split_whitespace().count());
    numbers == 1 && is_roots(root, pid, &process_status::parse(&text))
}

/// Reads its files.
struct Files<'a> {
    root: &'a Root,
    /// The first file or directory that is there and cannot be read.
    unread: Option<String>,
}

impl Files<'_> {
    /// The options of its next start, from units, drop-ins and files of variables.
    fn options_at_boot(&mut self) -> KubeletOptions {
        let mut all = Vec::new();
        for dir in UNIT_DIRS {
            let drop_ins = format!("{dir}/kubelet.service.d");
            all.push(format!("{dir}/kubelet.service"));
            all.extend(self.names(&drop_ins).into_iter().map(|name| format!("{drop_ins}/{name}")));
        }
        all.extend(VARIABLES.map(str::to_owned));
        let texts: Vec<String> = all.iter().filter_map(|file| self.text(file)).collect();
        parse::kubelet_options(texts.iter().flat_map(|text| parse::words(text)))
    }

    /// Does it fail while swap is on? Options count before drop-ins of the configuration, and these before its file. `None`: nothing says so.
    fn fail_swap_on(&mut self, options: &KubeletOptions) -> Option<bool> {
        if options.fail_swap_on.is_some() {
            return options.fail_swap_on;
        }
        let dir = options.config_dir.as_deref();
        let names = dir.map_or_else(Vec::new, |dir| self.names(dir));
        let drop_ins = names.iter().map(|name| format!("{}/{name}", dir.unwrap_or_default()));
        let said: Vec<bool> = drop_ins.filter_map(|file| self.said(&file)).collect();
        said.last().copied().or_else(|| self.said(options.config.as_ref()?))
    }

    fn said(&mut self, file: &str) -> Option<bool> {
        parse::fail_swap_on(&self.text(file)?)
    }

    fn text(&mut self, file: &str) -> Option<String> {
        self.root.read_if_exists(file).unwrap_or_else(|_| self.cannot_read(file))
    }

    /// The names of `*.conf` in a directory, sorted.
    fn names(&mut self, dir: &str) -> Vec<String> {
        let names = self.root.list(dir).map_or_else(|_| self.cannot_read(dir), Some).unwrap_or_default();
        names.into_iter().filter(|name| name.ends_with(".conf")).collect()
    }

    fn cannot_read<T>(&mut self, path: &str) -> Option<T> {
        self.unread.get_or_insert_with(|| format!("/{}", path.trim_start_matches('/')));
        None
    }
}
