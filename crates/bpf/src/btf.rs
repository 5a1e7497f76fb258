//! Which tracepoints the kernel describes to BPF programs.

use std::io::Read;

/// Reports for each name whether the kernel's BTF (`/sys/kernel/btf/vmlinux`, since Linux 5.4) has it as a whole string. BTF is 5 MB; reading it in
/// chunks avoids a parser's memory, which is several times that.
///
/// # Errors
/// A read error of `btf`.
pub fn named(mut btf: impl Read, names: &[&str]) -> std::io::Result<Vec<bool>> {
    let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let mut found = vec![false; names.len()];
    // What is not searched yet: it begins with the end of a string.
    let mut chunk = Vec::new();
    loop {
        let got = btf.by_ref().take(1 << 16).read_to_end(&mut chunk)?;
        if got == 0 {
            return Ok(found);
        }
        let end = chunk.iter().rposition(|byte| *byte == 0).unwrap_or(0);
        for string in chunk[..end].split(|byte| *byte == 0) {
            for (found, name) in found.iter_mut().zip(names) {
                *found |= string == name.as_bytes();
            }
        }
        // Of a string that is longer than each name, an end that is longer as well is enough.
        chunk.drain(..end.max(chunk.len().saturating_sub(longest + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole_and_across_chunk_borders() {
        let mut btf = vec![b'x'; (1 << 16) - 5];
        btf.extend(b"\0seam_name\0other\0");
        btf.extend(vec![b'y'; 1 << 17]);
        btf.extend(b"long_end\0last\0");
        let names = ["seam_name", "other", "othe", "ther", "last", "none", "long_end"];
        let found = named(&btf[..], &names).unwrap();
        assert_eq!(found, [true, true, false, false, true, false, false]);
    }
}
