use super::*;

fn file(path: &str, spans: &[[u64; 2]]) -> Touched {
    Touched {
        path: path.into(),
        kind: if spans.is_empty() { Kind::Directory } else { Kind::File },
        stamp: Stamp { dev: 7, ino: 9, size: 4096, mtime_ns: 5 },
        pages: spans.iter().filter_map(|[first, end]| Span::new(*first, *end)).collect(),
        stale: Pages::default(),
        weight: 0.5,
        used_by: UsedBy::Unknown,
    }
}

fn vim() -> ExportedProgram {
    let set = FileSet { files: vec![file("/usr/bin/vim", &[[0, 3], [9, 12]]), file("/usr/share", &[])] };
    let program = Program { exe: "/usr/bin/vim".into(), script: None };
    ExportedProgram::new(&program, Duration::from_millis(1500), &set)
}

#[test]
fn a_program_comes_back_without_what_is_a_machines_own() {
    let text = encode(vec![vim()]).unwrap();
    assert!(!text.contains("\"ino\"") && !text.contains("uid") && !text.contains("launches\":"), "{text}");
    let back = decode(&text).unwrap();
    assert_eq!(back, [vim()]);
    let set = back[0].set();
    assert_eq!(set.files[0].pages.spans(), [Span { first: 0, end: 3 }, Span { first: 9, end: 12 }]);
    assert_eq!(set.files[0].stamp, Stamp { size: 4096, mtime_ns: 5, ..Stamp::default() });
    assert_eq!((back[0].took(), set.files.len()), (Duration::from_millis(1500), 2));
}

#[test]
fn the_signature_is_what_follows() {
    assert_eq!(split("{}\n"), ("{}\n", None));
    let signed = format!("{{}}\n{SIGNATURE}\nabc\n");
    assert_eq!(split(&signed), ("{}\n", Some(&signed[3..])));
}

#[test]
fn a_file_that_is_cut_anywhere_is_recognized() {
    let body = encode(vec![vim()]).unwrap();
    let whole = format!("{body}{SIGNATURE}\nabc\n{SIGNATURE_END}\n");
    assert!(!is_cut(&whole) && !is_signature_cut(&whole));
    let document = body.trim_end().len();
    for end in 0..document {
        assert!(is_cut(&whole[..end]), "{end}");
    }
    for end in body.len() + 1..whole.len() - 1 {
        assert!(is_signature_cut(&whole[..end]), "{end}");
    }
    assert!(!is_cut(&body) && !is_signature_cut(&body), "it is not signed");
    assert!(!is_cut("garbage") && !is_signature_cut("garbage"));
}

#[test]
fn what_is_beyond_the_bounds_is_refused_by_name() {
    let with = |change: fn(&mut ExportedProgram)| {
        let mut of = vim();
        change(&mut of);
        decode(&encode(vec![of]).unwrap()).unwrap_err().to_string()
    };
    assert!(with(|p| p.exe = "/home/ann/game".into()).contains("no program of a package"));
    assert!(with(|p| p.files[0].path = "/etc/shadow".into()).contains("is of no package"));
    assert!(with(|p| p.files[0].path = "/usr/../etc/shadow".into()).contains("is of no package"));
    assert!(with(|p| p.files[0].kind = Kind::Device).contains("no directory"));
    assert!(with(|p| p.files[0].pages = vec![[5, 5]]).contains("impossible pages"));
    assert!(with(|p| p.files[0].pages = vec![[0, u64::MAX]]).contains("impossible pages"));
    assert!(with(|p| p.files[0].weight = 2.0).contains("impossible weight"));
    assert!(with(|p| p.files = vec![p.files[0].clone(); MOST_FILES + 1]).contains("more than 4096"));
    let many = encode(vec![vim(); MOST_PROGRAMS + 1]).unwrap();
    assert!(decode(&many).unwrap_err().to_string().contains("more than 1000"));
    assert!(
        decode("{\"form\":\"eke launches 9\",\"programs\":[]}")
            .unwrap_err()
            .to_string()
            .contains("this eke reads")
    );
    assert!(decode("garbage").unwrap_err().to_string().contains("eke prefetch export"));
}

#[test]
fn a_path_that_is_not_text_cannot_come_in() {
    // serde writes such a path as an array of bytes, which is no text
    let bytes = "{\"form\":\"eke launches 1\",\"programs\":[{\"exe\":[47,255],\"took_ms\":1,\"files\":[]}]}";
    assert!(decode(bytes).is_err());
}
