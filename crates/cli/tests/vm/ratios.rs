//! Plans of one machine, measured one after another.

use crate::Lab;

/// What a plan has measured of one algorithm.
struct Measured {
    name: String,
    ratio: f64,
    pages: u64,
}

fn measured(plan: &str) -> Vec<Measured> {
    let plan: serde_json::Value = serde_json::from_str(plan).expect("the plan is JSON");
    let algorithms = plan["measured"]["algorithms"].as_array().expect("algorithms");
    algorithms
        .iter()
        .filter_map(|a| {
            let (ratio, pages) = (a["ratio"].as_f64()?, a["pages"].as_u64()?);
            Some(Measured { name: a["name"].as_str()?.to_owned(), ratio, pages })
        })
        .collect()
}

/// On a slow CPU the algorithms once saw different pages, so that three plans within minutes had zstd at 6.60, 1.86 and 5.55 to 1.
#[test]
fn a_slow_machine_measures_all_algorithms_on_the_same_pages_and_the_same_each_time() {
    let Some(lab) = Lab::new() else { return };
    let root = lab.root(vec![]);
    let script = r#"
twin 20 3
for n in 1 2 3; do eke plan --json > /tmp/plan || die plan; echo "@plan $(tr -d '\n' < /tmp/plan)"; done
twin_ends
"#;
    let output = lab.run(&root, vec![], script).output;
    let plans: Vec<Vec<Measured>> =
        output.lines().filter_map(|line| line.strip_prefix("@plan ")).map(measured).collect();
    assert_eq!(plans.len(), 3, "{output}");
    for plan in &plans {
        assert!(plan.len() >= 4, "only {} algorithms", plan.len());
        assert!(plan.iter().all(|m| m.pages == plan[0].pages && m.pages > 0), "different pages");
    }
    for first in &plans[0] {
        for later in &plans[1..] {
            let same = later.iter().find(|m| m.name == first.name).expect("the same algorithms");
            let change = (same.ratio / first.ratio).max(first.ratio / same.ratio);
            assert!(change < 1.15, "{}: {:.2} and {:.2} to 1", first.name, first.ratio, same.ratio);
        }
    }
}
