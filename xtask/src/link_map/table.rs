//! The map as Markdown, and what it says in sum.

use super::{BEST_EFFORT, CLASSES, Cell, Figures, Verdict};

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
    lines
}

/// The middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

/// The committed table.
pub(super) fn markdown(joined: &Joined<'_>) -> String {
    let mut text = String::from(
        "# The map of links\n\n`cargo xtask sweep prrt` writes this page and `benchmarks/prrt_map/report.html`, which is the same in colours; the \
         links themselves stand in the CSV beside that. Simulated in virtual time; a part of the cells is drawn by a seed, which is an argument.\n\n\
         Share of samples in time, in percent: *before* is commit 4467c3c, *now* the code beside this page. ▼: worse than best effort on the same link \
         by more than 0.1 % and the interval (twenty parts of the run, Student's t). Extras: datagrams beyond those that carry each sample once. Wire: \
         bytes of all datagrams, both directions, IPv4 and UDP counted, per byte published.\n\n",
    );
    for line in summary(joined) {
        text += &format!("- {line}\n");
    }
    let mut axis = "";
    for (before, now) in joined {
        if now.axis != axis {
            axis = &now.axis;
            text += &format!(
                "\n## {axis}\n\n| cell | load | deadline ms | best effort | deadline bound before | now | reliable before | now | extras before | now | \
                 wire before | now |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            );
        }
        text += &row(*before, now);
    }
    text
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
        "| {}{beside} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        now.name,
        now.load,
        now.deadline_ms,
        share(Some(now), BEST_EFFORT),
        share(before, 0),
        share(Some(now), 0),
        share(before, 1),
        share(Some(now), 1),
        figure(before, |figures| figures.redundancy),
        figure(Some(now), |figures| figures.redundancy),
        figure(before, |figures| figures.wire_ratio),
        figure(Some(now), |figures| figures.wire_ratio),
    )
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
