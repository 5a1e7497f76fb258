//! Chooses the documents of the tabs and makes their pages. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Smaller files are lists of links, not documents.
const LEAST: u64 = 2_000;

/// A file that a tab may show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct File {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
}

/// Gives each of `tabs` tabs a document of at least `weight` bytes: a large file, or chapters of the same directory. Directories
/// alternate, so that the tabs show different books. The same files always give the same documents. Returns fewer than `tabs`
/// documents if there are not enough files.
pub fn share_out(mut files: Vec<File>, tabs: usize, weight: u64) -> Vec<Vec<PathBuf>> {
    files.sort();
    let mut books: BTreeMap<PathBuf, Vec<File>> = BTreeMap::new();
    for file in files.into_iter().filter(|f| f.size >= LEAST) {
        let book = file.path.parent().unwrap_or(Path::new("")).to_owned();
        books.entry(book).or_default().push(file);
    }
    let mut books: Vec<_> = books.into_values().map(|b| volumes(b, weight).into_iter()).collect();
    let mut documents = Vec::new();
    while documents.len() < tabs {
        let round: Vec<_> = books.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            break;
        }
        documents.extend(round);
    }
    documents.truncate(tabs);
    documents
}

/// A book's chapters in order, in volumes of at least `weight` bytes. Leaves out an incomplete last volume.
fn volumes(chapters: Vec<File>, weight: u64) -> Vec<Vec<PathBuf>> {
    let mut volumes = Vec::new();
    let (mut volume, mut size) = (Vec::new(), 0);
    for chapter in chapters {
        size += chapter.size;
        volume.push(chapter.path);
        if size >= weight {
            volumes.push(std::mem::take(&mut volume));
            size = 0;
        }
    }
    volumes
}

/// The text between `<body>` and `</body>`, or all of it. Scripts may stay: the server forbids all but its own.
pub fn body(html: &str) -> &str {
    let lower = html.to_ascii_lowercase();
    let from = lower.find("<body").and_then(|at| lower[at..].find('>').map(|end| at + end + 1)).unwrap_or(0);
    let to = lower.rfind("</body").filter(|to| *to >= from).unwrap_or(html.len());
    &html[from..to]
}

/// At most the first `weight` bytes, cut before a tag.
pub fn cut(html: &str, weight: usize) -> &str {
    if html.len() <= weight {
        return html;
    }
    let at = (0..=weight).rev().find(|at| html.is_char_boundary(*at) && html[*at..].starts_with('<'));
    &html[..at.unwrap_or(0)]
}

/// A tab's page: the document within the frame of a site.
pub fn page(tab: usize, title: &str, document: &str) -> String {
    let title = title.replace(['<', '>', '&', '"'], " ");
    let pictures: String = (0..4).fold(String::new(), |mut all, n| {
        let _ = write!(all, "<img src=\"/{tab}/{n}.svg\" alt=\"Figure {n}\">");
        all
    });
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/style.css\"><script src=\"/page.js\" defer></script></head><body>\
         <header>{title} <input type=\"search\"> <output></output></header><nav></nav><main>{document}</main>\
         <aside><canvas width=\"640\" height=\"320\"></canvas>{pictures}<ol id=\"results\"></ol></aside></body></html>"
    )
}

/// An SVG drawing, different for each tab and number.
pub fn picture(tab: usize, number: usize) -> String {
    let mut random = Random(0x9e37_79b9 ^ ((tab as u64) << 8) ^ number as u64);
    let mut svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 400\">".to_owned();
    for _ in 0..400 {
        let (x, y, r, hue) = (random.below(640), random.below(400), 4 + random.below(40), random.below(360));
        let _ = write!(
            svg,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"hsl({hue} 60% 60%)\" opacity=\".6\"/>"
        );
    }
    svg + "</svg>"
}

/// Text for a tab without a document: words with the frequencies of natural text.
pub fn generated(tab: usize, weight: usize) -> String {
    let mut random = Random(tab as u64 + 1);
    let mut html = String::new();
    while html.len() < weight {
        let _ = write!(html, "<h2>Section {}</h2>", random.below(10_000));
        for _ in 0..8 {
            html += "<p>";
            (0..60).for_each(|_| html += &format!("{} ", word(&mut random)));
            html += "</p>\n";
        }
    }
    html
}

/// A word. The n-th word is about 1/n as frequent as the first.
fn word(random: &mut Random) -> String {
    let rank = 4000 / (1 + random.below(4000));
    let mut spread = Random(rank.wrapping_mul(0x1234_5677));
    let syllables = ["ka", "lo", "min", "ter", "sa", "ve", "ron", "di", "pu", "est", "al", "quo"];
    (0..=1 + spread.below(3)).map(|_| syllables[spread.below(12) as usize]).collect()
}

/// splitmix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> File {
        File { path: path.into(), size }
    }

    #[test]
    fn books_alternate_and_chapters_are_joined_up_to_the_weight() {
        let files = vec![
            file("b/2.html", 60_000),
            file("b/1.html", 60_000),
            file("b/3.html", 120_000),
            file("a/all.html", 500_000),
            file("a/tiny.html", 100),
            file("a/rest.html", 50_000),
        ];
        let paths = |documents: &[Vec<PathBuf>]| -> Vec<String> {
            let joined =
                |d: &Vec<PathBuf>| d.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join("+");
            documents.iter().map(joined).collect()
        };
        let all = share_out(files.clone(), 9, 100_000);
        assert_eq!(paths(&all), ["a/all.html", "b/1.html+b/2.html", "b/3.html"]);
        assert_eq!(share_out(files, 1, 100_000), all[..1]);
        assert_eq!(share_out(Vec::new(), 3, 100_000), Vec::<Vec<PathBuf>>::new());
    }

    #[test]
    fn a_document_is_its_body_cut_before_a_tag() {
        assert_eq!(body("<html><BODY class=x><p>a</p></Body></html>"), "<p>a</p>");
        assert_eq!(body("<p>a"), "<p>a");
        assert_eq!(body("</body><body"), "");
        assert_eq!(cut("<p>über</p><p>x</p>", 14), "<p>über</p>");
        assert_eq!((cut("<p>a</p>", 100), cut("no tag at all", 4)), ("<p>a</p>", ""));
    }

    #[test]
    fn generated_text_is_large_enough_and_different_for_each_tab() {
        let text = generated(1, 50_000);
        assert!((50_000..60_000).contains(&text.len()), "{}", text.len());
        assert_eq!(text, generated(1, 50_000));
        assert_ne!(text, generated(2, 50_000));
        assert_ne!(picture(1, 0), picture(1, 1));
        assert_ne!(picture(1, 0), picture(2, 0));
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_cut(html in ".{0,200}", weight in 0..250usize) {
            assert!(html.contains(cut(body(&html), weight)));
            let with_body = format!("<body>{html}</body>");
            assert!(with_body.contains(body(&with_body)));
        }
    }
}
