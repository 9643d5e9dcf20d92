//! Colours that stay apart with colour vision deficiency, for charts on white.
//!
//! Categories: Okabe & Ito 2008, with wine and olive after Tol; the page's light theme (`web/report.css`)
//! has the same. Magnitudes: cividis (Nuñez, Anderton & Renslow 2018), here from dark for slow to
//! light for fast.

use super::series::COLOURS;

/// Red, green and blue, 0 … 255.
pub type Rgb = [u8; 3];

/// One colour per category.
pub const CATEGORIES: [Rgb; COLOURS] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xb0, 0x57, 0x8d],
    [0xc9, 0x8a, 0x00],
    [0x3f, 0x9f, 0xd8],
    [0x88, 0x22, 0x55],
    [0x6b, 0x6b, 0x2f],
];

const CIVIDIS: [[f64; 3]; 5] = [
    [0.0, 34.0, 78.0],
    [65.0, 77.0, 107.0],
    [124.0, 123.0, 120.0],
    [187.0, 175.0, 113.0],
    [254.0, 232.0, 56.0],
];

/// Colour of a magnitude from 0 (slowest) to 1 (fastest), and whether text on it must be dark.
pub fn magnitude(share: f64) -> (Rgb, bool) {
    let at = share.clamp(0.0, 1.0) * (CIVIDIS.len() - 1) as f64;
    let stop = (at as usize).min(CIVIDIS.len() - 2);
    let part = at - stop as f64;
    let colour = std::array::from_fn(|channel| {
        let (from, to) = (CIVIDIS[stop][channel], CIVIDIS[stop + 1][channel]);
        (from + (to - from) * part).round() as u8
    });
    (colour, share > 0.45)
}

/// Shares for [`magnitude`] of the figures of a grid, on a logarithmic scale from its slowest (0) to
/// its fastest (1).
pub fn shares(grid: &[Vec<Option<i64>>]) -> Vec<Vec<Option<f64>>> {
    let log = |ns: i64| (ns.max(1) as f64).ln();
    let figures = grid.iter().flatten().filter_map(|figure| *figure);
    let (low, high) =
        figures.map(log).fold((f64::MAX, f64::MIN), |range, ns| (range.0.min(ns), range.1.max(ns)));
    let share = |ns: i64| (high - log(ns)) / (high - low).max(f64::MIN_POSITIVE);
    grid.iter().map(|row| row.iter().map(|figure| figure.map(share)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_is_darkest_and_the_fastest_lightest() {
        let shares = shares(&[vec![Some(100), None], vec![Some(10_000), Some(1_000)]]);
        assert_eq!(shares[0], [Some(1.0), None]);
        assert_eq!(shares[1][0], Some(0.0));
        assert!((shares[1][1].unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(magnitude(0.0), ([0, 34, 78], false));
        assert_eq!(magnitude(1.0), ([254, 232, 56], true));
    }

    #[test]
    fn the_page_has_the_same_colours() {
        let css = include_str!("web/report.css");
        for [red, green, blue] in CATEGORIES {
            assert!(css.contains(&format!("#{red:02x}{green:02x}{blue:02x}")));
        }
    }
}
