//! Features of this kernel's zram and zswap.

use eke_apply::knob::Codec;
use eke_linux::error::Result;
use eke_linux::read::kernel_release;
use eke_linux::{Root, parse as kernel_parse, read, zram};
use eke_model::sample::ZramStat;

use super::parse;
use crate::decide::knobs::is_before;
use crate::facts::{Hardware, Missing, ZramFacts, ZramFeatures, ZswapFacts};

/// The kernel's compression modules in `crypto/` (all still in Linux 6.18).
const CRYPTO_MODULES: [&str; 6] = ["deflate", "lzo", "lzo-rle", "842", "lz4", "lz4hc"];
/// zstd is in `crypto/zstd.ko` since Linux 4.18.
const ZSTD: &str = "zstd";

/// zram's features; missing ones go to `missing`.
pub(crate) fn zram(root: &Root, missing: &mut Vec<Missing>) -> ZramFacts {
    let control = root.exists("sys/class/zram-control/hot_add");
    let devices = zram::devices(root).unwrap_or_default();
    let config = kernel_config(root);
    let loadable = !control && parse::has_module(&loadable_modules(root), "zram");
    if !control && !loadable {
        missing.push(Missing::new("zram", why_no_zram(root, config.as_deref())));
    }
    let features = devices.last().and_then(|name| features(root, name).ok());
    let idle_age = config.as_ref().map(|c| {
        parse::config_has(c, "CONFIG_ZRAM_TRACK_ENTRY_ACTIME")
            || parse::config_has(c, "CONFIG_ZRAM_MEMORY_TRACKING")
    });
    if let Some(f) = &features {
        missing.extend(absent_features(f));
    } else if control {
        missing.push(Missing::new(
            "zram algorithms",
            "no zram device exists yet to list them; the measurement makes one",
        ));
    }
    let configured = match features.is_none() && (control || loadable) {
        true => configured(config.as_deref()),
        false => Vec::new(),
    };
    let multi_comp = config.map(|c| parse::config_has(&c, "CONFIG_ZRAM_MULTI_COMP"));
    let hardware = hardware(root, Caller::Zram);
    ZramFacts { control, loadable, devices, features, configured, multi_comp, idle_age, hardware }
}

/// Who has pages compressed.
#[derive(Clone, Copy)]
enum Caller {
    Zram,
    Zswap,
}

/// What compresses in hardware for it. zram has algorithms of its own since Linux 6.12, and took synchronous ones of the crypto API before; zswap took the
/// same until 5.10, and asynchronous ones (acomp) since then.
fn hardware(root: &Root, caller: Caller) -> Vec<Hardware> {
    let release = kernel_release(root);
    let types: &[&str] = match caller {
        Caller::Zram if is_before(&release, (6, 12)) => &["compression"],
        Caller::Zram => &[],
        Caller::Zswap if is_before(&release, (5, 11)) => &["compression"],
        Caller::Zswap => &["scomp", "acomp"],
    };
    parse::crypto_hardware(&root.read("proc/crypto").unwrap_or_default(), types)
}

/// zram's algorithms by the kernel's configuration: back ends of its own since Linux 6.12, those of the crypto API before.
fn configured(config: Option<&str>) -> Vec<String> {
    const USUAL: [&str; 4] = ["lzo-rle", "lzo", "lz4", "zstd"];
    const OPTIONS: [(&str, &[&str]); 6] = [
        ("LZO", &["lzo-rle", "lzo"]),
        ("LZ4", &["lz4"]),
        ("LZ4HC", &["lz4hc"]),
        ("ZSTD", &["zstd"]),
        ("DEFLATE", &["deflate"]),
        ("842", &["842"]),
    ];
    let has = |prefix: &str, option: &str| {
        config.is_some_and(|c| parse::config_has(c, &format!("CONFIG_{prefix}_{option}")))
    };
    let named = |prefix: &str| -> Vec<String> {
        let there = OPTIONS.into_iter().filter(|(option, _)| has(prefix, option));
        there.flat_map(|(_, names)| names.iter().map(|n| (*n).to_owned())).collect()
    };
    let own = named("ZRAM_BACKEND");
    let found = if own.is_empty() { named("CRYPTO") } else { own };
    if found.is_empty() { USUAL.map(str::to_owned).into() } else { found }
}

/// Where modules are: in `/lib` or `/usr/lib` on most systems, elsewhere on NixOS.
const MODULES: [&str; 3] = ["lib/modules", "usr/lib/modules", "run/booted-system/kernel-modules/lib/modules"];

/// `modules.dep` or `modules.builtin` of the running kernel; empty if there is none.
fn module_list(root: &Root, file: &str) -> String {
    let release = kernel_release(root);
    MODULES.iter().find_map(|dir| root.read(format!("{dir}/{release}/{file}")).ok()).unwrap_or_default()
}

/// Whether the kernel loads modules: `kernel.modules_disabled` forbids it until the next boot.
fn may_load(root: &Root) -> bool {
    root.read("proc/sys/kernel/modules_disabled").map_or(true, |text| text.trim() != "1")
}

/// `modules.dep`, if the kernel may load what it lists.
fn loadable_modules(root: &Root) -> String {
    if may_load(root) { module_list(root, "modules.dep") } else { String::new() }
}

/// Whether there are modules, but only of other kernels: an update has replaced those of the running one.
fn modules_are_gone(root: &Root) -> bool {
    let others = |dir: &&str| {
        let releases = root.list(dir).unwrap_or_default();
        releases.iter().any(|release| root.exists(format!("{dir}/{release}/modules.dep")))
    };
    module_list(root, "modules.dep").is_empty() && MODULES.iter().any(others)
}

/// Has this kernel the module `name`: loaded, built in, or to load?
pub(crate) fn has_module(root: &Root, name: &str) -> bool {
    let built_in =
        || module_list(root, "modules.builtin").lines().any(|l| l.ends_with(&format!("/{name}.ko")));
    root.exists(format!("sys/module/{}", name.replace('-', "_")))
        || parse::has_module(&loadable_modules(root), name)
        || built_in()
}

/// The algorithms that zram has the kernel load as modules of their own. Since Linux 6.12 they are part of zram, or are loaded with it.
pub(crate) fn algorithm_modules(root: &Root) -> Vec<String> {
    let release = kernel_release(root);
    if !is_before(&release, (6, 12)) {
        return Vec::new();
    }
    crypto_modules(&loadable_modules(root))
}

fn crypto_modules(list: &str) -> Vec<String> {
    let known: Vec<&str> = CRYPTO_MODULES.into_iter().chain([ZSTD]).collect();
    parse::crypto_modules(list, &known)
}

/// The devices that have a disksize.
pub(crate) fn in_use(root: &Root) -> Vec<ZramStat> {
    let stats =
        zram::devices(root).unwrap_or_default().into_iter().filter_map(|name| read::zram_stat(root, &name));
    stats.filter(|z| z.disksize.0 > 0).collect()
}

const GONE: &str = "the modules of the running kernel are gone, as after an update of it: reboot first";

fn why_no_zram(root: &Root, config: Option<&str>) -> &'static str {
    match config {
        _ if !may_load(root) && parse::has_module(&module_list(root, "modules.dep"), "zram") => {
            "its module is not loaded, and kernel.modules_disabled is 1, so none is until the next boot: name it in /etc/modules-load.d to load it before that"
        }
        None if modules_are_gone(root) => GONE,
        Some(c) if parse::config_has(c, "CONFIG_ZRAM") && modules_are_gone(root) => GONE,
        Some(c) if parse::config_has(c, "CONFIG_ZRAM") => {
            "no /sys/class/zram-control, and /lib/modules has no module zram for this kernel"
        }
        Some(_) => "no /sys/class/zram-control: this kernel was built without CONFIG_ZRAM",
        None => {
            "no /sys/class/zram-control, and /lib/modules has no module zram for this kernel, which may be built without CONFIG_ZRAM"
        }
    }
}

fn absent_features(f: &ZramFeatures) -> Vec<Missing> {
    let all = [
        (f.algorithm_params, "zram parameters", "no algorithm_params: the kernel is older than 6.12"),
        (
            f.recompression,
            "zram recompression",
            "no recomp_algorithm: the kernel was built without CONFIG_ZRAM_MULTI_COMP (Linux 6.2)",
        ),
        (
            f.writeback,
            "zram writeback",
            "no backing_dev: the kernel was built without CONFIG_ZRAM_WRITEBACK (Linux 4.14)",
        ),
    ];
    all.iter().filter(|(exists, ..)| !exists).map(|(_, what, why)| Missing::new(*what, *why)).collect()
}

/// The features of device `name`.
///
/// # Errors
/// Its `comp_algorithm` cannot be read.
pub(crate) fn features(root: &Root, name: &str) -> Result<ZramFeatures> {
    let has = |file: &str| root.exists(format!("sys/block/{name}/{file}"));
    Ok(ZramFeatures {
        algorithms: kernel_parse::zram::algorithms(&root.read(format!("sys/block/{name}/comp_algorithm"))?),
        algorithm_params: has("algorithm_params"),
        recompression: has("recomp_algorithm"),
        writeback: has("backing_dev"),
        idle: has("idle"),
        max_comp_streams: has("max_comp_streams"),
    })
}

/// zswap's settings; missing features go to `missing`.
pub(crate) fn zswap(root: &Root, missing: &mut Vec<Missing>) -> Option<ZswapFacts> {
    let text = |file: &str| {
        root.read(format!("sys/module/zswap/parameters/{file}")).ok().map(|t| t.trim().to_owned())
    };
    let number = |file: &str| text(file)?.parse().ok();
    let yes = |t: String| Codec::Bool.same(&t, "Y");
    let Some(enabled) = text("enabled").map(yes) else {
        missing
            .push(Missing::new("zswap", "no /sys/module/zswap: this kernel was built without CONFIG_ZSWAP"));
        return None;
    };
    let shrinker = text("shrinker_enabled").map(yes);
    if shrinker.is_none() {
        missing.push(Missing::new("zswap shrinker", "no shrinker_enabled: the kernel is older than 6.8"));
    }
    Some(ZswapFacts {
        enabled,
        compressor: text("compressor").unwrap_or_default(),
        max_pool_percent: number("max_pool_percent"),
        accept_threshold_percent: number("accept_threshold_percent"),
        shrinker,
        zpool: text("zpool").filter(|now| now == "zsmalloc" || may_have_zsmalloc(root)),
        compressors: compressors(root),
        hardware: hardware(root, Caller::Zswap),
    })
}

/// Whether a kernel with zswap has its best allocator, too. Without a list of what is built in it is assumed: nothing else shows it.
fn may_have_zsmalloc(root: &Root) -> bool {
    has_module(root, "zsmalloc") || module_list(root, "modules.builtin").is_empty()
}

/// Algorithms that are registered, then those that the kernel can load.
fn compressors(root: &Root) -> Vec<String> {
    let mut names = parse::crypto_compressors(&root.read("proc/crypto").unwrap_or_default());
    for list in [module_list(root, "modules.builtin"), loadable_modules(root)] {
        for name in crypto_modules(&list) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The running kernel's configuration: `/proc/config.gz` (`CONFIG_IKCONFIG_PROC`) or `/boot/config-RELEASE`.
fn kernel_config(root: &Root) -> Option<String> {
    if let Ok(compressed) = root.read_bytes("proc/config.gz") {
        let mut text = String::new();
        let read = std::io::Read::read_to_string(
            &mut flate2::read::GzDecoder::new(compressed.as_slice()),
            &mut text,
        );
        return read.is_ok().then_some(text);
    }
    root.read(format!("boot/config-{}", kernel_release(root))).ok()
}
