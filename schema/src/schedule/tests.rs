//! Cron text against a reference that knows nothing of how the real one works: it walks a clock on
//! the wall minute by minute (second by second where the text has seconds) and asks of each time
//! that the clock passes for the first time whether the fields name it.

use chrono::{Datelike, NaiveDateTime, TimeDelta, Timelike};
use chrono_tz::Tz;
use proptest::prelude::*;

use super::*;
use crate::time::Timestamp;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Whether one field names `value`, whose lowest is `low`.
fn field_names(field: &str, value: u32, low: u32, names: &[&str]) -> bool {
    let read = |text: &str| match names.iter().position(|name| *name == text.to_lowercase()) {
        Some(at) => at as u32 + low,
        None => text.parse().unwrap(),
    };
    field.split(',').any(|part| {
        let (range, step) = part
            .split_once('/')
            .map_or((part, 1), |(range, step)| (range, step.parse::<u32>().unwrap()));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (read(from), read(to)),
            None if range == "*" => (low, u32::MAX),
            None if part.contains('/') => (read(range), u32::MAX),
            None => (read(range), read(range)),
        };
        from <= value && value <= to && (value - from).is_multiple_of(step)
    })
}

/// Whether five or six fields name a time of the wall clock. Source: crontab(5).
fn names(text: &str, time: NaiveDateTime) -> bool {
    let mut fields: Vec<_> = text.split(' ').collect();
    if fields.len() == 5 {
        fields.insert(0, "0");
    }
    let weekday = time.weekday().num_days_from_sunday();
    // Sunday has two numbers.
    let numbers = if weekday == 0 { vec![0, 7] } else { vec![weekday] };
    let weekday_fits =
        numbers.into_iter().any(|number| field_names(fields[5], number, 0, &WEEKDAYS));
    let day_fits = field_names(fields[3], time.day(), 1, &[]);
    let either = !fields[3].starts_with('*') && !fields[5].starts_with('*');
    field_names(fields[0], time.second(), 0, &[])
        && field_names(fields[1], time.minute(), 0, &[])
        && field_names(fields[2], time.hour(), 0, &[])
        && field_names(fields[4], time.month(), 1, &MONTHS)
        && if either { day_fits || weekday_fits } else { day_fits && weekday_fits }
}

/// The first instant after `after` and not after `end` at which the wall clock comes to, or jumps
/// over, a time that it has not shown before and that the text names.
fn reference(text: &str, zone: Tz, after: Timestamp, end: Timestamp) -> Option<Timestamp> {
    let step =
        if text.split(' ').count() == 5 { TimeDelta::minutes(1) } else { TimeDelta::seconds(1) };
    let mut now =
        after.to_utc().with_second(0).unwrap().with_nanosecond(0).unwrap() - TimeDelta::hours(4);
    let mut latest = now.with_timezone(&zone).naive_local();
    while now < end.to_utc() {
        now += step;
        let shown = now.with_timezone(&zone).naive_local();
        let mut comes = false;
        while latest < shown {
            latest += step;
            comes |= names(text, latest);
        }
        if comes && Timestamp::from(now) > after {
            return Some(now.into());
        }
    }
    None
}

fn number_field(low: u32, high: u32) -> impl Strategy<Value = String> {
    let range = move || (low..=high).prop_flat_map(move |from| (Just(from), from..=high));
    let part = prop_oneof![
        4 => (low..=high).prop_map(|value| value.to_string()),
        2 => range().prop_map(|(from, to)| format!("{from}-{to}")),
        1 => (range(), 1..=high - low).prop_map(|((from, to), step)| format!("{from}-{to}/{step}")),
        1 => (1..=high - low).prop_map(|step| format!("*/{step}")),
    ];
    prop_oneof![
        2 => Just("*".to_owned()),
        3 => proptest::collection::vec(part, 1..4).prop_map(|parts| parts.join(",")),
    ]
}

fn named_field(low: u32, names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let index = 0..names.len();
    let part = prop_oneof![
        index.clone().prop_map(|at| names[at].to_uppercase()),
        (index.clone(), index).prop_map(|(a, b)| format!(
            "{}-{}",
            names[a.min(b)],
            names[a.max(b)]
        )),
    ];
    // Twelve months from 1, eight weekdays from 0.
    prop_oneof![1 => part, 3 => number_field(low, if low == 1 { 12 } else { 7 })]
}

fn zones() -> impl Strategy<Value = Tz> {
    prop_oneof![
        Just(Tz::UTC),
        Just(Tz::Europe__Berlin),
        Just(Tz::America__New_York),
        Just(Tz::America__Sao_Paulo),
        Just(Tz::America__St_Johns),
        Just(Tz::Australia__Lord_Howe),
        Just(Tz::Asia__Kathmandu),
        Just(Tz::Pacific__Apia),
    ]
}

/// Instants of which something can be expected: changes of the clock, leap days, ends of years, a
/// skipped day; and others.
fn instants() -> impl Strategy<Value = Timestamp> {
    let edges = [
        "2026-03-29T00:30:00Z",
        "2026-10-25T00:30:00Z",
        "2026-03-08T06:30:00Z",
        "2026-11-01T05:30:00Z",
        "2018-11-04T02:30:00Z",
        "2018-02-18T01:30:00Z",
        "2026-04-04T14:45:00Z",
        "2026-10-03T15:15:00Z",
        "2011-12-30T09:30:00Z",
        "2028-02-28T12:00:00Z",
        "2099-12-31T22:00:00Z",
        "2026-12-31T23:59:59.999Z",
    ];
    let edges = edges.map(|edge| edge.parse::<Timestamp>().unwrap());
    prop_oneof![
        (proptest::sample::select(edges.to_vec()), -7_200_000..7_200_000_i64)
            .prop_map(|(edge, off)| edge.plus_ms(off)),
        (946_684_800_000..4_000_000_000_000_i64).prop_map(Timestamp::from_millis),
    ]
}

const DAY_MS: i64 = 86_400_000;

fn check_reference(
    text: &str,
    zone: Tz,
    after: Timestamp,
    horizon_ms: i64,
) -> Result<(), TestCaseError> {
    let next = Schedule::parse(text, Some(zone.name())).unwrap().next_after(after);
    let end = after.plus_ms(horizon_ms);
    let expected = reference(text, zone, after, end);
    prop_assert_eq!(
        next.filter(|next| *next <= end),
        expected,
        "`{}` in {} after {}",
        text,
        zone,
        after
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn five_fields_are_what_crontab_says(
        (minute, hour, day) in (number_field(0, 59), number_field(0, 23), number_field(1, 31)),
        month in named_field(1, &MONTHS),
        weekday in prop_oneof![named_field(0, &WEEKDAYS), Just("7".to_owned()), Just("5-7".to_owned()), Just("0-7/3".to_owned())],
        (zone, after) in (zones(), instants()),
    ) {
        check_reference(&format!("{minute} {hour} {day} {month} {weekday}"), zone, after, 40 * DAY_MS)?;
    }

    #[test]
    fn six_fields_are_the_same_with_the_second_first(
        (second, minute, hour) in (number_field(0, 59), number_field(0, 59), number_field(0, 23)),
        (day, weekday) in prop_oneof![Just(("*".to_owned(), "*".to_owned())), (number_field(1, 31), named_field(0, &WEEKDAYS))],
        (zone, after) in (zones(), instants()),
    ) {
        check_reference(&format!("{second} {minute} {hour} {day} * {weekday}"), zone, after, DAY_MS / 2)?;
    }
}

/// The next instants of a schedule, with the offset of its zone, one after the other.
fn check_next(cron: &str, zone: &str, after: &str, expected: &[&str]) {
    let schedule = Schedule::parse(cron, Some(zone)).unwrap();
    let mut now: Timestamp = after.parse().unwrap();
    for expected in expected {
        now = schedule.next_after(now).unwrap();
        assert_eq!(now.to_string(), *expected, "{schedule} after {after}");
    }
}

#[test]
fn the_next_instant_is_strictly_later() {
    check_next("0 */15 * * * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-01T00:15:00.000Z"]);
    check_next("*/15 * * * *", "UTC", "2026-01-01T00:14:59.999Z", &["2026-01-01T00:15:00.000Z"]);
    check_next(
        "0 0 9 * * Mon-Fri",
        "Europe/Berlin",
        "2026-07-03T07:00:00Z",
        &["2026-07-06T07:00:00.000Z"],
    );
}

#[test]
fn weekdays_are_numbered_as_crontab_has_them() {
    // 2026-07-02 is a Thursday.
    let working_days =
        ["2026-07-03T09:00:00.000Z", "2026-07-06T09:00:00.000Z", "2026-07-07T09:00:00.000Z"];
    for weekdays in ["1-5", "Mon-Fri", "1,2,3,4,5", "mon-5", "Monday-Friday"] {
        check_next(&format!("0 9 * * {weekdays}"), "UTC", "2026-07-02T10:00:00Z", &working_days);
        check_next(&format!("0 0 9 * * {weekdays}"), "UTC", "2026-07-02T10:00:00Z", &working_days);
    }
    for sunday in ["0", "7", "Sun", "7-7", "0,7", "*/7"] {
        check_next(
            &format!("0 9 * * {sunday}"),
            "UTC",
            "2026-07-02T10:00:00Z",
            &["2026-07-05T09:00:00.000Z", "2026-07-12T09:00:00.000Z"],
        );
    }
    check_next("@weekly", "UTC", "2026-07-02T10:00:00Z", &["2026-07-05T00:00:00.000Z"]);
    check_next(
        "0 9 * * 6-7",
        "UTC",
        "2026-07-02T10:00:00Z",
        &["2026-07-04T09:00:00.000Z", "2026-07-05T09:00:00.000Z", "2026-07-11T09:00:00.000Z"],
    );
}

#[test]
fn a_day_of_the_month_and_a_weekday_are_alternatives() {
    let either = [
        "2026-07-03T00:00:00.000Z",
        "2026-07-10T00:00:00.000Z",
        "2026-07-13T00:00:00.000Z",
        "2026-07-17T00:00:00.000Z",
    ];
    check_next("0 0 13 * 5", "UTC", "2026-07-02T10:00:00Z", &either);
    check_next("0 0 0 13 * Fri", "UTC", "2026-07-02T10:00:00Z", &either);
    // A field that starts with a star restricts in the usual way.
    check_next(
        "0 0 */2 * 5",
        "UTC",
        "2026-07-02T10:00:00Z",
        &["2026-07-03T00:00:00.000Z", "2026-07-17T00:00:00.000Z"],
    );
}

#[test]
fn a_time_that_the_clock_skips_is_the_first_instant_after_it() {
    // Berlin goes from 02:00 to 03:00 on 2026-03-29, which is 01:00 UTC.
    for cron in ["0 30 2 * * *", "30 2 * * *", "0,1,59 2 * * *"] {
        check_next(cron, "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00.000Z"]);
    }
    check_next(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-03-29T00:59:59.999Z",
        &["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"],
    );
    // Samoa had no 30 December 2011.
    check_next(
        "0 12 30 12 *",
        "Pacific/Apia",
        "2011-12-29T12:00:00Z",
        &["2011-12-30T10:00:00.000Z", "2012-12-29T22:00:00.000Z"],
    );
}

#[test]
fn a_time_that_comes_twice_counts_once() {
    // Berlin goes from 03:00 back to 02:00 on 2026-10-25, which is 01:00 UTC.
    check_next(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"],
    );
    check_next(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-25T01:10:00Z",
        &["2026-10-26T01:30:00.000Z"],
    );
    check_next(
        "*/30 * * * * *",
        "Europe/Berlin",
        "2026-10-25T00:59:30Z",
        &["2026-10-25T02:00:00.000Z", "2026-10-25T02:00:30.000Z"],
    );
}

#[test]
fn leap_days_and_years_end() {
    check_next(
        "0 0 29 2 *",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2028-02-29T00:00:00.000Z", "2032-02-29T00:00:00.000Z"],
    );
    check_next(
        "59 23 31 12 *",
        "America/New_York",
        "2026-12-31T00:00:00Z",
        &["2027-01-01T04:59:00.000Z", "2028-01-01T04:59:00.000Z"],
    );
    check_next("0 0 0 1 1 * 2030", "UTC", "2026-12-31T00:00:00Z", &["2030-01-01T00:00:00.000Z"]);
}

#[test]
fn no_instant_is_too_far_away_to_be_asked_about() {
    let schedule = Schedule::parse("* * * * *", Some("Pacific/Apia")).unwrap();
    assert_eq!(schedule.next_after(Timestamp::from_millis(i64::MAX)), None);
    assert_eq!(schedule.next_after("9999-12-31T23:59:59-01:00".parse().unwrap()), None);
    assert!(schedule.next_after(Timestamp::from_millis(i64::MIN)).is_some());
}

#[test]
fn a_schedule_of_days_that_do_not_exist_never_comes() {
    assert!(!Schedule::parse("0 0 0 31 2 *", None).unwrap().ever_comes());
    assert!(!Schedule::parse("0 0 30 2 *", Some("Europe/Berlin")).unwrap().ever_comes());
    for cron in ["0 0 0 29 2 *", "0 0 31 * *", "0 0 0 1 1 * 2020", "* * * * * *", "0 0 31 2 Mon"] {
        assert!(Schedule::parse(cron, None).unwrap().ever_comes(), "{cron}");
    }
}

fn check_refused(cron: &str, why: &str) {
    let error = Schedule::parse(cron, None).expect_err(cron).to_string();
    assert!(error.contains(why), "{cron}: {error}");
    assert!(error.contains("0 9 * * 1-5"), "{error}");
}

#[test]
fn wrong_text_says_what_is_expected() {
    check_refused("every day", "it has 2 fields, not five or six");
    check_refused("", "it has 0 fields");
    check_refused("0 0 * * * * * *", "it has 8 fields");
    check_refused("60 * * * *", "the minute `60` is not from 0 to 59");
    check_refused("0 24 * * *", "the hour `24` is not from 0 to 23");
    check_refused("0 0 0 * *", "the day of month `0` is not from 1 to 31");
    check_refused("0 0 * 13 *", "the month `13` is not from 1 to 12");
    check_refused("0 0 * * 8", "the day of week `8` is not from 0 to 7");
    check_refused("0 0 L * *", "`L` is no day of month: write a number from 1 to 31");
    check_refused("0 0 15W * *", "`15W` is no day of month");
    check_refused(
        "0 0 * * 5L",
        "`5L` is no day of week: write a number from 0 to 7 or a name as `Sun`",
    );
    check_refused("0 0 * * 1#2", "`1#2`");
    check_refused("0 0 * * Fri-Mon", "the day of week `Fri-Mon` ends before it begins");
    check_refused("0 22-4 * * *", "the hour `22-4` ends before it begins");
    check_refused("*/0 * * * *", "the step `0` of the minute is not a number from 1 to 60");
    check_refused("*/90 * * * *", "the step `90` of the minute");
    check_refused("1,,2 * * * *", "`` is no minute");
    check_refused("0 0 * * Funday", "`Funday` is no day of week");
    check_refused("-1 * * * *", "`` is no minute");
    check_refused("? * * * *", "`?` is no minute");
    check_refused("٣ * * * *", "`٣` is no minute");
    check_refused("0 0 * * ſun", "`ſun` is no day of week");
    let zone = Schedule::parse("0 0 * * * *", Some("Mars")).unwrap_err();
    assert!(zone.to_string().contains("Europe/Berlin"));
}

#[test]
fn an_instant_is_shown_as_a_clock_in_the_zone_does() {
    for (zone, at, expected) in [
        (None, "2026-07-06T07:00:00Z", None),
        (Some("UTC"), "2026-07-06T07:00:00Z", None),
        (
            Some("Europe/Berlin"),
            "2026-07-06T07:00:00Z",
            Some("Mon 2026-07-06 09:00 in Europe/Berlin"),
        ),
        (
            Some("Asia/Kathmandu"),
            "2026-12-31T20:00:05.5Z",
            Some("Fri 2027-01-01 01:45:05 in Asia/Kathmandu"),
        ),
    ] {
        let schedule = Schedule::parse("0 9 * * *", zone).unwrap();
        let shown = schedule.shown_in_zone(at.parse().unwrap());
        assert_eq!(shown.as_deref(), expected, "{zone:?}");
    }
}
