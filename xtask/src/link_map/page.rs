//! The map as a page of its own, in colours.

use super::table::{Joined, least_extras, on_time, possible_share, summary};
use super::{BEST_EFFORT, Cell, Figures, Verdict};

const STYLE: &str = "body{font:13px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1560px;padding:0 1rem;color:#1b1f24;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}table{border-collapse:collapse;width:100%}\
th,td{padding:.18rem .5rem;text-align:right;border-bottom:1px solid #e4e7eb;white-space:nowrap;font-variant-numeric:tabular-nums}\
th{white-space:normal;font-weight:600;background:#f6f8fa;position:sticky;top:0}td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}\
td:first-child{white-space:normal;min-width:15rem}.strip{display:flex;flex-wrap:wrap;gap:2px;margin:.3rem 0 1rem}\
.strip i{width:13px;height:13px;border-radius:2px;display:block}.key i{display:inline-block;width:13px;height:13px;border-radius:2px;\
vertical-align:-2px;margin:0 .3rem 0 1rem}p,li{max-width:60rem}.none{color:#8a939d}";

/// The whole page.
pub(super) fn html(joined: &Joined<'_>) -> String {
    let mut text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>The map of links</title><style>{STYLE}</style><h1>The map of links</h1>\
         <p>Share of samples in time on each link, simulated in virtual time, beside best effort on the same link and seed. \
         <b>Before</b> is commit 4467c3c. One square is one cell; its name shows when pointed at.</p>"
    );
    text += "<ul>";
    for line in summary(joined) {
        text += &format!("<li>{}</li>", escaped(&line));
    }
    text += "</ul><p class=key>Against best effort:";
    for (difference, name) in [
        (0.3, "30 points better"),
        (0.03, "3 better"),
        (0.0, "alike"),
        (-0.003, "0.3 worse"),
        (-0.03, "3 worse"),
        (-0.6, "60 worse"),
    ] {
        text += &format!("<i style=\"background:{}\"></i>{name}", colour(difference));
    }
    text += "</p>";
    for (class, name) in [(0, "Deadline bound"), (1, "Reliable")] {
        for (when, is_now) in [("before", false), ("now", true)] {
            text += &format!("<h2>{name}, {when}</h2><div class=strip>");
            for (before, now) in joined {
                let Some(cell) = (if is_now { Some(*now) } else { *before }) else { continue };
                let title =
                    format!("{} {}, {}: {} %", cell.axis, cell.name, cell.load, on_time(Some(cell), class));
                text += &format!(
                    "<i title=\"{}\" style=\"background:{}\"></i>",
                    escaped(&title),
                    shade(cell, class)
                );
            }
            text += "</div>";
        }
    }
    let mut axis = "";
    for (before, now) in joined {
        if now.axis != axis {
            text += if axis.is_empty() { "" } else { "</table>" };
            axis = &now.axis;
            text += &format!("<h2>{}</h2><table>{HEAD}", escaped(axis));
        }
        text += &row(*before, now);
    }
    text + "</table></html>\n"
}

const HEAD: &str = "<tr><th>cell<th>load<th>deadline ms<th>best effort %<th>possible %<th>deadline bound before<th>now<th>reliable before<th>now\
<th>least extras / repeating<th>before<th>now<th>wire before<th>now<th>p99 ms before<th>now";

fn row(before: Option<&Cell>, now: &Cell) -> String {
    let share = |cell: Option<&Cell>, class: usize| match cell {
        None => "<td class=none>–".to_owned(),
        Some(cell) if class == BEST_EFFORT => format!("<td>{}", on_time(Some(cell), class)),
        Some(cell) => {
            format!("<td style=\"background:{}\">{}", shade(cell, class), on_time(Some(cell), class))
        }
    };
    let figure = |cell: Option<&Cell>, pick: fn(&Figures) -> Option<f64>| {
        let value = cell.and_then(|cell| cell.classes[0].as_ref()).and_then(pick);
        value.map_or("<td class=none>–".into(), |value| format!("<td>{value:.2}"))
    };
    let pair = |pick: fn(&Figures) -> Option<f64>| figure(before, pick) + &figure(Some(now), pick);
    let beside = beside(before, now);
    format!(
        "<tr title=\"{}\"><td>{}{beside}<td>{}<td>{}{}<td>{}{}{}{}{}<td>{}{}{}{}",
        escaped(&now.link),
        escaped(&now.name),
        now.load,
        now.deadline_ms,
        share(Some(now), BEST_EFFORT),
        possible_share(now),
        share(before, 0),
        share(Some(now), 0),
        share(before, 1),
        share(Some(now), 1),
        least_extras(now),
        pair(|figures| figures.redundancy),
        pair(|figures| figures.wire_ratio),
        pair(|figures| figures.p99_ms),
    )
}

/// Traffic beside the stream, and how much of it arrived, with the deadline-bound class beside it.
fn beside(before: Option<&Cell>, now: &Cell) -> String {
    if now.beside.is_empty() {
        return String::new();
    }
    let mbps = |cell: &Cell| cell.classes[0].as_ref().map_or(0.0, |figures| figures.beside_mbps);
    let was = before.map_or(String::new(), |before| format!("{:.1}, now ", mbps(before)));
    format!(" <span class=none>(beside {}: {was}{:.1} Mbit/s)</span>", now.beside, mbps(now))
}

fn shade(cell: &Cell, class: usize) -> String {
    match cell.verdict(class) {
        None => "#999".into(),
        Some(Verdict::Alike) => colour(0.0),
        Some(Verdict::Worse(by)) => colour(-by),
        Some(Verdict::Better(by)) => colour(by),
    }
}

/// Red for worse, blue for better, on a logarithmic scale from a thousandth to all.
fn colour(difference: f64) -> String {
    if difference == 0.0 {
        return "#dff0df".into();
    }
    let strength = ((difference.abs().max(1e-3).log10() + 3.0) / 3.0).clamp(0.0, 1.0);
    let (hue, light) =
        if difference < 0.0 { (8, 88.0 - 42.0 * strength) } else { (212, 92.0 - 30.0 * strength) };
    format!("hsl({hue} 75% {light:.0}%)")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
