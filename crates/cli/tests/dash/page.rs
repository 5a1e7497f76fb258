//! The page in a real browser: the running agent's numbers, updates, the agent's and the page's own restart, keyboard,
//! phone and desktop, light and dark.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use eke_dash::history::file;
use eke_dash::history::series::COUNT;
use eke_testkit::real::{no_program, skip};
use eke_testkit::wait::wait_for;

use crate::browser::Browser;
use crate::environment::{AVAILABLE, Environment};

const STATE: &str = "#state-text";
const TILES: &str = "#tiles";

/// Why no browser can run.
fn lacking() -> Option<String> {
    no_program(&["chromium"])
}

#[test]
fn the_page_shows_the_agents_numbers_and_survives_restarts() {
    if let Some(why) = lacking() {
        return skip("the_page_shows_the_agents_numbers_and_survives_restarts", &why);
    }
    let environment = Environment::new();
    let agent = environment.agent();
    let (dash, address) = environment.dash("127.0.0.1:0");
    let mut browser = Browser::start();
    browser.go_to(&address);
    let pid = agent.0.id();
    browser.until(STATE, "the agent's", |t| {
        t.contains(&format!("process {pid}")) && t.contains("zram (lzo-rle)")
    });
    let tiles = browser.text(TILES);
    for part in ["420 MiB", "of 1000 MiB", "210 MiB", "310 MiB compressed to 100 MiB: 3.10 to 1", "1.5 %"] {
        assert!(tiles.contains(part), "{part} in {tiles}");
    }
    let legend = browser.until("#memory .legend", "of a point", |t| !t.contains('–'));
    for part in
        ["programs (anonymous) 300 MiB", "compressed pool 100 MiB", "free 250 MiB", "shared, tmpfs 20 MiB"]
    {
        assert!(legend.contains(part), "{part} in {legend}");
    }
    assert!(browser.text("#verdict").starts_with("Short of nothing now"));
    plan_and_journal(&mut browser);

    environment.memory(30, 60);
    environment.pressure(21.0);
    browser.until(TILES, "of now", |t| t.contains("60 MiB") && t.contains("21 %"));
    browser.until("#verdict", "a shortage", |t| {
        t.starts_with("Short of memory: 60 MiB") && t.contains("Tasks wait for memory (21 %")
    });
    browser.until("#memory .legend", "of now", |t| t.contains("free 30 MiB"));
    let points = browser
        .value("document.querySelector('#memory path[data-key=free]').getAttribute('d').split('L').length");
    assert!(points.as_u64().unwrap() >= 3, "{points} points");
    assert_eq!(browser.complaints(), Vec::<String>::new());

    drop(agent);
    browser.until(STATE, "without an agent", |t| t.starts_with("The agent is not running"));
    assert!(browser.text(TILES).contains("60 MiB"), "the machine is read without it");
    let agent = environment.agent();
    let pid = agent.0.id();
    browser.until(STATE, "the next agent's", |t| t.contains(&format!("process {pid}")));
    assert_eq!(browser.complaints(), Vec::<String>::new());

    drop(dash);
    browser.until("#banner", "there", |t| t.starts_with("eke dash does not answer"));
    assert!(browser.text(TILES).contains("60 MiB"), "what was known stays");
    environment.memory(500, AVAILABLE + 200);
    let host = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (_dash, _) = environment.dash(&host);
    browser.until(TILES, "of the next server", |t| t.contains("620 MiB"));
    browser.until("#banner", "gone", str::is_empty);
    // The browser itself reports the refused connection; the page has no error.
    let complaints = browser.complaints();
    assert!(
        complaints.iter().all(|c| c.contains("ERR_CONNECTION") || c.contains("ERR_EMPTY")),
        "{complaints:?}"
    );
}

/// Sentences with their reasons, and no name as markup.
fn plan_and_journal(browser: &mut Browser) {
    let plan = browser.until("#plan", "there", |t| t.contains("vm.swappiness"));
    for part in [
        "set vm.swappiness to 180",
        "one from a <b>file</b> 54 µs",
        "3.05",
        "2.94 µs (5.37 µs)",
        "min_ttl_ms",
    ] {
        assert!(plan.contains(part), "{part} in {plan}");
    }
    let journal = browser.text("#journal");
    assert!(
        journal.contains("sudo eke down") && journal.contains("echo '60' > /proc/sys/vm/swappiness"),
        "{journal}"
    );
    assert!(browser.text("#events").contains("Adopted the applied plan; changes in force: 1."));
    assert!(browser.text("#latency-plot").contains("zstd"));
    browser.value("document.querySelector('#journal button').click()");
    browser.until("#journal button", "pressed", |t| t == "Copied" || t.starts_with("Selected"));
}

/// The number in an attribute; 0 if it is absent.
fn number(attribute: &serde_json::Value) -> u32 {
    attribute.as_str().map_or(0, |text| text.parse().unwrap())
}

#[test]
fn it_is_for_keyboards_and_readers_too() {
    if let Some(why) = lacking() {
        return skip("it_is_for_keyboards_and_readers_too", &why);
    }
    let environment = Environment::new();
    let _agent = environment.agent();
    let (_dash, address) = environment.dash("127.0.0.1:0");
    let mut browser = Browser::start();
    browser.go_to(&address);
    browser.until(TILES, "there", |t| t.contains("420 MiB"));
    let rows = "document.querySelector('#memory .plot').getAttribute('aria-valuenow')";
    wait_for("three points", || number(&browser.value(rows)) >= 3);
    browser.value("document.querySelector('#memory .plot').focus()");
    browser.press("Home");
    browser.press("ArrowRight");
    let at = "document.querySelector('#memory .plot').getAttribute('aria-valuetext')";
    let text = browser.value(at);
    assert!(
        text.as_str().unwrap().contains(": programs (anonymous) 300 MiB, shared, tmpfs 20 MiB"),
        "{text}"
    );
    let when = browser.text("#memory .when");
    assert!(when.starts_with("at "), "{when}");
    let newest = "document.querySelector('#memory .plot').getAttribute('aria-valuemax')";
    let before = number(&browser.value(newest));
    wait_for("the next point", || number(&browser.value(newest)) > before);
    assert_eq!(browser.text("#memory .when"), when, "the cursor stays at its time");
    browser.press("Escape");
    assert_eq!(browser.text("#memory .when"), "");

    browser.value("document.querySelector('#memory summary').click()");
    browser.until("#memory table", "filled", |t| t.contains("300 MiB"));
    browser.value("document.querySelector('input[value=day]').click()");
    browser.until("#plots-note", "of the day", |t| t.contains("2 minutes"));
    // Every control has a name, and every table has heads.
    let nameless = browser.value(
        "[...document.querySelectorAll('button, input, [role=slider], meter, summary, section')].filter(e => !(e.ariaLabel || e.innerText?.trim() || e.labels?.length || e.getAttribute('aria-labelledby') || e.getAttribute('aria-label'))).length",
    );
    assert_eq!(nameless, 0);
    assert_eq!(browser.value("document.querySelectorAll('table:not(:has(th[scope]))').length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Axes, gaps and a clock that is set back, in the page's modules.
#[test]
fn the_pages_own_reckoning_is_right() {
    if let Some(why) = lacking() {
        return skip("the_pages_own_reckoning_is_right", &why);
    }
    let environment = Environment::new();
    let (_dash, address) = environment.dash("127.0.0.1:0");
    let mut browser = Browser::start();
    browser.go_to(&address);
    browser.until(TILES, "there", |t| t.contains("420 MiB"));
    let mut of = |module: &str, expression: &str| {
        browser.value(&format!("import('/{module}.js').then(m => JSON.stringify({expression}))"))
    };
    for (expression, expected) in [
        ("m.axis('bytes', 124 * 2 ** 20).ticks.map(t => t[1])", r#"["0","50 MiB","100 MiB","150 MiB"]"#),
        ("m.axis('bytes', 0, 1000 * 2 ** 20).ticks.at(-1)", r#"[1048576000,"1000 MiB"]"#),
        ("m.axis('percent', 0).ticks.at(-1)[1]", r#""5 %""#),
        ("m.axis('percent', 0).high", "5"),
        ("[1, 1536, 10 * 2 ** 20].map(m.bytes)", r#"["1 B","1.5 KiB","10 MiB"]"#),
        ("[740, 2134, 246784, 9e6].map(m.time)", r#"["740 ns","2.13 µs","247 µs","9.00 ms"]"#),
        ("m.times(1000, 1300, 3).map(t => t[0])", "[1080,1200]"),
    ] {
        assert_eq!(of("scale", expression).as_str(), Some(expected), "{expression}");
    }
    let points = |last_s: u32, at: &str| {
        format!("{{span:'hour',step_s:5,keep_s:60,last_s:{last_s},keys:['a'],at:{at},rows:{at}.map(t=>[t])}}")
    };
    let after = |then: &str, expression: &str| {
        let first = points(1020, "[1000,1005,1010,1015,1020]");
        format!("(()=>{{const p=new m.Points('hour');p.take({first});{then};return {expression}}})()")
    };
    for (then, expression, expected) in [
        (String::new(), "[p.last, p.nearest(1007), p.column('a').length, p.column('b')]", "[1020,1,5,[]]"),
        (format!("p.take({})", points(1070, "[1065,1070]")), "p.at", "[1010,1015,1020,1065,1070]"),
        (
            format!("p.take({})", points(1070, "[1065,1070]")),
            "p.stretches(() => true).map(s => s.length)",
            "[3,2]",
        ),
        (format!("p.take({})", points(900, "[]")), "[p.at, p.last]", "[[],0]"),
        (format!("p.take({})", points(0, "[]")), "p.last", "1020"),
        (String::new(), "p.range(1022)", "[962,1022]"),
        (String::new(), "p.range(9000)", "[960,1020]"),
    ] {
        assert_eq!(of("data", &after(&then, expression)).as_str(), Some(expected), "{then}; {expression}");
    }
}

/// Bytes, pages and shares that go up and down, for the last hour and day. They end about where the machine is now; memory is always 1000 MiB.
fn past(file: &Path) {
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut opened = file::open(file, now_s).unwrap();
    for at_s in (now_s - 86_400..now_s - 10).step_by(5) {
        let wave = |hours: f64| ((now_s - at_s) as f64 / 3_600.0 / hours * std::f64::consts::TAU).cos();
        let mib = |least: f64, more: f64, hours: f64| {
            Some((least + more * (1.0 + wave(hours)) / 2.0) * f64::from(1 << 20))
        };
        let share = |most: f64, hours: f64| Some(most * (1.0 - wave(hours)) / 2.0);
        let mut values = [None; COUNT];
        let used = [
            mib(150.0, 150.0, 6.0),
            mib(15.0, 5.0, 3.0),
            mib(10.0, 90.0, 6.0),
            mib(148.0, 0.0, 1.0),
            mib(110.0, 72.0, 2.0),
        ];
        let free = 1000.0 * f64::from(1 << 20) - used.iter().flatten().sum::<f64>();
        let rest = [
            mib(30.0, 280.0, 6.0),
            share(12.0, 0.5),
            share(3.0, 0.5),
            share(25.0, 4.0),
            share(8.0, 1.3),
            share(300.0, 0.4),
            share(500.0, 0.6),
            share(90.0, 0.2),
            share(9.0, 0.6),
        ];
        let caches = [
            mib(0.0, 40.0, 0.7),
            mib(0.0, 9.0, 0.5),
            share(6.0, 0.25),
            share(4.0, 0.25),
            mib(0.0, 3.0, 0.3),
            mib(0.0, 2.0, 0.3),
            mib(0.0, 1.0, 0.4),
        ];
        for (value, of) in
            values.iter_mut().zip(used.into_iter().chain([Some(free)]).chain(rest).chain(caches))
        {
            *value = of;
        }
        opened.history.push(at_s, &values);
    }
    opened.file.save(&mut opened.history, now_s).unwrap();
}

/// `EKE_PICTURES=DIR` keeps the pictures.
#[test]
fn it_fits_a_phone_and_a_desktop_light_and_dark() {
    if let Some(why) = lacking() {
        return skip("it_fits_a_phone_and_a_desktop_light_and_dark", &why);
    }
    let environment = Environment::new();
    let _agent = environment.agent();
    let history = environment.path("history.db");
    past(&history);
    let args = ["dash", "--listen", "127.0.0.1:0", "--history", history.to_str().unwrap()];
    let (_dash, address) = environment.serve(&args);
    let mut browser = Browser::start();
    for (name, size) in [("phone", (360, 780)), ("desktop", (1280, 900))] {
        let pictures = [false, true].map(|dark| {
            browser.screen(size, dark);
            browser.go_to(&address);
            browser.until(TILES, "there", |t| t.contains("420 MiB"));
            let span = if dark { "day" } else { "hour" };
            browser.value(&format!("document.querySelector('input[value={span}]').click()"));
            wait_for("the past is drawn", || browser.value("document.querySelector('#launches [data-key=launches]')?.getAttribute('d').match(/L/g)?.length > 600") == true);
            fits(&mut browser, name, size.0);
            keep(&format!("{name}-{span}.png"), &browser.picture());
            if name == "desktop" {
                keep(&format!("page-{}.png", if dark { "dark" } else { "light" }), &browser.first_screen());
            }
            browser.value("getComputedStyle(document.body).backgroundColor")
        });
        assert_ne!(pictures[0], pictures[1], "light and dark");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Nothing is cut off at the side, every control is large enough for a finger (WCAG 2.2, target size: 24 pixels), every plot has lines.
fn fits(browser: &mut Browser, name: &str, width: u32) {
    let wide = browser.value("document.documentElement.scrollWidth");
    assert_eq!(wide.as_u64(), Some(u64::from(width)), "{name}: it scrolls sideways");
    let small = browser.value(
        "[...document.querySelectorAll('button, fieldset label, summary')].filter(e => { const high = e.getBoundingClientRect().height; return high > 0 && high < 24; }).map(e => e.innerText)",
    );
    assert_eq!(small.as_array().map(Vec::len), Some(0), "{name}: too small for a finger: {small}");
    let points = browser.value(
        "[...document.querySelectorAll('.plot [data-key]')].map(p => (p.getAttribute('d').match(/L/g) ?? []).length)",
    );
    let points: Vec<u64> = points.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(points.len() == COUNT + 1 && points.iter().all(|n| *n > 600), "{name}: {points:?}");
}

/// Keeps a picture, with `EKE_PICTURES=DIR`.
pub fn keep(name: &str, base64: &str) {
    assert!(base64.len() > 20_000, "{name} is empty");
    let Some(dir) = std::env::var_os("EKE_PICTURES") else { return };
    let file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(Path::new(&dir).join(name));
    let mut decoder =
        Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(file.unwrap()).spawn().unwrap();
    decoder.stdin.take().unwrap().write_all(base64.as_bytes()).unwrap();
    assert!(decoder.wait().unwrap().success());
}
