//! How long a frame occupies the air: bands, rates, interframe spaces.
//!
//! Source: IEEE 802.11-2020, clauses 15 (DSSS), 16 (HR/DSSS), 17 (OFDM), 18 (ERP); sensitivities from tables 17-18 and
//! the equivalent minimum levels of clauses 15 and 16.

use noctule_timebase::Span;

/// MAC header, frame check sequence, LLC/SNAP, IPv4 and UDP headers around a payload.
pub const HEADERS_BYTES: u32 = 24 + 4 + 8 + 20 + 8;
/// An acknowledgement of the MAC.
pub const ACK_BYTES: u32 = 14;

/// Band and slot timing of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// 2.437 GHz with the long slot, as a network has in which one station of 802.11b is possible.
    Ghz2,
    /// 5.2 GHz.
    Ghz5,
}

impl Band {
    /// Slot of the contention.
    pub const fn slot(self) -> Span {
        match self {
            Band::Ghz2 => Span::from_us(20),
            Band::Ghz5 => Span::from_us(9),
        }
    }

    /// Short interframe space.
    pub const fn sifs(self) -> Span {
        match self {
            Band::Ghz2 => Span::from_us(10),
            Band::Ghz5 => Span::from_us(16),
        }
    }

    /// DCF interframe space: SIFS and two slots.
    pub const fn difs(self) -> Span {
        Span::from_ns(self.sifs().ns() + 2 * self.slot().ns())
    }

    /// Path loss in free space over the first metre, dB.
    pub const fn first_metre_db(self) -> f64 {
        match self {
            Band::Ghz2 => 40.18,
            Band::Ghz5 => 46.77,
        }
    }
}

/// Modulation and coding of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    /// 1 Mb/s DSSS with the long preamble: what many drivers take for multicast.
    Mbps1,
    /// 2 Mb/s DSSS, long preamble.
    Mbps2,
    /// 5.5 Mb/s HR/DSSS, long preamble.
    Mbps5_5,
    /// 11 Mb/s HR/DSSS, long preamble.
    Mbps11,
    /// 6 Mb/s OFDM.
    Mbps6,
    /// 9 Mb/s OFDM.
    Mbps9,
    /// 12 Mb/s OFDM.
    Mbps12,
    /// 18 Mb/s OFDM.
    Mbps18,
    /// 24 Mb/s OFDM.
    Mbps24,
    /// 36 Mb/s OFDM.
    Mbps36,
    /// 48 Mb/s OFDM.
    Mbps48,
    /// 54 Mb/s OFDM.
    Mbps54,
}

/// Rate, Mb/s, data bits per OFDM symbol (0: DSSS), least received level for 10 % frame errors, dBm.
const RATES: [(Rate, f64, u32, f64); 12] = [
    (Rate::Mbps1, 1.0, 0, -91.0),
    (Rate::Mbps2, 2.0, 0, -88.0),
    (Rate::Mbps5_5, 5.5, 0, -85.0),
    (Rate::Mbps11, 11.0, 0, -82.0),
    (Rate::Mbps6, 6.0, 24, -82.0),
    (Rate::Mbps9, 9.0, 36, -81.0),
    (Rate::Mbps12, 12.0, 48, -79.0),
    (Rate::Mbps18, 18.0, 72, -77.0),
    (Rate::Mbps24, 24.0, 96, -74.0),
    (Rate::Mbps36, 36.0, 144, -70.0),
    (Rate::Mbps48, 48.0, 192, -66.0),
    (Rate::Mbps54, 54.0, 216, -65.0),
];

impl Rate {
    /// The rate of `mbps`; `None` if no modulation has it.
    pub fn from_mbps(mbps: f64) -> Option<Rate> {
        RATES.iter().find(|(_, rate, ..)| *rate == mbps).map(|(rate, ..)| *rate)
    }

    /// Mb/s.
    pub fn mbps(self) -> f64 {
        self.row().1
    }

    /// Whether it is one of 802.11b's, which the 5 GHz band does not have.
    pub fn is_dsss(self) -> bool {
        self.row().2 == 0
    }

    /// Least received level at which 1,000 bytes are lost with 10 %, dBm.
    pub fn sensitivity_dbm(self) -> f64 {
        self.row().3
    }

    /// Time on the air of a MAC frame of `mac_bytes`, from its header to its check sequence.
    pub fn airtime(self, mac_bytes: u32) -> Span {
        let (_, mbps, bits_per_symbol, _) = self.row();
        if bits_per_symbol == 0 {
            // Long preamble and PLCP header: 144 µs + 48 µs.
            let payload_ns = (f64::from(mac_bytes) * 8_000.0 / mbps) as i64;
            return Span::from_ns(192_000 + payload_ns);
        }
        // Preamble 16 µs, signal 4 µs; 16 service bits, 6 tail bits, symbols of 4 µs.
        let bits = 22 + 8 * mac_bytes;
        Span::from_us(20 + 4 * i64::from(bits.div_ceil(bits_per_symbol)))
    }

    /// Time that one station without a rival needs for a broadcast of `payload_bytes` of UDP: DIFS, the mean backoff, the
    /// frame.
    pub fn access_time(self, band: Band, payload_bytes: u32) -> Span {
        let mean_backoff_ns = i64::from(self.least_window()) * band.slot().ns() / 2;
        band.difs() + Span::from_ns(mean_backoff_ns) + self.airtime(payload_bytes + HEADERS_BYTES)
    }

    /// The largest backoff, in slots, before a frame's first attempt: 31 for 802.11b, else 15.
    pub fn least_window(self) -> u32 {
        if self.is_dsss() { 31 } else { 15 }
    }

    /// The rate of an acknowledgement: the highest mandatory one that is not above this.
    pub fn control(self) -> Rate {
        match self {
            Rate::Mbps1 => Rate::Mbps1,
            Rate::Mbps2 | Rate::Mbps5_5 | Rate::Mbps11 => Rate::Mbps2,
            Rate::Mbps6 | Rate::Mbps9 => Rate::Mbps6,
            Rate::Mbps12 | Rate::Mbps18 => Rate::Mbps12,
            Rate::Mbps24 | Rate::Mbps36 | Rate::Mbps48 | Rate::Mbps54 => Rate::Mbps24,
        }
    }

    fn row(self) -> (Rate, f64, u32, f64) {
        RATES.into_iter().find(|(rate, ..)| *rate == self).unwrap_or(RATES[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_airtime_of_a_state_is_the_published_one() {
        // A state of 80 bytes; shares of the air of 100 drones at 10 Hz.
        let share = |rate: Rate, band| rate.access_time(band, 80).as_s_f64() * 1000.0;
        assert_eq!(Rate::Mbps1.airtime(80 + HEADERS_BYTES), Span::from_us(1344));
        assert!((share(Rate::Mbps1, Band::Ghz2) - 1.704).abs() < 1e-9);
        assert!((share(Rate::Mbps6, Band::Ghz2) - 0.416).abs() < 1e-9);
        assert!((share(Rate::Mbps6, Band::Ghz5) - 0.3175).abs() < 1e-9);
        assert!((share(Rate::Mbps24, Band::Ghz5) - 0.1735).abs() < 1e-9);
        // Known from the literature: 1,500 bytes of payload at 54 Mb/s with MAC, LLC: 1,536 bytes are 248 µs; an
        // acknowledgement at 24 Mb/s is 28 µs, at 6 Mb/s 44 µs.
        assert_eq!(Rate::Mbps54.airtime(1536), Span::from_us(248));
        assert_eq!(Rate::Mbps24.airtime(ACK_BYTES), Span::from_us(28));
        assert_eq!(Rate::Mbps6.airtime(ACK_BYTES), Span::from_us(44));
        assert_eq!((Band::Ghz5.difs(), Band::Ghz2.difs()), (Span::from_us(34), Span::from_us(50)));
    }

    #[test]
    fn every_rate_is_found_by_its_number_and_no_other() {
        for (rate, mbps, ..) in RATES {
            assert_eq!((Rate::from_mbps(mbps), rate.mbps()), (Some(rate), mbps));
        }
        assert_eq!(Rate::from_mbps(7.0), None);
    }
}
