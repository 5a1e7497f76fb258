//! Dates in UTC.

const DAY_S: u64 = 86_400;

/// `2026-03-01`, from seconds since 1970.
pub fn date(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / DAY_S);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-03-01 09:05:07 UTC`, from seconds since 1970.
pub fn time(unix_s: u64) -> String {
    let of_day = unix_s % DAY_S;
    let (h, m, s) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{} {h:02}:{m:02}:{s:02} UTC", date(unix_s))
}

/// Howard Hinnant's `civil_from_days`, for days from 1970 on: years begin in March, so that the leap day is their last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        for (s, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_772_323_200, "2026-03-01 00:00:00 UTC"),
            (1_795_424_707, "2026-11-23 09:05:07 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
        ] {
            assert_eq!((time(s), date(s)), (text.to_owned(), text[..10].to_owned()));
        }
        let _ = time(u64::MAX);
    }
}
