//! Which protocol a datagram is of, and by which keys it may be sealed.

use crate::envelope::SealedWith;

/// What the content of a datagram belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A question for our clock (`docs/spec/sync.md`).
    ClockRequest,
    /// An answer to one of ours.
    ClockReply,
    /// A link's datagram (`docs/spec/prrt.md`).
    Link,
    /// A datagram to a group.
    Group,
    /// About the definition of a type.
    Description,
    /// About samples by UDP in place of shared memory.
    Fallback,
    /// Discovery's, or nobody's: it counts those.
    Discovery,
}

impl Protocol {
    /// By how it begins: with a letter, or where both sides of a link know it with a byte above 127. Such a datagram may have
    /// five bytes: a position of flow control.
    pub(super) fn of(body: &[u8]) -> Protocol {
        match body {
            [b'N', b'C', b'T', b'S', 1, 1, ..] => Protocol::ClockRequest,
            [b'N', b'C', b'T', b'S', 1, 2, ..] => Protocol::ClockReply,
            [b'N', b'C', b'T', b'M', ..] | [128..=u8::MAX, ..] => Protocol::Link,
            [b'N', b'C', b'T', b'G', ..] => Protocol::Group,
            [b'N', b'C', b'T', b'Q', ..] => Protocol::Description,
            [b'N', b'C', b'T', b'F', ..] => Protocol::Fallback,
            _ => Protocol::Discovery,
        }
    }

    /// Whether a datagram that was sealed so is its sender's: discovery may come from every member; streams to a group from any holder of the
    /// sender's key; all else only from the sender itself.
    pub(super) fn is_fit(self, with: SealedWith) -> bool {
        let needed = match self {
            Protocol::Discovery => SealedWith::SwarmKey,
            Protocol::Group => SealedWith::SenderKey,
            _ => SealedWith::PairKey,
        };
        with >= needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_can_have_sealed_too_is_no_sample_of_a_link() {
        let carried = [
            (&b"NCTD"[..], Protocol::Discovery, SealedWith::SwarmKey),
            (b"", Protocol::Discovery, SealedWith::SwarmKey),
            (b"NCTG", Protocol::Group, SealedWith::SenderKey),
            (b"NCTM", Protocol::Link, SealedWith::PairKey),
            (b"NCTS\x01\x01", Protocol::ClockRequest, SealedWith::PairKey),
            (b"NCTS\x01\x02", Protocol::ClockReply, SealedWith::PairKey),
            (b"NCTQ", Protocol::Description, SealedWith::PairKey),
            (b"NCTF", Protocol::Fallback, SealedWith::PairKey),
            // The shortest: a limit of writer 1 at position 17.
            (&[128 + 56, 5, 0, 1, 17], Protocol::Link, SealedWith::PairKey),
        ];
        for (body, protocol, needed) in carried {
            assert_eq!(Protocol::of(body), protocol, "{body:?}");
            for with in [SealedWith::SwarmKey, SealedWith::SenderKey, SealedWith::PairKey] {
                assert_eq!(protocol.is_fit(with), with >= needed, "{with:?} {body:?}");
            }
        }
    }
}
