//! The name of the processor.

/// The first processor's name in `/proc/cpuinfo`; empty if the architecture does not show it.
pub fn processor(cpuinfo: &str) -> String {
    let name = |line: &str| {
        let (key, value) = line.split_once(':')?;
        ["model name", "Model"].contains(&key.trim()).then(|| value.trim().to_owned())
    };
    cpuinfo.lines().find_map(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_a_name_or_none() {
        let x86 = "processor\t: 0\nmodel\t\t: 79\nmodel name\t: Some CPU @ 2.20GHz\n";
        let arm = "processor\t: 0\nCPU part\t: 0xd08\n\nModel\t\t: Raspberry Pi 4\n";
        assert_eq!([x86, arm, ""].map(processor), ["Some CPU @ 2.20GHz", "Raspberry Pi 4", ""]);
    }
}
