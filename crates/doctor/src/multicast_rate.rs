//! At which rate a Wi-Fi interface's network sends to groups.
//!
//! Linux sends group frames at the lowest basic rate of the network by default, and reports no rate of its
//! own for them. The basic rates stand in the beacon, which `iw dev IF scan dump` shows with an asterisk.

use std::process::Command;

use noctule_netsim::air::{AirSpec, Band, Rate, broadcast_load};

use super::checks::finding;
use super::{Finding, Machine, State};

/// The least OFDM rate, Mb/s: below it are those of 802.11b, with their long preamble.
const OFDM_MBPS_MIN: f64 = 6.0;
/// A drone's state: `docs/spec/swarm-state.md`.
const STATE_BYTES: u32 = 80;
const DRONES: usize = 100;
const RATE_HZ: f64 = 10.0;
const WHY: &str = "frames to a group go at one rate for all; at 1 Mb/s a swarm's states fill the channel";

pub(super) fn multicast_rate(machine: &Machine) -> Finding {
    let is_wifi = |name: &String| machine.exists(&format!("/sys/class/net/{name}/wireless"));
    let Some(interface) = machine.names("/sys/class/net").into_iter().find(is_wifi) else {
        return finding("multicast_rate", State::Good, "no Wi-Fi interface", WHY);
    };
    let ask = |words: &[&str]| {
        let output = Command::new("iw").args(["dev", &interface]).args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    judge(&interface, ask(&["info"]).as_deref(), ask(&["scan", "dump"]).as_deref())
}

/// Judges the output of `iw dev IF info` and `iw dev IF scan dump`; `None`: they do not run.
fn judge(interface: &str, info: Option<&str>, dump: Option<&str>) -> Finding {
    let (Some(info), Some(dump)) = (info, dump) else {
        return finding("multicast_rate", State::Unknown, format!("{interface}: `iw` does not say"), WHY)
            .mend("apt-get install iw");
    };
    let remedy = format!(
        "iw dev {interface} set mcast_rate 24 (ad hoc, mesh), or basic_rates=240 in the access point's hostapd.conf"
    );
    let band = frequency_mhz(info).map(|mhz| if mhz < 3_000.0 { Band::Ghz2 } else { Band::Ghz5 });
    match (lowest_basic_mbps(dump), band) {
        (Some(mbps), band) if mbps < OFDM_MBPS_MIN => {
            let found =
                format!("{interface}: {mbps} Mb/s, the lowest basic rate; {}", arithmetic(mbps, band));
            finding("multicast_rate", State::Bad, found, WHY).mend(remedy)
        }
        (Some(mbps), band) => {
            let found =
                format!("{interface}: {mbps} Mb/s, the lowest basic rate; {}", arithmetic(mbps, band));
            finding("multicast_rate", State::Good, found, WHY)
        }
        (None, Some(Band::Ghz2)) => {
            let found = format!(
                "{interface}: in no network whose basic rates are known; the default at 2.4 GHz is 1 Mb/s; {}",
                arithmetic(1.0, band)
            );
            finding("multicast_rate", State::Note, found, WHY).mend(remedy)
        }
        (None, _) => {
            let found = format!("{interface}: in no network whose basic rates are known");
            finding("multicast_rate", State::Unknown, found, WHY)
        }
    }
}

/// Airtime of the swarm's states at a rate, as a sentence.
fn arithmetic(mbps: f64, band: Option<Band>) -> String {
    let Some(rate) = Rate::from_mbps(mbps) else { return "no rate of 802.11a, b or g".to_owned() };
    let band = band.unwrap_or(if rate.is_dsss() { Band::Ghz2 } else { Band::Ghz5 });
    let spec = AirSpec { band, multicast_rate: rate, ..AirSpec::default() };
    let load = broadcast_load(&spec, DRONES, STATE_BYTES, RATE_HZ);
    let each_ms = 1e3 * load / (DRONES as f64 * RATE_HZ);
    format!(
        "{DRONES} drones × {RATE_HZ} Hz × {each_ms:.2} ms for {STATE_BYTES} bytes are {:.0} % of the air",
        100.0 * load
    )
}

/// Frequency in a line `channel 6 (2437 MHz), width: 20 MHz`.
fn frequency_mhz(info: &str) -> Option<f64> {
    let line = info.lines().map(str::trim).find(|line| line.starts_with("channel "))?;
    line.split_once('(')?.1.split_whitespace().next()?.parse().ok()
}

/// The lowest rate with an asterisk of the network that the interface is part of.
fn lowest_basic_mbps(dump: &str) -> Option<f64> {
    let mut is_own = false;
    let mut lowest: Option<f64> = None;
    for line in dump.lines() {
        if line.starts_with("BSS ") {
            is_own = line.contains("associated") || line.contains("joined");
        }
        let Some((heading, rates)) = line.trim().split_once(':').filter(|_| is_own) else { continue };
        if heading.ends_with("upported rates") {
            let basic = rates.split_whitespace().filter_map(|rate| rate.strip_suffix('*')?.parse().ok());
            lowest = basic.chain(lowest).reduce(f64::min);
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `iw` 5.19, shortened.
    const INFO: &str = "Interface wlan0\n\tifindex 3\n\ttype managed\n\tchannel 6 (2437 MHz), width: 20 MHz, center1: 2437 MHz\n";
    const DUMP: &str = "BSS 02:00:00:00:01:00(on wlan0)\n\tfreq: 2412\n\tSupported rates: 2.0* 54.0 \n\
         BSS 02:00:00:00:00:00(on wlan0) -- associated\n\tfreq: 2437\n\tSSID: field\n\
         \tSupported rates: 1.0* 2.0* 5.5* 11.0* 18.0 24.0 36.0 54.0 \n\tExtended supported rates: 6.0 9.0 12.0 48.0 \n";

    #[test]
    fn one_megabit_is_bad_with_the_arithmetic_and_a_remedy() {
        let found = judge("wlan0", Some(INFO), Some(DUMP));
        assert_eq!(found.state, State::Bad);
        assert!(found.found.contains("1 Mb/s") && found.found.contains("170 % of the air"), "{found:?}");
        assert!(found.remedy.is_some_and(|remedy| remedy.contains("iw dev wlan0 set mcast_rate 24")));
    }

    #[test]
    fn an_ofdm_rate_is_good_and_foreign_networks_do_not_count() {
        let info = INFO.replace("6 (2437", "36 (5180");
        let dump = "BSS 02:00:00:00:00:00(on wlan0) -- joined\n\tSupported rates: 24.0* 36.0 48.0 54.0 \n";
        let found = judge("wlan0", Some(&info), Some(dump));
        assert_eq!(found.state, State::Good);
        assert!(found.found.contains("17 % of the air"), "{found:?}");
        let foreign = DUMP.replace(" -- associated", "");
        assert_eq!(judge("wlan0", Some(INFO), Some(&foreign)).state, State::Note);
        assert_eq!(judge("wlan0", Some(&info), Some(&foreign)).state, State::Unknown);
        assert_eq!(judge("wlan0", None, Some(DUMP)).state, State::Unknown);
    }

    proptest::proptest! {
        #[test]
        fn any_output_is_judged(info in ".{0,200}", dump in "(BSS .{0,20}associated\n)?.{0,200}") {
            let _ = judge("wlan0", Some(&info), Some(&dump));
        }
    }

    #[test]
    fn a_machine_without_wifi_has_nothing_to_mend() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine { root: root.path().to_owned() };
        assert_eq!(multicast_rate(&machine).state, State::Good);
    }
}
