//! Counts the pages of a PDF. Pure.

use lopdf::Document;
use serde::Serialize;

/// The mark of a PDF, within its first [`HEAD`] bytes (ISO 32000-1, annex H, note 13).
const MAGIC: &[u8] = b"%PDF-";
const HEAD: usize = 1024;

/// Why a file cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "unfit", content = "why", rename_all = "kebab-case")]
pub enum Unfit {
    /// It is not a PDF.
    #[error("is not a PDF")]
    NotPdf,
    /// The PDF is cut off or damaged.
    #[error("is a damaged PDF")]
    Damaged,
    /// It needs a password, or its encryption is unknown.
    #[error("is encrypted")]
    Encrypted,
    /// It has no page.
    #[error("has no pages")]
    Empty,
    /// It cannot be read or decompressed.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It is too large for a session's viewer.
    #[error("is larger than {0} MiB")]
    TooLarge(u64),
}

/// Counts the pages of a PDF's bytes, also with object streams or broken cross-references.
///
/// # Errors
/// The bytes have no page that can be shown; the error is the reason.
pub fn count(bytes: Vec<u8>) -> Result<u32, Unfit> {
    let head = &bytes[..bytes.len().min(HEAD)];
    if !head.windows(MAGIC.len()).any(|w| w == MAGIC) {
        return Err(Unfit::NotPdf);
    }
    let document = Document::load_mem(&bytes).map_err(|_| Unfit::Damaged)?;
    // A document that opens without a password has been decrypted while it was loaded.
    if document.trailer.has(b"Encrypt") && !document.was_encrypted() {
        return Err(Unfit::Encrypted);
    }
    match document.get_pages().len() {
        0 => Err(Unfit::Empty),
        pages => Ok(u32::try_from(pages).unwrap_or(u32::MAX)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A PDF of so many empty pages.
    pub fn pdf(pages: usize, trailer: &str) -> Vec<u8> {
        let kids: String = (0..pages).map(|n| format!("{} 0 R ", n + 3)).collect();
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Count {pages} /Kids [ {kids}] /MediaBox [0 0 99 99] >>"),
        ];
        objects.extend((0..pages).map(|_| "<< /Type /Page /Parent 2 0 R >>".to_owned()));
        let mut text = "%PDF-1.4\n".to_owned();
        let mut at = Vec::new();
        for (number, object) in objects.iter().enumerate() {
            at.push(text.len());
            text += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
        }
        let start = text.len();
        text += &format!("xref\n0 {}\n0000000000 65535 f \n", at.len() + 1);
        for offset in &at {
            text += &format!("{offset:010} 00000 n \n");
        }
        let size = at.len() + 1;
        text += &format!("trailer << /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n");
        text.into_bytes()
    }

    #[test]
    fn pages_are_counted() {
        assert_eq!(count(pdf(1, "")), Ok(1));
        assert_eq!(count(pdf(51, "")), Ok(51));
    }

    #[test]
    fn a_file_that_cannot_be_shown_has_its_reason() {
        let id = "/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]";
        let password = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let locked = format!(
            "{id} /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /Length 40 /O <{password}> /U <{password}> >>"
        );
        assert_eq!(count(pdf(3, &locked)), Err(Unfit::Encrypted));
        assert_eq!(count(b"\x89PNG".to_vec()), Err(Unfit::NotPdf));
        assert_eq!(count(Vec::new()), Err(Unfit::NotPdf));
        assert_eq!(count(b"%PDF-1.5\n".to_vec()), Err(Unfit::Damaged));
        assert!(count(pdf(0, "")).is_err());
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(mut bytes in Just(pdf(5, "")), cut in 0usize..600, at in 0usize..600, with: [u8; 4]) {
            let end = bytes.len().saturating_sub(cut).max(10);
            bytes.truncate(end);
            let at = at % (end - 5).max(1);
            bytes[at..at + 4].copy_from_slice(&with);
            let _ = count(bytes);
        }
    }
}
