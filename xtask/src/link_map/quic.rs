//! QUIC on the map: where it is ahead of the reliable class.

use super::{Cell, Figures, Map, RELIABLE, Request, Verdict, key_of, read, simulate};
use crate::shell;

const FIGURES: &str = "benchmarks/prrt_map/quic.csv";
const PACKAGE: &str = "crates/prrt/quic";
/// QUIC's places among the classes.
const CONTROLLERS: std::ops::Range<usize> = 3..5;

/// Runs QUIC on the cells and compares it with the reliable class: with the committed figures, or on links that a seed draws with what is run now.
pub(super) fn run(request: &Request, (seed, draws, form): (u64, u64, &str)) -> Result<(), String> {
    let is_committed = request.cells.is_none() && request.seed.is_none() && request.out.is_none();
    let (ours, theirs) = if is_committed {
        (super::NOW.to_owned(), FIGURES.to_owned())
    } else {
        let out = request.out.clone().unwrap_or_else(|| "target/prrt_map.csv".into());
        (out.clone(), format!("{}_quic.csv", out.trim_end_matches(".csv")))
    };
    if !request.redraw {
        if !is_committed {
            simulate((seed, draws, form), 1, &ours)?;
        }
        // In its folder, where its settings of cargo are.
        let root = shell::root();
        shell::run_in(
            &root.join(PACKAGE),
            &format!(
                "cargo run --release --quiet -- {seed} {draws} {form} > {0}.tmp && mv {0}.tmp {0}",
                root.join(&theirs).display()
            ),
        )?;
    }
    let (ours, theirs) = (read(&ours)?, read(&theirs)?);
    println!("{}", markdown(&compare(&ours, &theirs)));
    Ok(())
}

/// A cell of ours, QUIC's better controller there, and the verdict on the reliable class against it.
type Compared<'a> = (&'a Cell, &'a Figures, Verdict);

fn compare<'a>(ours: &'a Map, theirs: &'a Map) -> Vec<Compared<'a>> {
    let compared = ours.iter().filter_map(|cell| {
        let other = theirs.iter().find(|other| key_of(other) == key_of(cell))?;
        let better = other.classes[CONTROLLERS]
            .iter()
            .flatten()
            .filter(|figures| figures.broken.is_none())
            .max_by(|a, b| a.on_time.total_cmp(&b.on_time))?;
        Some((cell, better, cell.classes[RELIABLE].as_ref()?.verdict(better)?))
    });
    compared.collect()
}

/// What it comes to, and the cells in which QUIC is ahead, the worst first.
fn markdown(compared: &[Compared<'_>]) -> String {
    let mut behind: Vec<(f64, &Cell, &Figures)> = compared
        .iter()
        .filter_map(|(cell, better, verdict)| match verdict {
            Verdict::Worse(by) => Some((*by, *cell, *better)),
            _ => None,
        })
        .collect();
    behind.sort_by(|a, b| b.0.total_cmp(&a.0));
    let ahead = compared.iter().filter(|(_, _, verdict)| matches!(verdict, Verdict::Better(_))).count();
    let mean = |share: fn(&Compared<'_>) -> f64| {
        compared.iter().map(share).sum::<f64>() / compared.len().max(1) as f64 * 100.0
    };
    let ours = mean(|(cell, _, _)| cell.classes[RELIABLE].as_ref().map_or(0.0, Figures::on_time_share));
    let mut text = format!(
        "{} cells: the better of QUIC's two is ahead of the reliable class in {}, behind it in {ahead}. On time in the mean: {ours:.1} %, QUIC {:.1} %.\n\n\
         | cell | load | reliable | QUIC, the better | best effort |\n|---|---|---:|---:|---:|\n",
        compared.len(),
        behind.len(),
        mean(|(_, better, _)| better.on_time_share()),
    );
    for (_, cell, better) in behind {
        let share = |class: usize| {
            let figures = cell.classes[class].as_ref();
            figures.map_or("–".into(), |figures| format!("{:.1}", figures.on_time_share() * 100.0))
        };
        let beside = if cell.beside.is_empty() { String::new() } else { format!(" beside {}", cell.beside) };
        text += &format!(
            "| {} {}{beside} | {} | {} | {:.1} | {} |\n",
            cell.axis,
            cell.name,
            cell.load,
            share(RELIABLE),
            better.on_time_share() * 100.0,
            share(super::BEST_EFFORT)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn map(rows: &[(&str, u32)]) -> Map {
        let row = |(class, of_part): &(&str, u32)| {
            let parts = [of_part.to_string().as_str(); 20].join(" ");
            format!(
                "loss,a,115 B at 200 Hz,60,,delay=1ms,1,{class},2000,{},0,,1.8,1,2,0,{parts}\n",
                20 * of_part
            )
        };
        parse(&format!("axis\n{}", rows.iter().map(row).collect::<String>())).unwrap()
    }

    #[test]
    fn the_better_controller_counts() {
        let theirs = map(&[("QUIC BBR", 40), ("QUIC CUBIC", 99)]);
        for (ours, expected) in
            [(90, "ahead of the reliable class in 1, behind it in 0"), (100, "in 0, behind it in 1")]
        {
            let ours = map(&[("reliable", ours), ("best effort", 95)]);
            let text = markdown(&compare(&ours, &theirs));
            assert!(text.contains(expected), "{text}");
        }
        assert!(
            markdown(&compare(&map(&[("reliable", 90)]), &theirs))
                .contains("| loss a | 115 B at 200 Hz | 90.0 | 99.0 | – |")
        );
    }
}
