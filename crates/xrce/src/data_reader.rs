//! One reader of a client: the newest samples, and what the client has asked for of them.

use std::collections::VecDeque;

use noctule_timebase::{Instant, Span};

use crate::description::{SAMPLES_MAX, SERVICE_SAMPLES_MAX};
use crate::event::{Local, Sample};
use crate::wire::{Reader, RequestId, Truncated};

/// Samples kept for a reader that does not say.
pub const SAMPLES_DEFAULT: usize = 8;
/// Stands for "without limit" where samples are counted.
const UNLIMITED: u16 = 0xFFFF;

/// A reader's samples and its client's request for them.
#[derive(Clone, Debug)]
pub(crate) struct DataReader {
    samples: VecDeque<Sample>,
    samples_max: usize,
    request: Option<Request>,
}

/// READ_DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    /// Stream to deliver on.
    pub(crate) stream: u8,
    control: Control,
    /// The next sample not before this.
    next_at: Instant<Local>,
    ends_at: Option<Instant<Local>>,
}

/// How much, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Control {
    samples_left: u16,
    bytes_per_s: u16,
    pace: Span,
}

impl Request {
    /// Reads what follows request and object in a READ_DATA; `None` if it cancels.
    pub(crate) fn read(
        id: RequestId,
        reader: &mut Reader<'_>,
        now: Instant<Local>,
    ) -> Result<Option<Request>, Truncated> {
        // 0 is no stream to deliver on; all clients have the first best-effort one.
        let stream = reader.u8()?.max(1);
        let _format = reader.u8()?;
        let _filter = reader.optional(|reader| reader.string())?;
        let control =
            reader.optional(|reader| Ok([reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?]))?;
        // Without delivery control it is one sample.
        let [samples_left, elapsed_s, bytes_per_s, pace_ms] = control.unwrap_or([1, 0, 0, 0]);
        let control = Control { samples_left, bytes_per_s, pace: Span::from_ms(pace_ms.into()) };
        let ends_at = (elapsed_s > 0).then(|| now + Span::from_s(elapsed_s.into()));
        let request = Request { id, stream, control, next_at: now, ends_at };
        Ok((samples_left > 0).then_some(request))
    }
}

impl DataReader {
    pub(crate) fn new(depth: Option<u16>) -> DataReader {
        let samples_max = depth.map_or(SAMPLES_DEFAULT, |depth| usize::from(depth).clamp(1, SAMPLES_MAX));
        DataReader { samples: VecDeque::new(), samples_max, request: None }
    }

    /// Of a service: for requests or replies, of which none may be replaced.
    pub(crate) fn of_service() -> DataReader {
        DataReader { samples_max: usize::from(SERVICE_SAMPLES_MAX), ..DataReader::new(None) }
    }

    /// Sets the client's request for data; `None`: none.
    pub(crate) fn handle_request(&mut self, request: Option<Request>) {
        self.request = request;
    }

    /// Keeps a sample; true if it replaces an older one.
    pub(crate) fn handle_sample(&mut self, sample: Sample) -> bool {
        let replaces = self.samples.len() == self.samples_max;
        if replaces {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        replaces
    }

    /// The request by which a sample can be delivered now.
    pub(crate) fn due(&mut self, now: Instant<Local>) -> Option<Request> {
        if self.request?.ends_at.is_some_and(|end| now >= end) {
            self.request = None;
        }
        self.request.filter(|request| !self.samples.is_empty() && now >= request.next_at)
    }

    /// Takes the sample that is due.
    pub(crate) fn take(&mut self, now: Instant<Local>) -> Option<Sample> {
        let request = self.request.as_mut()?;
        let sample = self.samples.pop_front()?;
        let control = &mut request.control;
        let bytes = sample.body.len() as i64;
        let by_rate = match control.bytes_per_s {
            0 => Span::ZERO,
            rate => Span::from_ns(bytes * 1_000_000_000 / i64::from(rate)),
        };
        request.next_at = now + by_rate.max(control.pace);
        if control.samples_left != UNLIMITED {
            control.samples_left -= 1;
            if control.samples_left == 0 {
                self.request = None;
            }
        }
        Some(sample)
    }

    /// When a sample will be due that is there already, and on which stream.
    pub(crate) fn poll_timeout(&self) -> Option<(Instant<Local>, u8)> {
        let request = self.request.as_ref().filter(|_| !self.samples.is_empty())?;
        Some((request.next_at, request.stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: usize) -> Sample {
        Sample { body: vec![0; bytes].into(), is_little_endian: true }
    }

    fn request(control: Option<[u16; 4]>) -> Option<Request> {
        let mut bytes = vec![0x80, 0, 0, u8::from(control.is_some())];
        bytes.extend(control.into_iter().flatten().flat_map(u16::to_le_bytes));
        Request::read(RequestId([0, 9]), &mut Reader::new(&bytes, true), Instant::from_ns(0)).unwrap()
    }

    fn taken_at_ms(reading: &mut DataReader) -> Vec<i64> {
        let times = (0..5_000).filter(|ms| {
            let now = Instant::from_ns(ms * 1_000_000);
            reading.due(now).is_some() && reading.take(now).is_some()
        });
        times.collect()
    }

    #[test]
    fn a_request_without_control_is_one_sample() {
        let mut reading = DataReader::new(None);
        (0..3).for_each(|_| assert!(!reading.handle_sample(sample(10))));
        reading.handle_request(request(None));
        assert_eq!(taken_at_ms(&mut reading), [0]);
    }

    #[test]
    fn samples_pace_rate_and_time_limit_what_is_delivered() {
        for (control, times) in [
            ([2, 0, 0, 0], vec![0, 1]),
            ([UNLIMITED, 0, 0, 0], vec![0, 1, 2, 3]),
            ([UNLIMITED, 0, 0, 500], vec![0, 500, 1000, 1500]),
            ([UNLIMITED, 0, 10, 0], vec![0, 1000, 2000, 3000]),
            ([UNLIMITED, 2, 10, 0], vec![0, 1000]),
        ] {
            let mut reading = DataReader::new(Some(4));
            (0..4).for_each(|_| assert!(!reading.handle_sample(sample(10))));
            reading.handle_request(request(Some(control)));
            assert_eq!(taken_at_ms(&mut reading), times, "{control:?}");
        }
    }

    #[test]
    fn a_request_for_no_sample_cancels() {
        assert_eq!(request(Some([0, 0, 0, 0])), None);
    }

    #[test]
    fn the_newest_samples_are_kept() {
        let mut reading = DataReader::new(Some(2));
        assert_eq!([1, 2, 3].map(|bytes| reading.handle_sample(sample(bytes))), [false, false, true]);
        reading.handle_request(request(Some([UNLIMITED, 0, 0, 0])));
        let now = Instant::from_ns(0);
        let lengths: Vec<_> =
            std::iter::from_fn(|| reading.take(now)).map(|sample| sample.body.len()).collect();
        assert_eq!(lengths, [2, 3]);
    }
}
