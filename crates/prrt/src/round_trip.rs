//! Round-trip time (RTT): latest, smoothed, variation and minimum (RFC 6298; RFC 9002, section 5).

use noctule_timebase::Span;

/// Smoothed round trip and its variation (RFC 6298, sections 2.2 and 2.3), the other side's waiting taken off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    pub(crate) smoothed: Span,
    pub(crate) variation: Span,
    pub(crate) latest: Span,
    /// The shortest so far that is not yet old: it creeps up by a 1,024th with every measurement, so that a
    /// path that has become longer is adopted after some thousands.
    pub(crate) least: Span,
}

impl RoundTrip {
    /// Half of it with two variations, and all of it with four, and what a thread wakes late.
    pub(crate) fn with_variations(&self, lateness: Span) -> [Span; 2] {
        let round = self.smoothed + self.variation * 4;
        [round / 2 + lateness, round + lateness]
    }

    /// Gives what is known with this sample.
    pub(crate) fn measure(place: &mut Option<RoundTrip>, sample: Span) -> RoundTrip {
        let measured = match *place {
            None => RoundTrip { smoothed: sample, variation: sample / 2, latest: sample, least: sample },
            Some(RoundTrip { smoothed, variation, least, .. }) => RoundTrip {
                smoothed: smoothed + (sample - smoothed) / 8,
                variation: variation + ((sample - smoothed).abs() - variation) / 4,
                latest: sample,
                least: sample.min(least + least / 1024),
            },
        };
        *place.insert(measured)
    }
}
