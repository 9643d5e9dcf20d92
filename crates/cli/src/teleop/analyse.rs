//! `noctule teleop analyse`: control analysis of a joint's loop.

mod pictures;

use std::error::Error;
use std::path::{Path, PathBuf};

use noctule_arm::analysis::{
    Crossing, Margins, OpenLoop, StepMetrics, View, closed_loop, is_stable, margins, spectral_radius,
    step_metrics, step_response,
};
use noctule_arm::joint_loop::LoopConfig;
use noctule_arm::pid::Gains;
use serde_json::{Value, json};

use super::numbers;
use crate::argument::ArgumentError;
use crate::{Outcome, units};

/// Long enough for the slowest pole to die away.
const STEP_SECONDS: f64 = 1.0;

#[derive(clap::Args)]
pub(crate) struct AnalyseArguments {
    /// Gains of the speed controller: P + I/s + D·N/(1 + N/s); the seed's by default
    #[arg(long, value_name = "P,I,D,N", value_parser = gains, allow_hyphen_values = true)]
    gains: Option<Gains>,
    /// Samples a second of the loop that runs
    #[arg(long, value_name = "N", default_value_t = 4_000.0, value_parser = rate)]
    rate_hz: f64,
    /// Draw step, Bode, Nyquist and Nichols into this file
    #[arg(long, value_name = "FILE.svg", value_parser = picture)]
    picture: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn picture(text: &str) -> Result<PathBuf, ArgumentError> {
    let path = PathBuf::from(text);
    let is_svg = path.extension().is_some_and(|ending| ending == "svg");
    is_svg.then_some(path).ok_or_else(|| ArgumentError::Svg(text.to_owned()))
}

fn draw(path: &Path, config: &LoopConfig, views: &[(&'static str, View)]) -> Result<(), Box<dyn Error>> {
    let named: Vec<_> = views.iter().map(|(name, view)| (words(name), *view)).collect();
    let written = std::fs::write(path, pictures::svg(config, &named));
    Ok(written.map_err(|error| format!("cannot write {}: {error}", path.display()))?)
}

/// Heads of columns and names of lines.
fn words(name: &'static str) -> &'static str {
    if name == "sampled_one_sample_late" { "one sample late" } else { name }
}

fn gains(text: &str) -> Result<Gains, ArgumentError> {
    let [p, i, d, n] = numbers::<4>(text)?;
    // Beyond, squares of poles leave the numbers' range, and no search for them ends.
    let is_sensible = [p, i, d, n].iter().all(|gain| gain.abs() <= 1e9) && n > 0.0;
    is_sensible.then_some(Gains { p, i, d, n }).ok_or_else(|| ArgumentError::Gains(text.to_owned()))
}

fn rate(text: &str) -> Result<f64, ArgumentError> {
    let rate = text.parse().ok().filter(|rate| (10.0..=1e6).contains(rate));
    rate.ok_or_else(|| ArgumentError::ControlRate(text.to_owned()))
}

pub(crate) fn run(arguments: &AnalyseArguments) -> Result<Outcome, Box<dyn Error>> {
    let gains = arguments.gains.unwrap_or(Gains::SEED);
    let config = LoopConfig { gains, rate_hz: arguments.rate_hz, ..LoopConfig::seed() };
    let views = [
        ("continuous", View::Continuous),
        ("sampled", View::Sampled { delay_samples: 0 }),
        ("sampled_one_sample_late", View::Sampled { delay_samples: 1 }),
    ];
    if let Some(path) = &arguments.picture {
        draw(path, &config, &views)?;
    }
    let analysed = views.map(|(name, view)| {
        let open_loop = OpenLoop::new(&config, view);
        (
            name,
            view,
            margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s()),
            is_stable(&config, view),
        )
    });
    let steps = views.map(|(name, view)| (name, step_metrics(&step_response(&config, view, STEP_SECONDS))));
    let open_loop = OpenLoop::new(&config, View::Continuous);
    let motor = margins(&|omega| open_loop.motor_alone(omega), open_loop.highest_rad_s()).phase();
    if arguments.json {
        let mut object = json!({});
        for (name, view, margins, stable) in &analysed {
            object[*name] = of_view(&config, *view, margins, *stable);
        }
        object["step"] = json!(steps[0].1);
        object["step_sampled"] = json!(steps[1].1);
        object["motor_alone"] = json!({
            "phase_margin_deg": motor.map(|crossing| crossing.margin),
            "gain_crossover_rad_s": motor.map(|crossing| crossing.omega_rad_s),
        });
        anstream::println!("{object}");
        return Ok(Outcome::Done);
    }
    anstream::print!(
        "{}",
        table(&analysed.map(|(name, _, margins, stable)| (name, margins, stable)), &steps)
    );
    if let Some(Crossing { omega_rad_s, margin }) = motor {
        anstream::println!(
            "The motor alone, without a controller, has a phase margin of {margin:.2}° at {omega_rad_s:.2} rad/s."
        );
    }
    Ok(Outcome::Done)
}

/// Gain margins nearest to 0 dB first: these are the ones that matter.
fn by_size(margins: &Margins) -> Vec<Crossing> {
    let mut crossings = margins.phase_crossings.clone();
    crossings.sort_by(|a, b| a.margin.abs().total_cmp(&b.margin.abs()));
    crossings
}

fn of_view(config: &LoopConfig, view: View, margins: &Margins, stable: bool) -> Value {
    let phase = margins.phase();
    let gains = by_size(margins);
    let mut object = json!({
        "stable": stable,
        "phase_margin_deg": phase.map(|crossing| crossing.margin),
        "gain_crossover_rad_s": phase.map(|crossing| crossing.omega_rad_s),
        // A loop that is unstable already has none.
        "delay_margin_ms": margins.delay_margin_ms.filter(|_| stable),
        "ms": margins.ms,
        "bandwidth_hz": margins.bandwidth_hz,
        "gain_margins_db": gains.iter().map(|crossing| crossing.margin).collect::<Vec<_>>(),
        "phase_crossovers_rad_s": gains.iter().map(|crossing| crossing.omega_rad_s).collect::<Vec<_>>(),
    });
    match view {
        View::Continuous => {
            let poles = closed_loop(config, view).transition.complex_eigenvalues();
            object["poles"] = poles.iter().map(|pole| json!([pole.re, pole.im])).collect();
        }
        View::Sampled { delay_samples } => {
            object["spectral_radius"] = json!(spectral_radius(config, delay_samples))
        }
    }
    object
}

fn table(views: &[(&str, Margins, bool); 3], steps: &[(&str, Option<StepMetrics>); 3]) -> String {
    let mut rows = vec![["", "continuous", "sampled", "one sample late"].map(str::to_owned).to_vec()];
    let mut row = |name: &str, cell: &dyn Fn(usize) -> String| {
        rows.push([name.to_owned()].into_iter().chain((0..3).map(cell)).collect());
    };
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".into());
    row("stable", &|view| if views[view].2 { "yes" } else { "no" }.into());
    row("phase margin", &|view| {
        or_none(views[view].1.phase().map(|crossing| format!("{:.3}°", crossing.margin)))
    });
    row("at rad/s", &|view| {
        or_none(views[view].1.phase().map(|crossing| format!("{:.2}", crossing.omega_rad_s)))
    });
    row("delay margin", &|view| {
        or_none(views[view].1.delay_margin_ms.filter(|_| views[view].2).map(|ms| format!("{ms:.3} ms")))
    });
    row("gain margins", &|view| {
        let margins = by_size(&views[view].1);
        margins.iter().map(|crossing| format!("{:.2}", crossing.margin)).collect::<Vec<_>>().join(", ")
            + " dB"
    });
    row("peak of the sensitivity", &|view| format!("{:.3}", views[view].1.ms));
    row("bandwidth", &|view| or_none(views[view].1.bandwidth_hz.map(|hz| format!("{hz:.1} Hz"))));
    let step = |view: usize, of: &dyn Fn(&StepMetrics) -> String| or_none(steps[view].1.as_ref().map(of));
    row("overshoot", &|view| step(view, &|step| format!("{:.2} %", step.overshoot_percent)));
    row("rise, 10 to 90 %", &|view| step(view, &|step| format!("{:.2} ms", step.rise_time_ms)));
    row("settling, 2 %", &|view| step(view, &|step| format!("{:.2} ms", step.settling_time_ms)));
    units::columns(&rows, &[false, true, true, true])
}
