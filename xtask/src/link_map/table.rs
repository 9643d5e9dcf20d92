//! The map as Markdown, and what it says in sum.

use super::possible::TARGET;
use super::{BEST_EFFORT, CLASSES, Cell, Figures, Verdict};

/// Of so few extras a ratio says nothing: the datagrams before anything is known of the path.
const NEGLIGIBLE: f64 = 0.005;

/// Cells with what they were before.
pub(super) type Joined<'a> = [(Option<&'a Cell>, &'a Cell)];

/// Sentences of the whole map.
pub(super) fn summary(joined: &Joined<'_>) -> Vec<String> {
    let mut lines = vec![format!("{} cells.", joined.len())];
    for (class, name) in CLASSES.iter().enumerate().take(BEST_EFFORT) {
        let befores: Vec<&Cell> = joined.iter().filter_map(|(before, _)| *before).collect();
        let nows: Vec<&Cell> = joined.iter().map(|(_, now)| *now).collect();
        let mut words = Vec::new();
        for (when, cells) in [("before", befores), ("now", nows)] {
            let verdicts: Vec<Verdict> = cells.iter().filter_map(|cell| cell.verdict(class)).collect();
            let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
            let worse = count(|verdict| matches!(verdict, Verdict::Worse(_)));
            let better = count(|verdict| matches!(verdict, Verdict::Better(_)));
            let worst = cells
                .iter()
                .filter_map(|cell| match cell.verdict(class) {
                    Some(Verdict::Worse(by)) => Some((by, cell)),
                    _ => None,
                })
                .max_by(|(a, _), (b, _)| a.total_cmp(b));
            let worst = worst.map_or(String::new(), |(by, cell)| {
                format!(", at worst by {:.1} points ({} {}, {})", by * 100.0, cell.axis, cell.name, cell.load)
            });
            words.push(format!("{when} in {worse} of {} cells{worst}; better in {better}", verdicts.len()));
        }
        lines.push(format!("{name}: worse than best effort {}.", words.join(". ")));
        let wire = |cells: Vec<f64>| median(cells).map_or("–".into(), |ratio| format!("{ratio:.2}"));
        let of = |cell: &Cell| {
            let figures = cell.classes[class].as_ref().filter(|_| cell.load.starts_with("115 B"));
            figures.and_then(|figures| figures.wire_ratio)
        };
        let before = joined.iter().filter_map(|(before, _)| before.and_then(of)).collect();
        let now = joined.iter().filter_map(|(_, now)| of(now)).collect();
        lines.push(format!(
            "{name}: wire bytes per payload byte of 115 B, median over the cells: before {}, now {}.",
            wire(before),
            wire(now)
        ));
    }
    lines.extend(beside_the_bound(joined));
    lines
}

/// The middle value, or the mean of the two in the middle.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    noctule_proto_kit::median(&mut values)
}

/// The committed table.
pub(super) fn markdown(joined: &Joined<'_>) -> String {
    let mut text = format!(
        "# The map of links\n\n`cargo xtask sweep prrt` writes this page and `benchmarks/prrt_map/report.html`, which is the same in colours; the \
         links themselves stand in the CSV beside that. Simulated in virtual time; a part of the cells is drawn by a seed, which is an argument.\n\n\
         Share of samples in time, in percent: *before* is commit 4467c3c, *now* the code beside this page. ▼: worse than best effort on the same link \
         by more than 0.1 % and the interval ({}, Student's t). Extras: datagrams beyond those that carry each sample once. Wire: \
         bytes of all datagrams, both directions, IPv4 and UDP counted, per byte published.\n\n",
        judged_by(joined)
    );
    for line in summary(joined) {
        text += &format!("- {line}\n");
    }
    let mut axis = "";
    for (before, now) in joined {
        if now.axis != axis {
            axis = &now.axis;
            text += &format!(
                "\n## {axis}\n\n| cell | load | deadline ms | best effort | possible | deadline bound before | now | reliable before | now | least extras / repeating | before | now | \
                 wire before | now |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            );
        }
        text += &row(*before, now);
    }
    text
}

/// What the intervals are made of.
fn judged_by(joined: &Joined<'_>) -> String {
    let runs = joined.iter().filter_map(|(_, now)| Some(now.classes[0].as_ref()?.runs)).max();
    match runs {
        Some(runs) if runs > 1 => format!("{runs} runs, each with another seed of the link"),
        _ => "twenty parts of the run".into(),
    }
}

fn row(before: Option<&Cell>, now: &Cell) -> String {
    let share = |cell: Option<&Cell>, class: usize| on_time(cell, class);
    let figure = |cell: Option<&Cell>, pick: fn(&Figures) -> Option<f64>| {
        let figures = cell.and_then(|cell| cell.classes[0].as_ref());
        figures.and_then(pick).map_or("–".into(), |value| format!("{value:.3}"))
    };
    let beside = if now.beside.is_empty() || now.axis == "traffic" {
        String::new()
    } else {
        format!(" beside {}", now.beside)
    };
    format!(
        "| {}{beside} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        now.name,
        now.load,
        now.deadline_ms,
        share(Some(now), BEST_EFFORT),
        possible_share(now),
        share(before, 0),
        share(Some(now), 0),
        share(before, 1),
        share(Some(now), 1),
        least_extras(now),
        figure(before, |figures| figures.redundancy),
        figure(Some(now), |figures| figures.redundancy),
        figure(before, |figures| figures.wire_ratio),
        figure(Some(now), |figures| figures.wire_ratio),
    )
}

/// Share of samples that can be in time at all, in percent, where a bound is known.
pub(super) fn possible_share(cell: &Cell) -> String {
    cell.possible.map_or("–".into(), |possible| format!("{:.3}", (1.0 - possible.residual) * 100.0))
}

/// Extras below which no scheme keeps the target, and below which repetition does not, where that is known.
pub(super) fn least_extras(cell: &Cell) -> String {
    let shown = |value: f64| format!("{value:.3}");
    let Some(possible) = cell.possible else { return "–".into() };
    let least = possible.redundancy.map_or("–".into(), shown);
    possible.repetition.map_or(least.clone(), |repetition| format!("{least} / {repetition:.3}"))
}

/// The deadline-bound class compared with the bounds.
fn beside_the_bound(joined: &Joined<'_>) -> Vec<String> {
    let can = |now: &Cell| now.possible.is_some_and(|possible| possible.redundancy.is_some());
    let cells: Vec<_> = joined.iter().filter(|(_, now)| can(now)).collect();
    let keeps = |cell: &Cell| {
        cell.classes[0].as_ref().is_some_and(|figures| {
            let allowed = TARGET * figures.samples;
            figures.samples - figures.on_time <= allowed + 3.0 * allowed.sqrt()
        })
    };
    let of_before = |joined: &&&(Option<&Cell>, &Cell)| joined.0.is_some_and(keeps);
    let (before, now) =
        (cells.iter().filter(of_before).count(), cells.iter().filter(|(_, now)| keeps(now)).count());
    let ratio = |cell: Option<&Cell>, now: &Cell| {
        let extras = cell.and_then(|cell| cell.classes[0].as_ref()).and_then(|figures| figures.redundancy)?;
        let least = now.possible.and_then(|possible| possible.redundancy)?;
        (least > NEGLIGIBLE).then(|| extras / least)
    };
    let befores: Vec<f64> = cells.iter().filter_map(|(before, now)| ratio(*before, now)).collect();
    let nows: Vec<(f64, &Cell)> =
        cells.iter().filter_map(|(_, now)| Some((ratio(Some(now), now)?, *now))).collect();
    let worst = nows.iter().max_by(|(a, _), (b, _)| a.total_cmp(b));
    let worst = worst.map_or(String::new(), |(ratio, cell)| {
        format!("; most now {ratio:.1} ({} {}, {})", cell.axis, cell.name, cell.load)
    });
    let middle = |values: Vec<f64>| median(values).map_or("–".into(), |ratio| format!("{ratio:.2}"));
    vec![
        format!(
            "In {} cells a bound is known by which the target, 1 of 10,000 not in time, can be kept: before it was in {before} of them, now in {now}.",
            cells.len()
        ),
        format!(
            "Extras there, in parts of the least that any code with feedback needs: median before {}, now {}{worst}.",
            middle(befores),
            middle(nows.iter().map(|(ratio, _)| *ratio).collect())
        ),
    ]
}

/// A share with its mark.
pub(super) fn on_time(cell: Option<&Cell>, class: usize) -> String {
    let Some((cell, figures)) = cell.and_then(|cell| Some((cell, cell.classes[class].as_ref()?))) else {
        return "–".into();
    };
    if figures.broken.is_some() {
        return "broke".into();
    }
    let worse = class != BEST_EFFORT && matches!(cell.verdict(class), Some(Verdict::Worse(_)));
    let share = figures.on_time_share() * 100.0;
    // Never rounded up to all.
    let share = if figures.on_time < figures.samples { share.min(99.999) } else { share };
    format!("{share:.3}{}", if worse { " ▼" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_mean_of_the_two_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }
}
