//! A kubelet that does not start while swap is on.

use crate::machine::Fake;

const KUBELET: &str = "etc/systemd/system/multi-user.target.wants/kubelet.service";

/// A node of kubeadm, whose kubelet is enabled and does not run yet, as at boot.
#[test]
fn an_enabled_kubelet_refuses_swap_unless_its_configuration_allows_it() {
    assert_eq!(Fake::new().facts().kubelet, None);
    let enabled = || {
        let fake = Fake::new();
        fake.link(KUBELET, "/usr/lib/systemd/system/kubelet.service");
        fake
    };
    let found = Some(format!("/{KUBELET}"));
    assert_eq!(enabled().facts().kubelet, found, "installed, and in no cluster yet");
    let config = |text| enabled().file("var/lib/kubelet/config.yaml", text).facts().kubelet;
    assert_eq!(config("failSwapOn: true\n"), found);
    assert_eq!(config("failSwapOn: false\n"), None);
    let allows = "KUBELET_EXTRA_ARGS=--fail-swap-on=false\n";
    for file in ["var/lib/kubelet/kubeadm-flags.env", "etc/default/kubelet", "etc/sysconfig/kubelet"] {
        assert_eq!(enabled().file(file, allows).facts().kubelet, None, "{file}");
    }
    let drop_in = enabled();
    drop_in.file(
        "etc/systemd/system/kubelet.service.d/20-swap.conf",
        "[Service]\nEnvironment=\"KUBELET_EXTRA_ARGS=--fail-swap-on=false\"\n",
    );
    assert_eq!(drop_in.facts().kubelet, None);
    let elsewhere = enabled();
    elsewhere
        .file("usr/lib/systemd/system/kubelet.service", "ExecStart=/usr/bin/kubelet --config=/etc/k/config\n")
        .file("etc/k/config", "{\"failSwapOn\": false}");
    assert_eq!(elsewhere.facts().kubelet, None);
}

#[test]
fn a_running_kubelet_refuses_swap_unless_its_options_allow_it() {
    let runs = |command: &str, status: &str| {
        let fake = Fake::new();
        fake.file("proc/812/comm", "kubelet\n").file("proc/812/cmdline", &command.replace(' ', "\0"));
        fake.file("proc/812/status", status).link("proc/812/exe", "/usr/bin/kubelet");
        fake.file("etc/k.yaml", "failSwapOn: false\n").file("etc/k.d/10-swap.conf", "failSwapOn: false\n");
        // what is enabled counts for nothing while one runs
        fake.link(KUBELET, "/usr/lib/systemd/system/kubelet.service").facts().kubelet
    };
    let root = "Uid:\t0\t0\t0\t0\nNSpid:\t812\n";
    let found = Some("process 812".to_owned());
    assert_eq!(runs("/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf", root), found);
    assert_eq!(runs("/usr/bin/kubelet --config=/etc/k.yaml --fail-swap-on=true", root), found);
    for allowed in
        ["--fail-swap-on=false", "--config=/etc/k.yaml", "--config-dir=/etc/k.d", "--config /etc/k.yaml"]
    {
        assert_eq!(runs(&format!("/usr/bin/kubelet {allowed}"), root), None, "{allowed}");
    }
}

/// kubeadm's files are root's. Here directories stand for them, which nobody can read as files.
#[test]
fn a_file_of_kubelet_that_cannot_be_read_is_named_unless_another_allows_swap() {
    let facts_of = |unreadable: &str, config: &str| {
        let fake = Fake::new();
        fake.link(KUBELET, "/usr/lib/systemd/system/kubelet.service").file(&format!("{unreadable}/x"), "");
        if !config.is_empty() {
            fake.file("var/lib/kubelet/config.yaml", config);
        }
        let facts = fake.facts();
        let why = facts.missing.into_iter().find(|m| m.what == "kubelet").map(|m| m.why);
        (facts.kubelet, why.unwrap_or_default())
    };
    let (config, flags) = ("var/lib/kubelet/config.yaml", "var/lib/kubelet/kubeadm-flags.env");
    for (unreadable, text) in [(config, ""), (flags, ""), (flags, "failSwapOn: true\n")] {
        let (found, why) = facts_of(unreadable, text);
        assert_eq!(found, None, "{unreadable}");
        assert!(why.starts_with(&format!("cannot read /{unreadable}, which may say")), "{why}");
    }
    assert_eq!(facts_of(flags, "failSwapOn: false\n"), (None, String::new()));
    assert_eq!(
        facts_of("elsewhere", ""),
        (Some(format!("/{KUBELET}")), String::new()),
        "absent, as by default"
    );
}

/// kind runs one in a container, and anybody may call a program so.
#[test]
fn a_kubelet_of_a_container_or_of_a_user_is_not_this_nodes() {
    let runs = |status: &str| {
        let fake = Fake::new();
        fake.file("proc/812/comm", "kubelet\n").file("proc/812/cmdline", "kubelet");
        fake.file("proc/812/status", status).facts().kubelet
    };
    assert_eq!(runs("Uid:\t0\t0\t0\t0\nNSpid:\t812\t97\n"), None);
    assert_eq!(runs("Uid:\t1000\t1000\t1000\t1000\nNSpid:\t812\n"), None);
    assert_eq!(runs("Uid:\t0\t0\t0\t0\n").as_deref(), Some("process 812"), "before Linux 4.1");
}
