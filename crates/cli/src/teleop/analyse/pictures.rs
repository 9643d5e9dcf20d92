//! A joint's loop as one SVG: step, Bode, Nyquist near −1 and as far as its lower crossing, Nichols.

use noctule_arm::analysis::{Margins, OpenLoop, View, margins, step_response};
use noctule_arm::joint_loop::LoopConfig;

use self::chart::{Axis, Chart, Circle, Mark, Points};

mod chart;

/// Points of a frequency response.
const POINTS: u32 = 1_200;
/// Where the pictures begin, rad/s.
const LOWEST_RAD_S: f64 = 1.0;
/// Length of the drawn step responses, s.
const STEP_SECONDS: f64 = 0.2;
/// Points of a step response that are drawn.
const STEP_POINTS: usize = 800;
/// End of every picture's axis, rad/s.
const HIGHEST_RAD_S: f64 = 20_000.0;

/// One way of looking at the loop.
struct Looked {
    /// Angular frequency in rad/s, and the open loop there: real part, imaginary part.
    response: Vec<(f64, f64, f64)>,
    step: Points,
    margins: Margins,
}

impl Looked {
    fn new(config: &LoopConfig, view: View) -> Looked {
        let open_loop = OpenLoop::new(config, view);
        // At half of the sampling rate itself the phase leaps.
        let highest = (open_loop.highest_rad_s() * 0.999).min(HIGHEST_RAD_S);
        let grid = (0..=POINTS)
            .map(|index| LOWEST_RAD_S * (highest / LOWEST_RAD_S).powf(f64::from(index) / f64::from(POINTS)));
        let response = grid.map(|omega| (omega, open_loop.at(omega).re, open_loop.at(omega).im)).collect();
        let step = step_response(config, view, STEP_SECONDS);
        let stride = step.len().div_ceil(STEP_POINTS).max(1);
        Looked {
            response,
            step: step.iter().step_by(stride).map(|point| (point.time_ms, point.value)).collect(),
            margins: margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s()),
        }
    }

    fn gain_db(&self) -> Points {
        self.response.iter().map(|(omega, re, im)| (*omega, decibels(re.hypot(*im)))).collect()
    }

    /// Phase without leaps of a turn, degrees.
    fn phase_deg(&self) -> Points {
        let mut before: Option<f64> = None;
        let unwrapped = |(omega, re, im): &(f64, f64, f64)| {
            let raw = im.atan2(*re).to_degrees();
            let phase = before.map_or(if raw > 0.0 { raw - 360.0 } else { raw }, |before| {
                raw + 360.0 * ((before - raw) / 360.0).round()
            });
            before = Some(phase);
            (*omega, phase)
        };
        self.response.iter().map(unwrapped).collect()
    }

    /// The response and its mirror image, of negative frequencies.
    fn nyquist(&self) -> Points {
        let mirrored = self.response.iter().rev().map(|(_, re, im)| (*re, -im));
        self.response.iter().map(|(_, re, im)| (*re, *im)).chain(mirrored).collect()
    }

    fn nichols(&self) -> Points {
        self.phase_deg().iter().zip(self.gain_db()).map(|((_, phase), (_, gain))| (*phase, gain)).collect()
    }
}

fn decibels(ratio: f64) -> f64 {
    20.0 * ratio.log10()
}

/// The picture of the loop, with these views of it side by side.
pub(super) fn svg(config: &LoopConfig, views: &[(&'static str, View)]) -> String {
    let looked: Vec<Looked> = views.iter().map(|(_, view)| Looked::new(config, *view)).collect();
    let lines = |of: fn(&Looked) -> Points| looked.iter().map(of).collect::<Vec<_>>();
    let mut charts = vec![step(lines(|one| one.step.clone()))];
    charts.extend(bode(&looked, lines(Looked::gain_db), lines(Looked::phase_deg)));
    charts.extend(nyquist(&looked, lines(Looked::nyquist)));
    charts.push(Chart {
        title: "Nichols".into(),
        caption: "At −180°, above 0 dB: how far the gain may fall; below: rise".into(),
        x: Axis::linear("phase, degrees", -300.0, -60.0),
        y: Axis::linear("gain, dB", -40.0, 60.0),
        lines: lines(Looked::nichols),
        rules: vec![0.0],
        marks: vec![Mark { at: (-180.0, 0.0), text: "" }],
        ..Chart::default()
    });
    let gains = config.gains;
    let title = format!(
        "A joint's loop at {} Hz: P {:.4}, I {:.4}, D {:.5}, N {:.2}",
        config.rate_hz, gains.p, gains.i, gains.d, gains.n
    );
    let names: Vec<&str> = views.iter().map(|(name, _)| *name).collect();
    chart::sheet(&title, &names, &charts)
}

fn step(lines: Vec<Points>) -> Chart {
    let highest = lines.iter().flatten().map(|(_, value)| *value).fold(1.2, f64::max).min(3.0);
    Chart {
        title: "Step".into(),
        caption: "Angle for a reference that steps from 0 to 1".into(),
        x: Axis::linear("ms", 0.0, STEP_SECONDS * 1e3),
        y: Axis::linear("of the step", 0.0, highest * 1.08),
        lines,
        rules: vec![1.0],
        ..Chart::default()
    }
}

fn bode(looked: &[Looked], gains: Vec<Points>, phases: Vec<Points>) -> [Chart; 2] {
    let frequency = || Axis::logarithmic("rad/s", LOWEST_RAD_S, HIGHEST_RAD_S);
    let of = |one: &Looked| one.margins.phase();
    let crossings = looked.iter().filter_map(of).map(|crossing| crossing.omega_rad_s);
    let margins = looked.iter().filter_map(of).map(|crossing| format!("{:.2}°", crossing.margin));
    let margins = margins.collect::<Vec<_>>().join(", ");
    let marked =
        |height: f64| crossings.clone().map(|omega| Mark { at: (omega, height), text: "" }).collect();
    let gain = Chart {
        title: "Bode, gain".into(),
        caption: "Dots: gain of 1, where the phase margin counts".into(),
        x: frequency(),
        y: Axis::linear("dB", -80.0, 100.0),
        lines: gains,
        rules: vec![0.0],
        marks: marked(0.0),
        ..Chart::default()
    };
    let at_phases = looked.iter().filter_map(of);
    let phase = Chart {
        title: "Bode, phase".into(),
        caption: format!("Phase margins, above −180° (red): {margins}"),
        x: frequency(),
        y: Axis::linear("degrees", -360.0, 0.0),
        lines: phases,
        rules: vec![-180.0],
        marks: at_phases
            .map(|crossing| Mark { at: (crossing.omega_rad_s, crossing.margin - 180.0), text: "" })
            .collect(),
        ..Chart::default()
    };
    [gain, phase]
}

fn nyquist(looked: &[Looked], lines: Vec<Points>) -> [Chart; 2] {
    let ms = looked.iter().map(|one| one.margins.ms).fold(1.0, f64::max);
    let circles = vec![
        Circle { middle: (0.0, 0.0), radius: 1.0, is_limit: false },
        Circle { middle: (-1.0, 0.0), radius: 1.0 / ms, is_limit: true },
    ];
    let near = Chart {
        title: "Nyquist near −1".into(),
        caption: format!("Grey: gain of 1. Red: the largest sensitivity, {ms:.3}; no line enters it"),
        x: Axis::linear("real part", -2.9, 1.3),
        y: Axis::linear("imaginary part", -1.0, 1.0),
        lines: lines.clone(),
        circles: circles.clone(),
        marks: vec![Mark { at: (-1.0, 0.0), text: "−1" }],
        is_equal: true,
        ..Chart::default()
    };
    let crossing = looked.first().and_then(|one| {
        let falling = one.margins.phase_crossings.iter().filter(|crossing| crossing.margin < 0.0);
        falling.copied().max_by(|a, b| a.margin.total_cmp(&b.margin))
    });
    let (caption, lowest) = match crossing {
        Some(crossing) => {
            let at = -10f64.powf(-crossing.margin / 20.0);
            let text = format!(
                "The gain may fall by {:.2} dB: a crossing at −{:.2}, {:.2} rad/s",
                -crossing.margin, -at, crossing.omega_rad_s
            );
            (text, at)
        }
        None => ("The gain may fall without end: there is no lower crossing".into(), -3.0),
    };
    let mut marks = vec![Mark { at: (-1.0, 0.0), text: "−1" }];
    marks.extend(crossing.map(|_| Mark { at: (lowest, 0.0), text: "" }));
    let far = Chart {
        title: "Nyquist to its lower crossing".into(),
        caption,
        x: Axis::linear("real part", 1.35 * lowest.max(-200.0), 3.0),
        y: Axis::linear("imaginary part", -1.0, 1.0),
        lines,
        circles,
        marks,
        is_equal: true,
        ..Chart::default()
    };
    [near, far]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const VIEWS: [(&str, View); 2] =
        [("continuous", View::Continuous), ("late", View::Sampled { delay_samples: 1 })];

    #[test]
    fn the_picture_contains_the_margins_and_round_circles() {
        let text = svg(&LoopConfig::seed(), &VIEWS);
        for part in ["55.26°, 51.76°", "fall by 19.36 dB", "24.47 rad/s", "1.333", "Nichols", "continuous"]
        {
            assert!(text.contains(part), "{part}");
        }
        assert_eq!(text.matches("<circle class=\"ring\"").count(), 4);
        assert!(!text.contains("NaN") && !text.contains("inf"), "a coordinate is no number");
        assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    }

    #[test]
    fn an_unstable_loop_can_be_drawn() {
        let mut config = LoopConfig::seed();
        config.gains.p *= 100.0;
        let text = svg(&LoopConfig { rate_hz: 125.0, ..config }, &VIEWS);
        assert!(text.contains("Nyquist near") && !text.contains("NaN"));
    }

    #[test]
    fn phase_has_no_leaps_of_a_turn() {
        let late = Looked::new(&LoopConfig::seed(), View::Sampled { delay_samples: 20 });
        let phases = late.phase_deg();
        assert!(phases.windows(2).all(|pair| (pair[1].1 - pair[0].1).abs() < 90.0));
        assert!(phases.last().unwrap().1 < -1_000.0, "twenty samples turn it often");
    }
}
