//! Selects the module files of a machine. Pure: from the texts of modules.dep, modules.builtin and modules.alias to
//! names.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{Error, Result};

/// Modules that a kernel may lack: newer ones have no zbud and z3fold, and checksums are no modules.
const OPTIONAL: [&str; 4] = ["zbud", "z3fold", "crc32c_generic", "crc32c_intel"];

/// The kernel's modules and their dependencies, as written by depmod.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// By name: the file in the modules' directory, and the modules to load before it, the last one first.
    files: BTreeMap<String, (String, Vec<String>)>,
    builtin: BTreeSet<String>,
}

impl Catalogue {
    /// Reads the texts of `modules.dep` and `modules.builtin`.
    #[must_use]
    pub fn parse(dep: &str, builtin: &str) -> Self {
        let files = dep.lines().filter_map(parse_dependency).collect();
        Self { files, builtin: builtin.lines().map(module_name).collect() }
    }

    /// The files (in the modules' directory) of `wanted` and their dependencies, in loading order. Built-in modules
    /// need no file, and old ones may be missing.
    ///
    /// # Errors
    /// [`Error::Module`] for a name that this kernel does not have, or has only compressed.
    pub fn load_order(&self, wanted: &[String]) -> Result<Vec<String>> {
        let mut order = Vec::new();
        for name in wanted {
            self.add(&module_name(name), &mut order)?;
        }
        Ok(order)
    }

    fn add(&self, name: &str, order: &mut Vec<String>) -> Result<()> {
        let Some((file, needs)) = self.files.get(name) else {
            let is_dispensable = self.builtin.contains(name) || OPTIONAL.contains(&name);
            return if is_dispensable { Ok(()) } else { Err(unknown(name)) };
        };
        if order.contains(file) {
            return Ok(());
        }
        if !file.ends_with(".ko") {
            return Err(compressed(name, file));
        }
        for need in needs.iter().rev() {
            self.add(need, order)?;
        }
        order.push(file.clone());
        Ok(())
    }
}

/// The lines of `modules.dep` for the copied files, so that modprobe in the machine does not search for others.
#[must_use]
pub fn trim_dependencies(dep: &str, files: &[String]) -> String {
    keep_lines(dep, |line| {
        line.split_once(':').is_some_and(|(file, _)| files.iter().any(|kept| kept == file))
    })
}

/// The lines of `modules.alias` for the copied files: the kernel requests modules by aliases ("crypto-zstd").
#[must_use]
pub fn trim_aliases(alias: &str, files: &[String]) -> String {
    let names: BTreeSet<String> = files.iter().map(|file| module_name(file)).collect();
    keep_lines(alias, |line| {
        line.split_whitespace().nth(2).is_some_and(|name| names.contains(&module_name(name)))
    })
}

fn keep_lines(text: &str, keep: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| keep(line)).map(|line| format!("{line}\n")).collect()
}

fn parse_dependency(line: &str) -> Option<(String, (String, Vec<String>))> {
    let (file, needs) = line.split_once(':')?;
    Some((module_name(file), (file.to_owned(), needs.split_whitespace().map(module_name).collect())))
}

/// "kernel/lib/lz4/lz4hc-compress.ko.xz" and "lz4hc-compress" are both the module "lz4hc_compress".
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

fn unknown(name: &str) -> Error {
    let problem = "neither in this kernel's modules.dep nor in its modules.builtin".to_owned();
    Error::Module { name: name.to_owned(), problem }
}

fn compressed(name: &str, file: &str) -> Error {
    let problem = format!("{file} is compressed; only plain .ko files are supported");
    Error::Module { name: name.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::{Catalogue, trim_aliases, trim_dependencies};

    const DEP: &str = "kernel/a/zram.ko: kernel/mm/zsmalloc.ko\nkernel/mm/zsmalloc.ko:\n\
        kernel/fs/ext4.ko: kernel/fs/jbd2.ko kernel/lib/crc-16.ko\nkernel/fs/jbd2.ko: kernel/lib/crc-16.ko\n\
        kernel/lib/crc-16.ko:\nkernel/x/odd.ko.xz:\n";
    const BUILTIN: &str = "kernel/mm/zbud.ko\n";

    fn order(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        Catalogue::parse(DEP, BUILTIN).load_order(&names).map_err(|error| error.to_string())
    }

    #[test]
    fn dependencies_come_first_and_once() {
        let files = order(&["ext4", "zram", "crc_16", "zbud"]).unwrap();
        let expected = ["lib/crc-16", "fs/jbd2", "fs/ext4", "mm/zsmalloc", "a/zram"];
        assert_eq!(files, expected.map(|file| format!("kernel/{file}.ko")));
    }

    #[test]
    fn unknown_and_compressed_modules_have_different_errors() {
        assert!(order(&["nope"]).unwrap_err().contains("neither in"));
        assert!(order(&["odd"]).unwrap_err().contains("is compressed"));
    }

    #[test]
    fn only_copied_modules_stay_in_the_lists() {
        let files = order(&["zram"]).unwrap();
        assert_eq!(trim_dependencies(DEP, &files).lines().count(), 2);
        let alias = "alias crypto-zstd zstd\nalias block-zram zram\nalias fs-ext4 ext4\n";
        assert_eq!(trim_aliases(alias, &files), "alias block-zram zram\n");
    }
}
