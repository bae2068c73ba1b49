//! Times as logs write them: ISO 8601 and its relatives, `date`'s form, times of day, and seconds since 1970. Only differences between
//! times matter, so that the name of a time zone is skipped; an offset in hours is counted.
use narrows_core::Span;
use narrows_core::params::split_number;

/// A time, from a beginning that all times of a file share. `None` if it is none of these.
pub(super) fn parse(text: &str) -> Option<Span> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        // Thu Aug 11 13:41:30 UTC 2022
        [_, month, day, time, .., year] if words.len() >= 5 && time.contains(':') => {
            at(days(year, &month_number(month)?.to_string(), day)?, time_of_day(time)?)
        }
        // 2022-08-11 13:41:30 UTC
        [date, time, zone @ ..] if zone.len() <= 1 => at(date_number(date)?, time_of_day(time)?),
        [one] => match one.split_once(['T', '_']) {
            Some((date, time)) => at(date_number(date)?, time_of_day(time)?),
            None if one.contains(':') => at(0, time_of_day(one)?),
            None => since_1970(one),
        },
        _ => None,
    }
}

/// Seconds, milliseconds, microseconds or nanoseconds, by their magnitude: no log is from before 1973.
fn since_1970(text: &str) -> Option<Span> {
    let (number, unit) = split_number(text)?;
    if !unit.is_empty() {
        return None;
    }
    let ns_each = match number {
        _ if number < 1e11 => 1e9,
        _ if number < 1e14 => 1e6,
        _ if number < 1e17 => 1e3,
        _ => 1.0,
    };
    let ns = match text.trim().parse::<u64>() {
        Ok(whole) => whole.checked_mul(ns_each as u64)?,
        Err(_) => (number * ns_each).round() as u64,
    };
    Some(Span::ns(ns))
}

fn at(days: i64, ns_of_day: i64) -> Option<Span> {
    let ns = days.checked_mul(DAY)?.checked_add(ns_of_day)?;
    // A day more, so that an offset leaves times of day above zero.
    u64::try_from(ns.checked_add(DAY)?).ok().map(Span::ns)
}

/// `2022-08-11`, `2022/08/11`, `2022.08.11`, as days since 1970.
fn date_number(text: &str) -> Option<i64> {
    let mut parts = text.split(['-', '/', '.']);
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    days(year, month, day)
}

fn days(year: &str, month: &str, day: &str) -> Option<i64> {
    let (year, month, day) = (year.parse::<i64>().ok()?, month.parse::<i64>().ok()?, day.parse::<i64>().ok()?);
    if !(1970..=2200).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their odd day at the end.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970)
}

/// Days from the first of March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;

/// `13:41:30`, `13:41:30.25Z`, `13.41.30`, `13:41:30+02:00`, as nanoseconds of UTC's day, if an offset is given.
fn time_of_day(text: &str) -> Option<i64> {
    let text = text.trim_end_matches(['Z', 'z']);
    let (time, offset) = match text.rfind(['+', '-']) {
        Some(sign) => (&text[..sign], offset(&text[sign..])?),
        None => (text, 0),
    };
    let separator = if time.contains(':') { ':' } else { '.' };
    let mut parts = time.splitn(3, separator);
    let whole = |text: &str, most: i64| text.parse::<i64>().ok().filter(|n| (0..=most).contains(n));
    let (hours, minutes) = (whole(parts.next()?, 23)?, whole(parts.next()?, 59)?);
    let seconds: f64 = parts.next().unwrap_or("0").parse().ok().filter(|s| (0.0..61.0).contains(s))?;
    Some((hours * 3600 + minutes * 60) * 1_000_000_000 + (seconds * 1e9).round() as i64 - offset)
}

/// `+02:00` or `-0430`, ns.
fn offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (digits.parse::<i64>().ok()?, 0),
        4 => (digits[..2].parse::<i64>().ok()?, digits[2..].parse::<i64>().ok()?),
        _ => return None,
    };
    Some(sign * (hours * 60 + minutes) * 60_000_000_000)
}

fn month_number(name: &str) -> Option<usize> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    MONTHS.iter().position(|month| name.to_ascii_lowercase().starts_with(month)).map(|n| n + 1)
}

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_time_is_the_same_time() {
        let wanted = parse("2022-08-11T13:41:30Z");
        assert!(wanted.is_some());
        for text in [
            "2022-08-11 13:41:30",
            "2022/08/11 13:41:30 UTC",
            "2022.08.11_13.41.30",
            "Thu Aug 11 13:41:30 UTC 2022",
            "Thu Aug 11 13:41:30 2022",
            "2022-08-11T15:41:30+02:00",
            "2022-08-11T09:11:30.000-0430",
        ] {
            assert_eq!(parse(text), wanted, "{text}");
        }
        assert_eq!(wanted, parse("1660225290").map(|span| span + Span::s(86_400)), "seconds since 1970, and a day");
        for text in ["1660225290.0", "1660225290000", "1660225290000000", "1660225290000000000"] {
            assert_eq!(parse(text), parse("1660225290"), "{text}");
        }
    }

    #[test]
    fn days_pass_at_the_ends_of_months_and_years() {
        for (before, after) in
            [("2024-02-28", "2024-02-29"), ("2023-02-28", "2023-03-01"), ("2023-12-31", "2024-01-01")]
        {
            let [before, after] = [before, after].map(|date| parse(&format!("{date} 00:00:00")).expect("a date"));
            assert_eq!(after.saturating_sub(before), Span::s(86_400));
        }
        let fraction = parse("13:41:30.25").map(|time| time.saturating_sub(parse("13:41:30").expect("a time")));
        assert_eq!(fraction, Some(Span::ms(250)));
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "fast",
            "-",
            "2022-13-11 00:00:00",
            "25:00:00",
            "2022-08-11",
            "Thu Foo 11 13:41:30 2022",
            "5 s",
            "+-",
            "T",
            "_",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
