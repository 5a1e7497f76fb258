//! Which tracepoints the kernel describes to BPF programs.

use std::io::Read;

/// Which of these names are in the kernel's BTF (`/sys/kernel/btf/vmlinux`, since Linux 5.4), each as one of its strings. It is searched
/// piece by piece: it has 5 MB, of which a parser keeps several times that.
///
/// # Errors
/// The reader's.
pub fn named(mut btf: impl Read, names: &[&str]) -> std::io::Result<Vec<bool>> {
    let wanted: Vec<Vec<u8>> = names.iter().map(|name| [b"\0", name.as_bytes(), b"\0"].concat()).collect();
    let overlap = wanted.iter().map(Vec::len).max().unwrap_or(1) - 1;
    let mut found = vec![false; names.len()];
    let mut piece = Vec::new();
    loop {
        let old = piece.len();
        let got = btf.by_ref().take(1 << 16).read_to_end(&mut piece)?;
        for (found, wanted) in found.iter_mut().zip(&wanted) {
            *found |= piece.windows(wanted.len()).any(|window| window == wanted);
        }
        if got == 0 || found.iter().all(|found| *found) {
            return Ok(found);
        }
        piece.drain(..(old + got).saturating_sub(overlap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole_and_over_the_seams_of_pieces() {
        let mut btf = vec![b'x'; (1 << 16) - 5];
        btf.extend(b"\0seam_name\0other\0");
        btf.extend(vec![b'y'; 1 << 17]);
        btf.extend(b"\0last\0");
        let found = named(&btf[..], &["seam_name", "other", "othe", "ther", "last", "none"]).unwrap();
        assert_eq!(found, [true, true, false, false, true, false]);
    }
}
