//! Which tracepoints the kernel describes to BPF programs.

use std::io::Read;

/// Reports for each name whether the kernel's BTF (`/sys/kernel/btf/vmlinux`, since Linux 5.4) has it as a whole string. BTF is 5 MB; reading it in
/// chunks avoids a parser's memory, which is several times that.
///
/// # Errors
/// A read error of `btf`.
pub fn named(mut btf: impl Read, names: &[&str]) -> std::io::Result<Vec<bool>> {
    let patterns: Vec<Vec<u8>> = names.iter().map(|name| [b"\0", name.as_bytes(), b"\0"].concat()).collect();
    let overlap = patterns.iter().map(Vec::len).max().unwrap_or(1) - 1;
    let mut found = vec![false; names.len()];
    let mut chunk = Vec::new();
    loop {
        let old = chunk.len();
        let got = btf.by_ref().take(1 << 16).read_to_end(&mut chunk)?;
        for (found, pattern) in found.iter_mut().zip(&patterns) {
            *found |= chunk.windows(pattern.len()).any(|window| window == pattern);
        }
        if got == 0 || found.iter().all(|found| *found) {
            return Ok(found);
        }
        chunk.drain(..(old + got).saturating_sub(overlap));
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
        btf.extend(b"\0last\0");
        let found = named(&btf[..], &["seam_name", "other", "othe", "ther", "last", "none"]).unwrap();
        assert_eq!(found, [true, true, false, false, true, false]);
    }
}
