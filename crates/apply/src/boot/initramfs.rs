//! Finds the modules that the early boot needs for our words, and adds them to the configuration of each initramfs
//! generator.
//!
//! zswap loads its compressor before the root file system is mounted. If the module is not in the initramfs, the kernel
//! silently uses its default compressor.

use super::shell;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// initramfs-tools: one module per line.
pub const INITRAMFS_TOOLS: &str = "etc/initramfs-tools/modules";
/// dracut: our drop-in.
pub const DRACUT: &str = "etc/dracut.conf.d/eke.conf";
/// mkinitcpio's configuration file.
pub const MKINITCPIO: &str = "etc/mkinitcpio.conf";
/// mkinitcpio's directory of drop-ins (since v36).
pub const MKINITCPIO_DROP_INS: &str = "etc/mkinitcpio.conf.d";
/// Our drop-in.
pub const MKINITCPIO_DROP_IN: &str = "etc/mkinitcpio.conf.d/eke.conf";

const WRITTEN_BY: &str = "# Written by `eke swap boot-config`; `eke swap boot-config --undo` removes it.";

/// `/etc/initramfs-tools/modules` with a line for each missing module.
pub fn tools_with_modules(text: &str, modules: &[String]) -> String {
    let listed = |module: &str| {
        text.lines().any(|line| line.split_whitespace().next().is_some_and(|m| same(m, module)))
    };
    let missing = modules.iter().filter(|m| !listed(m));
    missing.fold(text.to_owned(), |text, module| shell::with_line(&text, module))
}

/// dracut's drop-in.
pub fn dracut_conf(modules: &[String]) -> String {
    format!("{WRITTEN_BY}\nadd_drivers+=\" {} \"\n", modules.join(" "))
}

/// mkinitcpio's drop-in.
pub fn mkinitcpio_conf(modules: &[String]) -> String {
    format!("{WRITTEN_BY}\nMODULES+=({})\n", modules.join(" "))
}

/// `mkinitcpio.conf` with the modules in its last `MODULES=(...)`.
///
/// # Errors
/// A list that only a shell can evaluate.
pub fn mkinitcpio_with_modules(text: &str, modules: &[String]) -> Result<String> {
    let Some(open) = last_array(text) else {
        return match text.lines().any(|line| line.trim_start().starts_with("MODULES=")) {
            true => Err(Error::Refused("its MODULES is not a list in parentheses".into())),
            false => Ok(shell::with_line(text, &format!("MODULES=({})", modules.join(" ")))),
        };
    };
    let len =
        text[open..].find(')').ok_or_else(|| Error::Refused("its MODULES list is not closed".into()))?;
    let list = &text[open..open + len];
    if list.contains(['#', '(', '$', '`', '"', '\'', '\\']) {
        return Err(Error::Refused(format!("its MODULES list contains more than names: ({list})")));
    }
    let missing: Vec<&str> = modules
        .iter()
        .map(String::as_str)
        .filter(|m| !list.split_whitespace().any(|there| same(there, m)))
        .collect();
    if missing.is_empty() {
        return Ok(text.to_owned());
    }
    let end = open + list.trim_end().len();
    let space = if list.trim().is_empty() { "" } else { " " };
    Ok(format!("{}{space}{}{}", &text[..end], missing.join(" "), &text[end..]))
}

/// Offset after the opening parenthesis of the last list of modules.
fn last_array(text: &str) -> Option<usize> {
    let mut at = 0;
    let mut last = None;
    for line in text.split_inclusive('\n') {
        let body = line.trim_start();
        let list = ["MODULES=(", "MODULES+=("].iter().find_map(|start| body.strip_prefix(start));
        last = list.map(|list| at + line.len() - list.len()).or(last);
        at += line.len();
    }
    last
}

/// The kernel does not distinguish `-` and `_` in a module's name.
fn same(a: &str, b: &str) -> bool {
    a.replace('-', "_") == b.replace('-', "_")
}

/// Modules for the initramfs, and a sentence for each kernel that lacks one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needed {
    /// Modules that must be in the initramfs.
    pub modules: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// The `modules` that some installed kernel has not built in.
pub fn needed(root: &Root, modules: &[String]) -> Result<Needed> {
    let base = if root.exists("lib/modules") { "lib/modules" } else { "usr/lib/modules" };
    let mut needed = Needed::default();
    let kernels = root.list(base)?;
    for module in modules {
        let mut as_module = kernels.is_empty();
        for kernel in &kernels {
            match kind(root, &format!("{base}/{kernel}"), module)? {
                Kind::BuiltIn => {}
                Kind::Module => as_module = true,
                Kind::Missing => needed.notes.push(format!(
                    "kernel {kernel} has no module {module}: there, zswap will use its default compressor"
                )),
            }
        }
        match as_module {
            true => needed.modules.push(module.clone()),
            false => needed.notes.push(format!(
                "{module} is not added to the initramfs: no installed kernel has it as a module"
            )),
        }
    }
    Ok(needed)
}

enum Kind {
    BuiltIn,
    Module,
    Missing,
}

fn kind(root: &Root, dir: &str, module: &str) -> Result<Kind> {
    let has = |file: &str| -> Result<Option<bool>> {
        Ok(root.read_if_exists(format!("{dir}/{file}"))?.map(|text| lists(&text, module)))
    };
    Ok(match (has("modules.builtin")?, has("modules.dep")?) {
        (Some(true), _) => Kind::BuiltIn,
        (_, Some(false)) => Kind::Missing,
        _ => Kind::Module,
    })
}

/// Whether a `modules.builtin` or `modules.dep` lists the module: `kernel/crypto/zstd.ko.xz: kernel/...`
fn lists(text: &str, module: &str) -> bool {
    text.lines().any(|line| {
        let path = line.split(':').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        file.split_once(".ko").is_some_and(|(name, _)| same(name, module))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules() -> Vec<String> {
        ["zstd", "lzo-rle"].map(str::to_owned).into()
    }

    #[test]
    fn tools_get_one_line_each() {
        assert_eq!(tools_with_modules("# list\next4", &modules()), "# list\next4\nzstd\nlzo-rle\n");
        assert_eq!(tools_with_modules("lzo_rle x=1\n#zstd\n", &modules()), "lzo_rle x=1\n#zstd\nzstd\n");
    }

    #[test]
    fn mkinitcpios_list_grows_where_it_stands() {
        let edit = |text| mkinitcpio_with_modules(text, &modules()).unwrap();
        assert_eq!(
            edit("# MODULES=(a)\nMODULES=()\nHOOKS=(base)\n"),
            "# MODULES=(a)\nMODULES=(zstd lzo-rle)\nHOOKS=(base)\n"
        );
        assert_eq!(edit("MODULES=( ext4 zstd )"), "MODULES=( ext4 zstd lzo-rle )");
        assert_eq!(edit("MODULES=(\n  ext4\n)\n"), "MODULES=(\n  ext4 zstd lzo-rle\n)\n");
        assert_eq!(edit("HOOKS=(base)\n"), "HOOKS=(base)\nMODULES=(zstd lzo-rle)\n");
        for odd in ["MODULES=\"a\"\n", "MODULES=(a # b)\n", "MODULES=(a\n"] {
            assert!(mkinitcpio_with_modules(odd, &modules()).is_err(), "{odd}");
        }
    }

    #[test]
    fn kernels_list_their_modules() {
        assert!(lists("kernel/crypto/zstd.ko.xz: kernel/lib/zstd/zstd_compress.ko.xz\n", "zstd"));
        assert!(lists("kernel/crypto/lzo-rle.ko\n", "lzo_rle"));
        assert!(!lists("kernel/lib/zstd/zstd_compress.ko: kernel/crypto/zstd.ko\n", "zstd"));
    }

    proptest::proptest! {
        #[test]
        fn twice_is_once(text in "((MODULES=\\(|MODULES\\+=\\(|zstd|lzo_rle|a| |\n|\\)|#|ü){0,14})") {
            let once = tools_with_modules(&text, &modules());
            proptest::prop_assert_eq!(tools_with_modules(&once, &modules()), once);
            if let Ok(once) = mkinitcpio_with_modules(&text, &modules()) {
                proptest::prop_assert_eq!(mkinitcpio_with_modules(&once, &modules()).unwrap(), once);
            }
        }
    }
}
