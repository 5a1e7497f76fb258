//! Text of kernel and configuration files as data. Takes text, never paths.

use eke_linux::parse::process_status;

use crate::facts::Hardware;

/// The value of `key=` on the kernel's command line; the last one of several. Quoted blanks are not supported.
pub fn cmdline_value<'a>(cmdline: &'a str, key: &str) -> Option<&'a str> {
    cmdline.split_ascii_whitespace().filter_map(|w| w.strip_prefix(key)?.strip_prefix('=')).next_back()
}

/// The value of `KEY=` in a shell-like file, without quotes and outside comments.
pub fn shell_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text
        .lines()
        .filter_map(|l| l.trim().strip_prefix(key)?.trim_start().strip_prefix('='))
        .next_back()?;
    Some(line.trim().trim_matches(['"', '\'']))
}

/// The sections of an INI file that name a zram device: `[zram0]`.
pub fn zram_sections(text: &str) -> Vec<String> {
    let name = |l: &str| Some(l.trim().strip_prefix('[')?.strip_suffix(']')?.trim().to_owned());
    text.lines().filter_map(name).filter(|n| eke_linux::zram::number(n).is_some()).collect()
}

/// The profiles that a profile of tuned includes, and the settings that eke has, too, as knobs (tuned.conf(5)).
pub fn tuned_profile(text: &str) -> (Vec<String>, Vec<String>) {
    const KNOBS: [(&str, &str); 7] = [
        ("vm.swappiness", "vm.swappiness"),
        ("vm.page-cluster", "vm.page-cluster"),
        ("vm.dirty_bytes", "vm.dirty_bytes"),
        ("vm.dirty_background_bytes", "vm.dirty_background_bytes"),
        ("vm.dirty_ratio", "vm.dirty_ratio"),
        ("vm.dirty_background_ratio", "vm.dirty_background_ratio"),
        ("elevator", "queue.scheduler"),
    ];
    let (mut includes, mut sets) = (Vec::new(), Vec::new());
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let key = key.trim();
        if key == "include" {
            includes
                .extend(value.split([',', ' ']).filter(|name| !name.is_empty()).map(|n| n.trim().to_owned()));
        }
        sets.extend(KNOBS.iter().filter(|(option, _)| *option == key).map(|(_, knob)| (*knob).to_owned()));
    }
    (includes, sets)
}

/// The values that a file of sysctl.d(5) gives to knobs of a plan for swap. A key may have slashes in place of dots, and a `-` before it.
pub fn sysctl_values(text: &str) -> Vec<(&'static str, u32)> {
    const KNOBS: [&str; 2] = ["vm.swappiness", "vm.page-cluster"];
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let values = lines.filter_map(|line| line.split_once('='));
    let known = values.filter_map(|(key, value)| {
        let key = key.trim().trim_start_matches('-').replace('/', ".");
        let knob = KNOBS.into_iter().find(|knob| *knob == key)?;
        let value: u32 = value.trim().parse().ok()?;
        Some((knob, value))
    });
    known.collect()
}

/// The compression algorithms of `/proc/crypto`, each once: entries of type `compression`, `scomp` or `acomp`. Without `compress_null`, which copies
/// (crypto/crypto_null.c).
pub fn crypto_compressors(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in text.split("\n\n") {
        let compresses = matches!(crypto_field(entry, "type"), Some("compression" | "scomp" | "acomp"))
            && crypto_field(entry, "name") != Some("compress_null");
        let name = crypto_field(entry, "name");
        if let Some(name) = name.filter(|n| compresses && !names.iter().any(|have| have == n)) {
            names.push(name.to_owned());
        }
    }
    names
}

fn crypto_field<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    entry.lines().find_map(|l| l.strip_prefix(key)?.trim_start().strip_prefix(':')).map(str::trim)
}

/// The algorithms of `/proc/crypto` that hardware compresses for a caller of these `types`: of several drivers of an algorithm the kernel takes the one
/// with the highest priority that has passed its test (crypto_alg_lookup, crypto/api.c).
pub fn crypto_hardware(text: &str, types: &[&str]) -> Vec<Hardware> {
    let mut best: Vec<Hardware> = Vec::new();
    for entry in text.split("\n\n") {
        let field = |key| crypto_field(entry, key);
        let fits = field("type").is_some_and(|t| types.contains(&t))
            && field("selftest").is_none_or(|test| test == "passed");
        let (true, Some(name)) = (fits, field("name")) else { continue };
        let of = |key| field(key).unwrap_or_default().to_owned();
        let found = Hardware {
            algorithm: name.to_owned(),
            driver: of("driver"),
            module: of("module"),
            priority: field("priority").and_then(|p| p.parse().ok()).unwrap_or_default(),
        };
        match best.iter_mut().find(|have| have.algorithm == name) {
            Some(have) if have.priority < found.priority => *have = found,
            Some(_) => {}
            None => best.push(found),
        }
    }
    best.retain(|found| is_hardware(&found.driver));
    best
}

/// The drivers in `drivers/crypto` that compress have one of these words in their names: `deflate-iaa` and `qat_deflate` (Intel), `842-nx`
/// (POWER), `hisi-deflate-acomp` (HiSilicon), `deflate-cavium` (ThunderX). Those on the CPU end in `-generic` and `-scomp`.
fn is_hardware(driver: &str) -> bool {
    driver.split(['-', '_']).any(|word| matches!(word, "iaa" | "qat" | "nx" | "hisi" | "cavium"))
}

/// The algorithms among `known` with a module `.../crypto/NAME.ko` in a list (`modules.builtin`, `modules.dep`).
pub fn crypto_modules(list: &str, known: &[&str]) -> Vec<String> {
    let module = |line: &str| {
        let path = line.split(':').next()?;
        let (dir, file) = path.rsplit_once('/')?;
        let stem = file.split(".ko").next()?;
        dir.ends_with("crypto").then(|| stem.to_owned())
    };
    let names: Vec<String> = list.lines().filter_map(module).collect();
    known.iter().filter(|k| names.iter().any(|n| n == *k)).map(|k| (*k).to_owned()).collect()
}

/// Is `.../NAME.ko`, compressed or not, in `modules.dep`?
pub fn has_module(modules_dep: &str, name: &str) -> bool {
    let files = modules_dep.lines().filter_map(|line| line.split_once(':')).map(|(path, _)| path);
    let mut names = files.filter_map(|path| path.rsplit('/').next()?.split_once(".ko"));
    names.any(|(stem, _)| stem == name)
}

/// Is `option` set (`y` or `m`) in a kernel's configuration?
pub fn config_has(config: &str, option: &str) -> bool {
    config.lines().any(|l| l.strip_prefix(option).is_some_and(|rest| rest == "=y" || rest == "=m"))
}

/// What the options of kubelet say about swap (kubelet(1)); `None` for those that are not given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KubeletOptions {
    /// `--fail-swap-on`, true by default.
    pub fail_swap_on: Option<bool>,
    /// `--config`: the file of its configuration.
    pub config: Option<String>,
    /// `--config-dir`: the directory of drop-ins for it.
    pub config_dir: Option<String>,
}

/// Kubelet's options among the words of a command line; of several the last one counts. A word may be what a variable is set to: `ARGS=--config=x`.
pub fn kubelet_options<'a>(words: impl IntoIterator<Item = &'a str>) -> KubeletOptions {
    let mut options = KubeletOptions::default();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let option = word.find("--").map_or("", |at| &word[at + 2..]);
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        // `--config FILE`; a switch has its value behind `=` only (pflag)
        let mut path = || value.or_else(|| words.next_if(|next| next.starts_with('/'))).map(str::to_owned);
        match name.replace('_', "-").as_str() {
            "fail-swap-on" => options.fail_swap_on = value.map_or(Some(true), boolean),
            "config" => options.config = path(),
            "config-dir" => options.config_dir = path(),
            _ => {}
        }
    }
    options
}

/// The words of a unit or of a file of variables, without comments and quotes.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    lines.flat_map(|line| line.split([' ', '\t', '"', '\'', '\\'])).filter(|word| !word.is_empty())
}

/// `failSwapOn` of kubelet's configuration, as YAML or JSON: the key is in its outermost mapping, and in none within. A value on a line of its own is
/// not found.
pub fn fail_swap_on(config: &str) -> Option<bool> {
    let lines = config.lines().map(|line| line.split(" #").next().unwrap_or_default());
    let pairs =
        lines.filter(|line| !line.trim_start().starts_with('#')).flat_map(|line| line.split([',', '{', '}']));
    pairs.filter_map(|pair| pair.split_once(':')).find_map(|(key, value)| {
        (key.trim().trim_matches(['"', '\'']) == "failSwapOn").then(|| boolean(value.trim())).flatten()
    })
}

/// As Go reads a switch, and YAML 1.1 a boolean.
fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "y" | "yes" | "on" => Some(true),
        "0" | "f" | "false" | "n" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Effective uid 0 and `CAP_SYS_ADMIN` (bit 21) by `/proc/self/status`.
pub fn is_root(status: &str) -> bool {
    let status = process_status::parse(status);
    status.effective_user == Some(0) && status.capabilities.is_none_or(|c| c >> 21 & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_linux::parse::file_system::{Nature, nature};
    use eke_linux::parse::mountinfo;
    use eke_linux::parse::mountinfo::mount_of;
    use proptest::prelude::*;
    use std::path::Path;

    const MOUNTS: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n30 27 8:1 / /home rw shared:2 - btrfs /dev/sda1 rw\n31 27 0:40 / /mnt/my\\040disk rw - nfs4 server:/x rw\n";

    #[test]
    fn the_longest_mount_point_holds_a_path() {
        let m = mountinfo::parse(MOUNTS.as_bytes());
        let source = |path| mount_of(Path::new(path), &m).and_then(|m| m.source.to_str());
        assert_eq!(source("/home/swapfile"), Some("/dev/sda1"));
        assert_eq!(source("/homework"), Some("/dev/vda"));
        assert_eq!(source("/mnt/my disk/swap"), Some("server:/x"));
        assert_eq!(nature(&mount_of(Path::new("/mnt/my disk"), &m).unwrap().kind), Nature::Network);
    }

    #[test]
    fn crypto_keeps_each_compressor_once() {
        let text = "name : lzo\ndriver : lzo-scomp\ntype         : scomp\n\nname : lzo\ntype : compression\n\nname : sha256\ntype : shash\n\nname         : compress_null\ntype         : compression\n\nname         : deflate\ntype : scomp\n";
        assert_eq!(crypto_compressors(text), ["lzo", "deflate"]);
    }

    #[test]
    fn the_driver_with_the_highest_priority_compresses() {
        let entry = |name: &str, driver: &str, module: &str, priority: u32, kind: &str| {
            format!(
                "name         : {name}\ndriver       : {driver}\nmodule       : {module}\npriority     : {priority}\nrefcnt       : 1\nselftest     : passed\ninternal     : no\ntype         : {kind}\n\n"
            )
        };
        let on_the_cpu = entry("deflate", "deflate-scomp", "deflate", 0, "scomp");
        let iaa = entry("deflate", "deflate-iaa", "iaa_crypto", 300, "acomp");
        let qat = entry("deflate", "qat_deflate", "intel_qat", 4001, "acomp");
        let nx = entry("842", "842-nx", "kernel", 300, "compression");
        let for_zswap = |text: &str| {
            let found = crypto_hardware(text, &["scomp", "acomp"]);
            found.iter().map(|h| (h.algorithm.clone(), h.name().to_owned(), h.priority)).collect::<Vec<_>>()
        };
        let deflate = |name: &str, priority| ("deflate".to_owned(), name.to_owned(), priority);
        let both = format!("{on_the_cpu}{iaa}{nx}");
        assert_eq!(for_zswap(&both), [deflate("iaa_crypto", 300)]);
        assert_eq!(for_zswap(&format!("{qat}{both}")), [deflate("intel_qat", 4001)]);
        let unproven = iaa.replace("passed", "unknown");
        assert_eq!(for_zswap(&format!("{on_the_cpu}{unproven}")), []);
        let low = entry("deflate", "deflate-iaa", "iaa_crypto", 0, "acomp");
        assert_eq!(for_zswap(&format!("{on_the_cpu}{low}")), [], "the first of equal ones");
        let for_zram = crypto_hardware(&both, &["compression"]);
        assert_eq!((for_zram.len(), for_zram[0].name()), (1, "842-nx"), "built in: the driver says more");
        assert_eq!(crypto_compressors(&both), ["deflate", "842"]);
    }

    #[test]
    fn a_module_is_found_compressed_or_not() {
        let dep = "kernel/drivers/block/zram/zram.ko.xz: kernel/mm/zsmalloc.ko.xz\nkernel/mm/zsmalloc.ko:\n";
        assert_eq!(["zram", "zsmalloc", "ram"].map(|name| has_module(dep, name)), [true, true, false]);
    }

    #[test]
    fn lists_of_modules_name_loadable_algorithms() {
        let list = "kernel/crypto/zstd.ko.zst: kernel/lib/zstd/zstd_compress.ko.zst\nkernel/drivers/block/zram/zram.ko\nkernel/lib/842/842_compress.ko\nkernel/crypto/842.ko\n";
        assert_eq!(crypto_modules(list, &["deflate", "zstd", "842"]), ["zstd", "842"]);
    }

    #[test]
    fn values_of_command_line_and_shell() {
        assert_eq!(
            cmdline_value("quiet resume=UUID=ab resume=/dev/sda2 resume_offset=5", "resume"),
            Some("/dev/sda2")
        );
        assert_eq!(shell_value("# RESUME=no\nRESUME=\"UUID=ab\"\n", "RESUME"), Some("UUID=ab"));
        assert_eq!(
            zram_sections("# [zram9]\n[zram0]\nzram-size = ram\n[zram1]\n[other]\n"),
            ["zram0", "zram1"]
        );
        assert!(
            config_has("CONFIG_ZRAM=m\n", "CONFIG_ZRAM")
                && !config_has("# CONFIG_ZRAM is not set\nCONFIG_ZRAM_X=y\n", "CONFIG_ZRAM")
        );
    }

    #[test]
    fn kubelets_options_are_found_on_a_command_line_and_in_units() {
        let of = |text: &str| kubelet_options(words(text));
        let kubeadm = "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"\n# KUBELET_EXTRA_ARGS=--fail-swap-on=false\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS\n";
        let options = of(kubeadm);
        assert_eq!(options.config.as_deref(), Some("/var/lib/kubelet/config.yaml"));
        assert_eq!(options.fail_swap_on, None, "a comment");
        for allowed in [
            "KUBELET_EXTRA_ARGS=\"--v=2 --fail-swap-on=false\"\n",
            "Environment='KUBELET_EXTRA_ARGS=--fail-swap-on=false'",
            "ExecStart=/usr/bin/kubelet \\\n  --fail_swap_on=False \\\n  --v=2\n",
            "--fail-swap-on --fail-swap-on=0",
        ] {
            assert_eq!(of(allowed).fail_swap_on, Some(false), "{allowed}");
        }
        assert_eq!(of("kubelet --fail-swap-on --config /a --config-dir=/b").fail_swap_on, Some(true));
        let paths = of("kubelet --config /a --config-dir=/b --fail-swap-on-not=false");
        assert_eq!((paths.config.as_deref(), paths.config_dir.as_deref()), (Some("/a"), Some("/b")));
        assert_eq!(paths.fail_swap_on, None);
    }

    #[test]
    fn kubelets_configuration_says_whether_swap_stops_it() {
        let yaml = "kind: KubeletConfiguration\nfailSwapOn: false # since 1.34\nmemorySwap: {}\n";
        let json = "{\"kind\":\"KubeletConfiguration\",\"failSwapOn\": false,\"x\":{\"y\":1}}";
        for allowed in [yaml, json, "\"failSwapOn\": no\n"] {
            assert_eq!(fail_swap_on(allowed), Some(false), "{allowed}");
        }
        assert_eq!(fail_swap_on("failSwapOn: true\n"), Some(true));
        for unsaid in [
            "",
            "# failSwapOn: false\n",
            "failSwapOnly: false\n",
            "failSwapOn:\n  false\n",
            "failSwapOn: {}\n",
        ] {
            assert_eq!(fail_swap_on(unsaid), None, "{unsaid}");
        }
    }

    #[test]
    fn root_needs_its_capability() {
        assert!(is_root("Uid:\t1000\t0\t0\t0\nCapEff:\t000001fffeffffff\n"));
        assert!(!is_root("Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n"));
        assert!(!is_root("Uid:\t1000\t1000\t1000\t1000\n"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "[\\x00-\\x7fä]{0,300}") {
            let _ = (crypto_compressors(&text), zram_sections(&text), is_root(&text));
            let _ = crypto_hardware(&text, &["scomp"]);
            let _ = (crypto_modules(&text, &["zstd"]), shell_value(&text, "a"), cmdline_value(&text, "a"), config_has(&text, "a"));
            let _ = (tuned_profile(&text), fail_swap_on(&text), kubelet_options(words(&text)));
        }
    }
}
