//! Reads CDR field by field, for the few messages that are too large to become a tree of values.

/// Where reading is at. Every method gives `None` where the bytes end.
#[derive(Clone, Debug)]
pub(crate) struct CdrReader<'a> {
    body: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> CdrReader<'a> {
    /// Reader of a message with its header of four bytes; plain CDR of either byte order.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<CdrReader<'a>> {
        match bytes {
            [0, order @ (0 | 1), _, _, body @ ..] => Some(CdrReader { body, at: 0, big_endian: *order == 0 }),
            _ => None,
        }
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        let begin = self.at.next_multiple_of(N);
        let mut bytes: [u8; N] = *self.body.get(begin..)?.first_chunk()?;
        self.at = begin + N;
        if self.big_endian {
            bytes.reverse();
        }
        Some(bytes)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.number::<1>().map(|bytes| bytes[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.number().map(u32::from_le_bytes)
    }

    pub(crate) fn f32(&mut self) -> Option<f32> {
        self.number().map(f32::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.number().map(f64::from_le_bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes.strip_suffix(&[0]).unwrap_or(bytes)).ok()
    }

    /// A sequence of bytes.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()? as usize;
        let bytes = self.body.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }

    /// `std_msgs/Header`: its frame.
    pub(crate) fn header(&mut self) -> Option<&'a str> {
        self.u32()?;
        self.u32()?;
        self.text()
    }
}
