//! The best of ours compared with the best peer and with no remedy, in sentences.

use super::groups::{Group, Member, is_ours};
use super::words::{parameter, ratio, with_unit};
use super::{Role, Row};

impl Group<'_> {
    /// `eke: 5.5 s. The best peer, ChromeOS: 6.75 s. That is 1.2x less (wins, by 3 runs). Beside none: 43x less.` `None` without
    /// ours or without anything to compare it with.
    pub fn verdict(&self) -> Option<String> {
        let ours = self.best_of(is_ours)?;
        let mut sentences = vec![self.with_place(ours.row)];
        if let Some((peer, beside)) = self.best_peer(ours.row).zip(self.beside(ours)) {
            sentences.push(format!("The best peer, {}", self.with_place(peer)));
            sentences.push(format!("That is {}", beside.sentence(Role::Ours)));
        }
        sentences.extend(self.beside_baselines(ours.row));
        (sentences.len() > 1).then(|| sentences.join(". ") + ".")
    }

    /// Each baseline by its best row, at the same place of the sweep if variants share places. Otherwise only rows without a place or at zero
    /// count as no remedy; the others are points of a curve.
    fn beside_baselines(&self, ours: &Row) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        let own = self.sweep.as_ref().is_some_and(|s| s.own);
        let is_point = |m: &Member<'_>| own && self.place(m.row).is_some_and(|place| place > 0.0);
        for member in self.members.iter().filter(|m| m.role == Role::Baseline && !is_point(m)) {
            if !names.contains(&member.row.variant.as_str()) {
                names.push(&member.row.variant);
            }
        }
        let any_place = self.sweep.as_ref().is_none_or(|s| s.own);
        let best = |name: &str| {
            let here = |m: &Member<'_>| any_place || self.place(m.row) == self.place(ours);
            self.best_of(|m| m.row.variant == name && m.role == Role::Baseline && here(m))
        };
        let beside =
            |name: &&str| Some(format!("Beside {name}: {}", ratio(ours.median, best(name)?.row.median)));
        names.iter().filter_map(beside).collect()
    }

    /// `eke (swap 192 MiB): 11 documents`.
    fn with_place(&self, row: &Row) -> String {
        let place = self.sweep.as_ref().zip(self.place(row));
        let place = place.map(|(s, place)| format!(" ({})", parameter(&s.key, &place.into())));
        format!("{}{}: {}", row.variant, place.unwrap_or_default(), with_unit(row.median, self.unit))
    }
}
