//! How figures are written for people: three significant digits, the unit beside the number.

/// Nanoseconds with the unit that fits: `43 ns`, `1.23 µs`, `12.8 ms`, `3.05 s`.
pub fn duration(ns: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
    let (scale, unit) = UNITS
        .into_iter()
        .rev()
        // 0.9995 of a unit already rounds to one at three digits.
        .find(|(scale, _)| ns.abs() >= scale * 0.9995)
        .unwrap_or(UNITS[0]);
    format!("{} {unit}", three_digits(ns / scale))
}

/// A frequency over a frequency: `20 ppm`, `1.5 ppb`, `30 ppt`.
pub fn ratio_of_frequencies(ratio: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e-12, "ppt"), (1e-9, "ppb"), (1e-6, "ppm")];
    let fits = UNITS.into_iter().rev().find(|(scale, _)| ratio.abs() >= scale * 0.9995);
    let (scale, unit) = fits.unwrap_or(UNITS[0]);
    format!("{} {unit}", three_digits(ratio / scale))
}

/// Bytes: `64 B`, `512 kB`, `1 MB`; multiples of 1,024 as `4 KiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1_000_000, "MB"), (1 << 20, "MiB"), (1_000, "kB"), (1 << 10, "KiB")];
    UNITS
        .into_iter()
        .find(|(scale, _)| bytes >= *scale && bytes.is_multiple_of(*scale))
        .map_or_else(|| format!("{bytes} B"), |(scale, unit)| format!("{} {unit}", bytes / scale))
}

/// Thousandths of a hertz: `0.5 Hz`, `100 Hz`, `10 kHz`.
pub fn rate(rate_mhz: u64) -> String {
    let hz = rate_mhz as f64 / 1e3;
    if hz >= 1e6 {
        format!("{} MHz", three_digits(hz / 1e6))
    } else if hz >= 1e3 {
        format!("{} kHz", three_digits(hz / 1e3))
    } else {
        format!("{} Hz", three_digits(hz))
    }
}

/// A count with thin spaces between thousands: `1 234 567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() * 2);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push('\u{2009}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Three significant digits without an exponent, trailing zeros of a fraction removed.
pub fn three_digits(x: f64) -> String {
    if !x.is_finite() {
        return x.to_string();
    }
    let magnitude = match x.abs() {
        0.0 => 0,
        size => size.log10().floor() as i32,
    };
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    let mut text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_carry_three_digits_and_a_fitting_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (43.4, "43.4 ns"),
            (999.4, "999 ns"),
            (999.6, "1 µs"),
            (1_234.0, "1.23 µs"),
            (-12_829_694.0, "-12.8 ms"),
            (123_242_448.0, "123 ms"),
            (3.05e9, "3.05 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(
            [16, 512_000, 1_000_000, 4096, 1_048_576, 1001].map(size),
            ["16 B", "512 kB", "1 MB", "4 KiB", "1 MiB", "1001 B"]
        );
        assert_eq!([500, 100_000, 10_000_000].map(rate), ["0.5 Hz", "100 Hz", "10 kHz"]);
        assert_eq!(count(1_234_567), "1\u{2009}234\u{2009}567");
        assert_eq!(count(12), "12");
    }
}
