//! How experiments are written for people: of each only what distinguishes it from its neighbours.

use std::fmt;

use crate::dimensions::{Link, Mode, Placement, Wait};
use crate::notation::{rate, size};
use crate::run::CellKey;

/// `udp, 64 B, round trip, spin, cores 0,1`: every property, for places without neighbours.
impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.peer)?;
        for property in properties(self).into_iter().flatten() {
            write!(f, ", {property}")?;
        }
        Ok(())
    }
}

/// One label per experiment: the peer and those properties in which the experiments differ.
pub fn short_labels(keys: &[CellKey]) -> Vec<String> {
    let label = |(key, own): (&CellKey, Vec<String>)| {
        let mut words = vec![key.peer.clone()];
        words.extend(own);
        words.join(" ")
    };
    keys.iter().zip(distinguishing(keys)).map(label).collect()
}

/// Per experiment, those of its [`properties`] in which the experiments differ.
pub fn distinguishing(keys: &[CellKey]) -> Vec<Vec<String>> {
    let all: Vec<_> = keys.iter().map(properties).collect();
    let differs: [bool; PROPERTIES] =
        std::array::from_fn(|property| all.windows(2).any(|pair| pair[0][property] != pair[1][property]));
    all.into_iter()
        .map(|own| {
            let shown = own.into_iter().zip(differs).filter(|(_, differs)| *differs);
            shown.filter_map(|(property, _)| property).collect()
        })
        .collect()
}

/// A mode in running text: `round trip`, `fan out`.
pub fn in_words(mode: Mode) -> String {
    mode.to_string().replace('_', " ")
}

/// Properties that [`properties`] lists.
pub const PROPERTIES: usize = 10;

/// The properties of an experiment besides its peer (link, payload, rate, mode, wait, placement,
/// format, clocks, options, what flows beside), `None` where they go without saying.
pub fn properties(key: &CellKey) -> [Option<String>; PROPERTIES] {
    let mode = match key.mode {
        Mode::Chain => format!("chain of {}", key.nodes),
        Mode::FanOut => format!("fan-out of {}", key.nodes),
        mode => in_words(mode),
    };
    let placement = match &key.placement {
        Placement::Unknown => None,
        Placement::Free => Some("any core".to_owned()),
        Placement::Cores(cores) if cores.len() > 1 => Some(format!("cores {}", key.placement)),
        Placement::Cores(_) => Some(format!("core {}", key.placement)),
    };
    let link = key.link.to_string();
    [
        (link != key.peer && key.link != Link::Memory).then_some(link),
        Some(size(key.payload_bytes)),
        key.rate_mhz.map(rate),
        Some(mode),
        (key.wait != Wait::Unknown).then(|| key.wait.to_string()),
        placement,
        (key.format != "raw" && !key.format.is_empty()).then(|| key.format.clone()),
        (!key.clocks.is_empty()).then(|| format!("clocks \"{}\"", key.clocks.join("\", \""))),
        options(key),
        key.beside.as_ref().map(|beside| {
            let rate = beside.rate_mhz.map_or("back to back".to_owned(), |mhz| format!("at {}", rate(mhz)));
            format!("beside {} {} {rate}", beside.peer, size(beside.payload_bytes))
        }),
    ]
}

/// `reliability=reliable nodelay=0`, if the scenario gives the peer options.
pub fn options(key: &CellKey) -> Option<String> {
    let words: Vec<String> = key.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_label_says_only_what_differs() {
        let key = |peer: &str, payload_bytes, placement: &str| CellKey {
            peer: peer.to_owned(),
            link: Link::Udp,
            mode: Mode::RoundTrip,
            nodes: 2,
            wait: Wait::Spin,
            placement: placement.parse().unwrap(),
            format: "raw".to_owned(),
            payload_bytes,
            rate_mhz: None,
            clocks: vec![],
            options: Default::default(),
            beside: None,
        };
        let keys = [key("udp", 64, "0,1"), key("lcm", 64, "0"), key("lcm", 64, "0,1")];
        assert_eq!(short_labels(&keys), ["udp cores 0,1", "lcm udp core 0", "lcm udp cores 0,1"]);
        assert_eq!(short_labels(&keys[..1]), ["udp"]);
        assert_eq!(keys[1].to_string(), "lcm, udp, 64 B, round trip, spin, core 0");
    }
}
