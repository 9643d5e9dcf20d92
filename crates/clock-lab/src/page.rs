//! A replayed trace as one self-contained page, or as one picture.
//!
//! [`super::panels`] decides what is drawn; the template is `web/sync.html`; its frame, its
//! look and its plots are those of the lab's report.

use std::io;
use std::path::Path;

use minijinja::{Environment, context};

use super::accuracy::Accuracy;
use noctule_lab::notation::count;
use noctule_lab_report::panel::Panel;
use noctule_lab_report::{page, pictures};

/// Texts above the panels.
pub struct Heading<'a> {
    /// Name of the trace.
    pub trace: &'a str,
    /// Name of the estimator and how it was configured.
    pub estimator: String,
    /// Figures with their names, as the terminal shows them.
    pub figures: Vec<(&'a str, String)>,
}

/// Writes the page.
///
/// # Errors
/// If the file cannot be written.
pub fn write_page(path: &Path, heading: &Heading, accuracy: &Accuracy, panels: &[Panel]) -> io::Result<()> {
    let page = render(heading, accuracy, panels).map_err(io::Error::other)?;
    std::fs::write(path, page)
}

/// Writes all panels into one picture, SVG or PNG by the ending of `path`.
///
/// # Errors
/// If the ending is another or the file cannot be written.
pub fn write_picture(path: &Path, heading: &Heading, panels: &[Panel]) -> io::Result<()> {
    pictures::write_sheet(path, panels, &format!("{}, {}", heading.trace, heading.estimator))
}

fn render(heading: &Heading, accuracy: &Accuracy, panels: &[Panel]) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", page::FRAME)?;
    environment.add_template("sync.html", include_str!("web/sync.html"))?;
    let (kind, word, sentence) = verdict(accuracy);
    environment.get_template("sync.html")?.render(context! {
        title => format!("Clock replay: {}", heading.trace),
        subtitle => heading.estimator,
        verdict => context! { kind, word, sentence },
        figures => heading.figures,
        panels => panels.iter().map(|panel| context! {
            id => panel.id,
            title => panel.title,
            caption => panel.caption,
            points => panel.points(),
            legend => panel.legend(),
        }).collect::<Vec<_>>(),
        version => env!("CARGO_PKG_VERSION"),
        // Plain structs of numbers and fixed words: no name of the user's can end the script element.
        material => serde_json::to_string(panels).unwrap_or_default(),
        vendor_css => page::UPLOT_STYLE,
        vendor_js => page::UPLOT_SCRIPT,
        css => page::STYLE,
        plot_js => page::PLOT_SCRIPT,
        js => include_str!("web/sync.js"),
    })
}

/// Kind, word and sentence of the verdict.
fn verdict(accuracy: &Accuracy) -> (&'static str, &'static str, String) {
    let exchanges = accuracy.accepted.saturating_add(accuracy.rejected);
    let judged = count(u64::from(exchanges));
    match accuracy.bound_violations {
        Some(0) => ("valid", "HELD", format!("The truth never left the bound in {judged} exchanges.")),
        Some(times) => {
            let times = count(times);
            (
                "fail",
                "LEFT",
                format!("The truth left the bound after {times} of {judged} exchanges: a premise is broken."),
            )
        }
        None => (
            "partial",
            "NOT JUDGED",
            format!("{judged} exchanges without a truth, or an estimator without a bound."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TraceRow, judge, panels::panels, replay};
    use noctule_netsim::{Scenario, round_trips};
    use noctule_time_sync::EstimatorKind;

    fn replayed(scenario: &str) -> (Accuracy, Vec<Panel>) {
        let rows: Vec<TraceRow> =
            round_trips(&Scenario::named(scenario).unwrap(), 1).into_iter().map(TraceRow::from).collect();
        let replayed = replay(&rows, &mut EstimatorKind::Bounded.build(Default::default()));
        (judge(&rows, &replayed), panels(&rows, &replayed))
    }

    fn heading() -> Heading<'static> {
        let figures = vec![("rms error", "1.5 µs".to_owned())];
        Heading { trace: "</title><b>.csv", estimator: "bounded".to_owned(), figures }
    }

    #[test]
    fn a_page_says_the_verdict_and_escapes_the_name_of_the_trace() {
        let (accuracy, panels) = replayed("F");
        let page = render(&heading(), &accuracy, &panels).unwrap();
        assert!(page.contains("HELD") && page.contains("1.5 µs"));
        assert!(page.contains("&lt;&#x2f;title&gt;") && !page.contains("</title><b>"));
        for id in ["error", "round_trips", "wedge", "allan"] {
            assert!(page.contains(&format!("data-chart=\"{id}\"")), "{id}");
        }
        assert!(page.len() < 1_500_000, "{} bytes", page.len());
    }

    #[test]
    fn a_picture_is_what_its_ending_says() {
        let (_, panels) = replayed("F");
        let directory = tempfile::tempdir().unwrap();
        let svg = directory.path().join("f.svg");
        write_picture(&svg, &heading(), &panels).unwrap();
        let text = std::fs::read_to_string(&svg).unwrap();
        for word in ["Error of the estimate", "Allan deviation", "proven bound", "truth", "stepped"] {
            assert!(text.contains(word), "{word}");
        }
        let png = directory.path().join("f.png");
        write_picture(&png, &heading(), &panels).unwrap();
        assert_eq!(&std::fs::read(png).unwrap()[1..4], b"PNG");
        assert!(write_picture(&directory.path().join("f.gif"), &heading(), &panels).is_err());
    }
}
