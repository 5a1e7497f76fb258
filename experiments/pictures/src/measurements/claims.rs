//! `docs/measurements.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    #[serde(default)]
    claim: Vec<Claim>,
    #[serde(default)]
    other: Vec<Other>,
}

/// Those of one page.
#[derive(Debug, Default)]
pub struct PageClaims<'a> {
    /// Measurements of results.
    pub claims: Vec<&'a Claim>,
    /// Texts with other numbers.
    pub others: Vec<&'a str>,
}

/// A passage with measurements of stored results.
#[derive(Debug, Deserialize)]
pub struct Claim {
    page: String,
    /// The passage, with `{}` for each measurement; once in its page.
    pub text: String,
    /// What its measurements have in common.
    #[serde(flatten)]
    pub common: Place,
    /// The measurements, in the order of the text.
    pub values: Vec<Measurement>,
}

/// Where a value is.
#[derive(Debug, Default, Clone, Deserialize)]
pub struct Place {
    /// The file in `docs/results`. A recorded session (`.cast`) has one value, its length in seconds.
    pub file: Option<String>,
    /// The row's metric.
    pub metric: Option<String>,
    /// The row's variant.
    pub variant: Option<String>,
    /// Parameters that the row has, as text.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// A cell of one of the result's tables instead: the begin of its title, the begin of its line, its column.
    pub cell: Option<[String; 3]>,
    /// Cells of one column instead, of which `stat` takes one (`least-of-rows`, `most-of-rows`) or the number (`count`): the begin of the table's title,
    /// the column, and of which lines: another column and what it has.
    pub column: Option<[String; 4]>,
    /// The errors of the result's predictions of the metric instead.
    pub prediction: Option<ErrorStat>,
    /// Of how many conditions eke's row of the metric is among the best instead.
    pub among: Option<Among>,
    /// A number of one of the result's notes or titles instead: a passage that only one has, with `{}` for the number.
    pub note: Option<String>,
}

/// A measurement.
#[derive(Debug, Clone, Deserialize)]
pub struct Measurement {
    /// Where its value is, beside what the claim says.
    #[serde(flatten)]
    pub place: Place,
    /// Which number of the row's samples.
    #[serde(default)]
    pub stat: Stat,
    /// What it is compared with.
    pub over: Option<Box<Measurement>>,
    /// How, if it is.
    #[serde(default, rename = "as")]
    pub comparison: Comparison,
    /// Units of the row in the unit of the text: 1000 for seconds as milliseconds.
    #[serde(default = "one")]
    pub times: f64,
}

fn one() -> f64 {
    1.0
}

/// One number of the errors of predictions; errors are in percent of what came.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorStat {
    /// The number of predictions.
    Count,
    /// The median error.
    Median,
    /// The worst error.
    Worst,
    /// How many have an error above a tenth.
    Bad,
}

/// What is counted of conditions.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Among {
    /// Those in which eke is the best, or at least 95 % of it by the lower end of the ratio's interval.
    Best,
    /// All.
    All,
}

/// One number of many samples.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stat {
    /// The stored median.
    #[default]
    Median,
    /// The least.
    Least,
    /// The greatest.
    Most,
    /// How many there are.
    Count,
    /// The least median of several rows.
    LeastOfRows,
    /// The greatest median of several rows.
    MostOfRows,
}

/// A measurement beside another.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Their ratio.
    #[default]
    Ratio,
    /// Its part of the other in percent.
    Percent,
    /// By how many percent it is less.
    PercentLess,
    /// By how many percent it is more.
    PercentMore,
    /// By how much it is less.
    Less,
}

/// Numbers of a page that are in no result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    page: String,
    /// What they are.
    why: Why,
    /// Passages of the page that have them.
    texts: Vec<String>,
}

/// Why no result has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// A default, a limit, a condition of an experiment, a version: not measured.
    Setting,
    /// Somebody else's measurement, or what follows from a specification.
    Cited,
    /// An example of what a program prints.
    Example,
    /// Measured, but not stored: `docs/evidence.md` has the command.
    NotStored,
    /// Computed from measurements of the same page.
    Computed,
}

impl Claims {
    /// Those of one page.
    pub fn of<'a>(&'a self, page: &str) -> PageClaims<'a> {
        let others = self.other.iter().filter(|other| other.page == page);
        PageClaims {
            claims: self.claim.iter().filter(|claim| claim.page == page).collect(),
            others: others.flat_map(|other| other.texts.iter().map(String::as_str)).collect(),
        }
    }

    /// Passages of other pages than `page` with measurements that no file has.
    pub fn not_stored<'a>(&'a self, page: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let others = self.other.iter().filter(move |other| other.page != page && other.why == Why::NotStored);
        others.flat_map(|other| other.texts.iter().map(|text| (other.page.as_str(), text.as_str())))
    }

    /// Every page that is named.
    pub fn pages(&self) -> impl Iterator<Item = &String> {
        self.claim.iter().map(|claim| &claim.page).chain(self.other.iter().map(|other| &other.page))
    }
}

impl Place {
    /// This one, with what it leaves open from `common`.
    pub fn within(&self, common: &Self) -> Self {
        let mut params = common.params.clone();
        params.extend(self.params.clone());
        let or = |own: &Option<String>, other: &Option<String>| own.as_ref().or(other.as_ref()).cloned();
        Self {
            file: or(&self.file, &common.file),
            metric: or(&self.metric, &common.metric),
            variant: or(&self.variant, &common.variant),
            params,
            cell: self.cell.clone().or_else(|| common.cell.clone()),
            column: self.column.clone().or_else(|| common.column.clone()),
            prediction: self.prediction.or(common.prediction),
            among: self.among.or(common.among),
            note: or(&self.note, &common.note),
        }
    }
}
