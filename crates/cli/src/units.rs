//! Figures for people: ages, sizes and text from others.

use noctule::Age;
use noctule_timebase::Span;

/// An age with its proven bound, both in the unit that suits the larger one.
pub(crate) fn age(age: Option<Age>) -> String {
    age.map_or_else(|| "unknown".into(), |age| with_bound(age.span, age.bound))
}

/// `12.3 µs ± 0`; a bound that is not known is `?`.
pub(crate) fn with_bound(span: Span, bound: Option<Span>) -> String {
    let (unit, divisor) = unit(span.abs().max(bound.unwrap_or(Span::ZERO)));
    let figure = |span: Span| three_digits(span.ns() as f64 / divisor);
    let bound = match bound {
        None => "?".into(),
        Some(Span::ZERO) => "0".into(),
        Some(bound) => figure(bound),
    };
    format!("{} {unit} ± {bound}", figure(span))
}

/// `12.3 µs`.
pub(crate) fn time(span: Span) -> String {
    let (unit, divisor) = unit(span.abs());
    format!("{} {unit}", three_digits(span.ns() as f64 / divisor))
}

fn unit(largest: Span) -> (&'static str, f64) {
    match largest.ns() {
        ns if ns < 1_000 => ("ns", 1.0),
        ns if ns < 1_000_000 => ("µs", 1e3),
        ns if ns < 1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `1.5 kB`, in powers of ten.
pub(crate) fn bytes(count: f64) -> String {
    match count {
        count if count < 1e3 => format!("{count:.0} B"),
        count if count < 1e6 => format!("{} kB", three_digits(count / 1e3)),
        count if count < 1e9 => format!("{} MB", three_digits(count / 1e6)),
        _ => format!("{} GB", three_digits(count / 1e9)),
    }
}

/// Text that another process chose, without what would steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => safe.push(character),
            _ if character.is_control() => safe.extend(character.escape_default()),
            _ => safe.push(character),
        }
    }
    safe
}

/// Columns as wide as their widest cell, two spaces between them; `right` says which are figures.
pub(crate) fn columns(rows: &[Vec<String>], right: &[bool]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths.iter().zip(right));
        let cells = cells.map(|(cell, (width, right))| match right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_and_its_bound_have_one_unit() {
        let age = |ns, bound| with_bound(Span::from_ns(ns), bound);
        assert_eq!(age(12_345, Some(Span::ZERO)), "12.3 µs ± 0");
        assert_eq!(age(-40_000, Some(Span::from_ns(1_200_000))), "-0.04 ms ± 1.20");
        assert_eq!(age(2_000_000_000, None), "2 s ± ?");
        assert_eq!(super::age(None), "unknown");
    }

    #[test]
    fn nothing_that_steers_a_terminal_is_printed() {
        assert_eq!(printable("a\u{1b}[2Jb\tc"), "a\\u{1b}[2Jb\tc");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".into(), "1".into()], vec!["bcd".into(), "20".into()]];
        assert_eq!(columns(&rows, &[false, true]), "a     1\nbcd  20\n");
    }
}
