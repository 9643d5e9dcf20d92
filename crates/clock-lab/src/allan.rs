//! The Allan deviation of an offset: how unsteady it is, by how long one looks.
//!
//! Overlapping form (Riley, Handbook of Frequency Stability Analysis, NIST SP 1065, 2008, eq. 11): with
//! phases x one spacing τ₀ apart and τ = m·τ₀,
//!
//! ```text
//! σ²(τ) = Σ (x[i+2m] − 2·x[i+m] + x[i])² / (2·τ²·terms)
//! ```
//!
//! A constant offset and a constant drift cancel. White noise of the stamps falls with τ⁻¹, a drift
//! that wanders rises with τ^½: where the two cross is how long averaging helps. Lost exchanges leave
//! empty slots, and a term that touches one is left out; nothing is interpolated.

/// Terms that a deviation must rest on to be shown.
const TERMS_MIN: usize = 10;
/// Slots at most: a trace with long pauses is put into wider ones.
const SLOTS_MAX: usize = 1 << 22;

/// The Allan deviation over one averaging time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllanPoint {
    /// Averaging time τ in seconds.
    pub tau_s: f64,
    /// σ(τ), a ratio of frequencies.
    pub deviation: f64,
}

/// Deviations of offsets in ns at times in seconds that do not fall, three averaging times an octave,
/// each from at least ten terms.
pub fn curve(times_s: &[f64], offsets_ns: &[f64]) -> Vec<AllanPoint> {
    let Some(Slots { phases_ns, spacing_s }) = slots(times_s, offsets_ns) else {
        return Vec::new();
    };
    let mut points = Vec::new();
    let mut span = 1_usize;
    while 2 * span < phases_ns.len() {
        match deviation(&phases_ns, spacing_s, span) {
            Some((point, terms)) if terms >= TERMS_MIN => points.push(point),
            _ => {}
        }
        span = ((span as f64 * 2f64.powf(1.0 / 3.0)).round() as usize).max(span + 1);
    }
    points
}

/// The deviation over `span` spacings and the number of its terms; `None` without any.
fn deviation(phases_ns: &[Option<f64>], spacing_s: f64, span: usize) -> Option<(AllanPoint, usize)> {
    let (mut sum, mut terms) = (0.0, 0_usize);
    for i in 0..phases_ns.len().saturating_sub(2 * span) {
        if let (Some(a), Some(b), Some(c)) = (phases_ns[i], phases_ns[i + span], phases_ns[i + 2 * span]) {
            sum += (c - 2.0 * b + a).powi(2);
            terms += 1;
        }
    }
    let tau_s = spacing_s * span as f64;
    let deviation = (sum / (2.0 * terms as f64)).sqrt() / (tau_s * 1e9);
    (terms > 0).then_some((AllanPoint { tau_s, deviation }, terms))
}

/// Offsets at even spacing.
struct Slots {
    /// `None` where there was no exchange.
    phases_ns: Vec<Option<f64>>,
    spacing_s: f64,
}

/// Puts irregular offsets into slots of the median spacing, the first of each slot.
fn slots(times_s: &[f64], offsets_ns: &[f64]) -> Option<Slots> {
    let mut gaps: Vec<f64> =
        times_s.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0).collect();
    gaps.sort_by(f64::total_cmp);
    let (first, last) = (*times_s.first()?, *times_s.last()?);
    let spacing_s = gaps.get(gaps.len() / 2)?.max((last - first) / SLOTS_MAX as f64);
    let mut slots = vec![None; ((last - first) / spacing_s).round() as usize + 1];
    for (at_s, offset_ns) in times_s.iter().zip(offsets_ns) {
        let slot = ((at_s - first) / spacing_s).round() as usize;
        if let Some(empty @ None) = slots.get_mut(slot) {
            *empty = Some(*offset_ns);
        }
    }
    Some(Slots { phases_ns: slots, spacing_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_netsim::Random;

    fn of(phases_ns: &[f64], span: usize) -> (f64, usize) {
        let phases: Vec<_> = phases_ns.iter().copied().map(Some).collect();
        let (point, terms) = deviation(&phases, 1.0, span).unwrap();
        (point.deviation * 1e9, terms)
    }

    #[test]
    fn five_phases_give_what_a_pencil_gives() {
        // Second differences by one: −2, 3, −3; squares 4 + 9 + 9 = 22; 22 / (2·1²·3) = 11/3.
        // By two: 1 − 2·0 + 0 = 1; 1 / (2·2²·1) = 1/8.
        let phases = [0.0, 1.0, 0.0, 2.0, 1.0];
        let (one, terms) = of(&phases, 1);
        assert!((one * one - 11.0 / 3.0).abs() < 1e-9 && terms == 3, "{one}");
        let (two, terms) = of(&phases, 2);
        assert!((two * two - 1.0 / 8.0).abs() < 1e-9 && terms == 1, "{two}");
    }

    #[test]
    fn offset_and_drift_do_not_count() {
        let phases: Vec<f64> = (0..50).map(|i| 7e5 + 200.0 * f64::from(i)).collect();
        assert_eq!(of(&phases, 3).0, 0.0);
    }

    #[test]
    fn white_noise_falls_by_slope_minus_one() {
        let mut random = Random::new(1);
        let times: Vec<f64> = (0..20_000).map(|i| f64::from(i) * 0.1).collect();
        let noise: Vec<f64> = times.iter().map(|_| (random.bits() >> 44) as f64).collect();
        let curve = curve(&times, &noise);
        let near = |tau_s: f64| curve.iter().find(|p| (p.tau_s / tau_s).ln().abs() < 0.2).unwrap();
        let (early, late) = (near(0.1), near(50.0));
        let slope = (late.deviation / early.deviation).ln() / (late.tau_s / early.tau_s).ln();
        assert!((slope + 1.0).abs() < 0.03, "{slope}");
        // √3 standard deviations of uniform noise over τ.
        let expected = 3f64.sqrt() * f64::from(1 << 20) / 12f64.sqrt() / 0.1e9;
        assert!((early.deviation / expected - 1.0).abs() < 0.03, "{early:?}");
    }

    #[test]
    fn lost_exchanges_are_left_out_and_not_made_up() {
        let times: Vec<f64> = (0..200).filter(|i| i % 5 != 0).map(f64::from).collect();
        let offsets: Vec<f64> = times.iter().map(|at| at * at).collect();
        // The second difference of a square by one is 2 wherever there is one.
        let expected_ns = (4.0_f64 / 2.0).sqrt();
        assert!((curve(&times, &offsets)[0].deviation * 1e9 - expected_ns).abs() < 1e-6);
        assert_eq!(curve(&[], &[]), []);
        assert_eq!(curve(&[1.0, 1.0], &[2.0, 3.0]), []);
    }
}
