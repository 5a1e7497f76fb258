//! Block devices by name and number, from `/sys/block`.

use std::collections::BTreeMap;

use eke_linux::Root;
use eke_linux::device::Device;

/// All disks: the number as the BPF programs have it (`major << 20 | minor`), and the name.
pub fn by_number(root: &Root) -> BTreeMap<u32, String> {
    let names = root.list("sys/block").unwrap_or_default();
    let numbered = names.into_iter().filter_map(|name| {
        let text = root.read(format!("sys/block/{}/dev", directory(&name))).ok()?;
        Some((text.parse::<Device>().ok()?.kernel(), name.replace('!', "/")))
    });
    numbered.collect()
}

/// The directory of a disk in `/sys/block`, which has `!` for each slash of the name.
pub fn directory(name: &str) -> String {
    name.replace('/', "!")
}

/// The disk that a text names: `sda`, `/dev/sda`, or one of its partitions, which are directories in the disk's.
///
/// # Errors
/// There is none; the message lists all disks.
pub fn named(root: &Root, text: &str) -> Result<String, String> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let all: Vec<String> = root.list("sys/block").unwrap_or_default();
    let directory = directory(name);
    if all.contains(&directory) {
        return Ok(name.to_owned());
    }
    let holds = |disk: &&String| {
        !directory.is_empty() && root.exists(format!("sys/block/{disk}/{directory}/partition"))
    };
    if let Some(disk) = all.iter().find(holds) {
        return Ok(disk.replace('!', "/"));
    }
    let known: Vec<String> = all.iter().map(|name| name.replace('!', "/")).collect();
    Err(format!(
        "there is no block device \"{text}\" ({} does not exist); there are: {}",
        root.path(format!("sys/block/{directory}")).display(),
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn devices_are_found_by_name_path_and_partition() {
        let machine = FakeKernel::new();
        let root = machine.root();
        for (path, text) in
            [("sda/dev", "8:0\n"), ("sda/sda1/partition", "1\n"), ("cciss!c0d0/dev", "104:16\n")]
        {
            machine.put(&format!("sys/block/{path}"), text);
        }
        let found = |text| named(&root, text);
        assert_eq!(found("sda").unwrap(), "sda");
        assert_eq!(found("/dev/sda1").unwrap(), "sda");
        assert_eq!(found("/dev/cciss/c0d0").unwrap(), "cciss/c0d0");
        let refused = found("sdq").unwrap_err();
        assert!(refused.contains("sys/block/sdq") && refused.contains("sda"), "{refused}");
        assert!(found("").is_err() && found("../sda").is_err());
        assert_eq!(by_number(&root)[&(104 << 20 | 16)], "cciss/c0d0");
    }
}
