//! Documents for viewers, made here.

use std::io::Write;
use std::path::Path;

/// A document of rectangles, in colours with a tenth of `blue`: no fonts, and each of up to 65 pages another picture.
pub fn pdf(pages: u32, blue: u32) -> Vec<u8> {
    let kids: Vec<String> = (0..pages).map(|page| format!("{} 0 R", 3 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {pages} >>", kids.join(" ")),
    ];
    for page in 0..pages {
        let (x, y) = (50 + 40 * (page % 13), 100 + 60 * (page / 13) + 20 * (page % 13));
        let content = format!("0.{} 0.3 0.{blue} rg {x} {y} 200 300 re f", page % 10);
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << >> /Contents {} 0 R >>",
            4 + 2 * page
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    file(&objects)
}

/// The objects with their table.
fn file(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let start = file.len();
    file += &format!(
        "{table}trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    );
    file.into_bytes()
}

/// `a.pdf` and `b.pdf` in a directory that no session's own /tmp hides.
pub fn two_documents(pages: u32) -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("eke-documents-").tempdir_in("/var/tmp").expect("a directory");
    for (name, blue) in [("a.pdf", 7), ("b.pdf", 5)] {
        put(&dir.path().join(name), &pdf(pages, blue));
    }
    dir
}

/// A new file.
pub fn put(path: &Path, bytes: &[u8]) {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    opened.and_then(|mut file| file.write_all(bytes)).expect("a new file");
}
