//! A kubelet that does not start while swap is on: the node would leave its cluster at the next start.
//!
//! Its `failSwapOn` is true by default (NewContainerManager, pkg/kubelet/cm/container_manager_linux.go). k3s, RKE2, k0s and MicroK8s set it to false, and
//! so do kind and minikube for the kubelets that they run in containers.

use eke_linux::parse::{keyed, process_status};
use eke_linux::{Root, read};

use super::parse::{self, KubeletOptions};
use super::surroundings::is_roots;

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

/// What shows it: a process, or its start at boot. `None`: there is no kubelet, or it allows swap.
pub(crate) fn refuses_swap(root: &Root) -> Option<String> {
    if let Some((pid, options)) = running(root) {
        return fails(root, &options).then(|| format!("process {pid}"));
    }
    // units are enabled by links, whose targets may be outside this root
    let link = ENABLED.iter().find(|link| root.path(link).symlink_metadata().is_ok())?;
    let options = at_boot(root);
    let options = KubeletOptions { config: options.config.or_else(|| Some(CONFIG.to_owned())), ..options };
    fails(root, &options).then(|| format!("/{link}"))
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

/// The options of its next start, from units, drop-ins and files of variables.
fn at_boot(root: &Root) -> KubeletOptions {
    let units = UNIT_DIRS.iter().flat_map(|dir| {
        let drop_ins = format!("{dir}/kubelet.service.d");
        let names = files(root, &drop_ins).map(|name| format!("{drop_ins}/{name}"));
        std::iter::once(format!("{dir}/kubelet.service")).chain(names.collect::<Vec<_>>())
    });
    let all = units.chain(VARIABLES.map(str::to_owned));
    let texts: Vec<String> = all.filter_map(|file| root.read(file).ok()).collect();
    parse::kubelet_options(texts.iter().flat_map(|text| parse::words(text)))
}

/// Does it fail while swap is on? Options count before drop-ins of the configuration, and these before its file.
fn fails(root: &Root, options: &KubeletOptions) -> bool {
    let of = |path: &str| parse::fail_swap_on(&root.read(path).ok()?);
    let drop_ins = || {
        let dir = options.config_dir.as_ref()?;
        files(root, dir).filter_map(|name| of(&format!("{dir}/{name}"))).last()
    };
    let said = options.fail_swap_on.or_else(drop_ins).or_else(|| of(options.config.as_ref()?));
    said.unwrap_or(true)
}

/// The names of `*.conf` in a directory, sorted.
fn files(root: &Root, dir: &str) -> impl Iterator<Item = String> {
    let names = root.list(dir).unwrap_or_default();
    names.into_iter().filter(|name| name.ends_with(".conf"))
}
