//! In which format the samples of a topic lie: one for readers of the publisher's host, one for all others.
//!
//! Discovery carries one bit per format that a writer uses. With one bit that is the format everywhere. With
//! two, [`Format::Plain`] is what lies in the publisher's shared memory, where it costs nothing to encode, and the other what
//! goes over the network, where the reader may be built differently. Bytes: `docs/spec/formats.md`.

use noctule_formats::{Format, FormatError, Message};

use crate::sample::Route;

/// Bit of bytes in no format.
pub(crate) const RAW_FORMATS: u32 = 1;
/// The formats of a reader that takes any.
pub(crate) const ANY_FORMAT: u32 = u32::MAX;

/// The format for each way to a reader; `None` for bytes in no format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopicFormats {
    pub(crate) in_shared_memory: Option<Format>,
    pub(crate) on_network: Option<Format>,
}

impl TopicFormats {
    /// One format for all readers.
    pub(crate) fn only(format: Option<Format>) -> TopicFormats {
        TopicFormats { in_shared_memory: format, on_network: format }
    }

    /// Format of a typed publisher: `chosen`, or the one that suits the type best. A history is kept in shared memory and
    /// sent from there to other hosts, too, so it has one format.
    ///
    /// # Errors
    /// The type has no schema for the format, or this build has not the format.
    pub(crate) fn of<T: Message>(
        chosen: Option<Format>,
        keeps_history: bool,
    ) -> Result<TopicFormats, FormatError> {
        let formats = match chosen {
            Some(format) => TopicFormats::only(Some(format)),
            None if keeps_history => TopicFormats::only(Some(T::format_on_network())),
            None => TopicFormats {
                in_shared_memory: Some(T::format_in_shared_memory()),
                on_network: Some(T::format_on_network()),
            },
        };
        let missing = [formats.in_shared_memory, formats.on_network]
            .into_iter()
            .flatten()
            .find(|format| T::formats() & format.bit() == 0);
        match missing {
            None => Ok(formats),
            Some(format) => Err(FormatError::absent(format, T::TYPE_NAME)),
        }
    }

    /// As a writer announces them.
    pub(crate) fn bits(self) -> u32 {
        let bit = |format: Option<Format>| format.map_or(RAW_FORMATS, Format::bit);
        bit(self.in_shared_memory) | bit(self.on_network)
    }

    /// As a reader understands what a writer announces; what no writer of ours announces is bytes in no format.
    pub(crate) fn from_bits(bits: u32) -> TopicFormats {
        let has = |format: &Format| bits & format.bit() != 0;
        let is_plain = has(&Format::Plain);
        let other = Format::ALL.into_iter().filter(|format| *format != Format::Plain).find(has);
        let plain = is_plain.then_some(Format::Plain);
        TopicFormats { in_shared_memory: plain.or(other), on_network: other.or(plain) }
    }

    /// The format of samples that came on this way.
    pub(crate) fn on(self, route: Route) -> Option<Format> {
        match route {
            Route::SharedMemory => self.in_shared_memory,
            Route::Udp => self.on_network,
        }
    }
}

/// Formats that values of a type do not have here and might have if this program were built with them.
pub(crate) fn left_out<T: Message>() -> u32 {
    let absent = Format::ALL.into_iter().filter(|format| !format.is_built_in());
    absent.fold(0, |bits, format| bits | format.bit()) & !T::formats()
}

/// The formats of a bit set by name, for people.
pub(crate) fn names(bits: u32) -> String {
    if bits == ANY_FORMAT {
        return "any format".to_owned();
    }
    let named = Format::ALL.into_iter().filter(|format| bits & format.bit() != 0).map(Format::name);
    let raw = (bits & RAW_FORMATS != 0).then_some("bytes in no format");
    let list: Vec<&str> = raw.into_iter().chain(named).collect();
    match list.as_slice() {
        [] => "no format that is known here".to_owned(),
        list => list.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use noctule_formats::uav_state::{Header, UavState, Waypoint};

    use super::*;

    #[test]
    fn what_is_announced_is_understood() {
        let two = TopicFormats { in_shared_memory: Some(Format::Plain), on_network: Some(Format::Cdr) };
        let all = Format::ALL.map(|format| TopicFormats::only(Some(format)));
        for formats in all.into_iter().chain([TopicFormats::only(None), two]) {
            assert_eq!(TopicFormats::from_bits(formats.bits()), formats);
        }
        assert_eq!(TopicFormats::from_bits(0), TopicFormats::only(None));
        assert_eq!(TopicFormats::from_bits(u32::MAX), two, "made up, but harmless");
    }

    #[test]
    fn by_default_memory_is_shared_and_cdr_is_sent_but_a_history_has_one_format() {
        let by_default = TopicFormats::of::<UavState>(None, false).unwrap();
        assert_eq!(by_default.on(Route::SharedMemory), Some(Format::Plain));
        assert_eq!(by_default.on(Route::Udp), Some(Format::Cdr));
        let history = TopicFormats::of::<UavState>(None, true).unwrap();
        assert_eq!(history, TopicFormats::only(Some(Format::Cdr)));
    }

    #[test]
    fn a_format_that_the_type_cannot_have_is_refused() {
        let refused = TopicFormats::of::<Header>(Some(Format::Plain), false).unwrap_err();
        assert!(refused.to_string().contains("plain needs a schema that uav/Header"), "{refused}");
    }

    #[test]
    fn left_out_is_what_the_build_lacks_and_not_what_the_type_has_by_itself() {
        let lacking = Format::ALL.into_iter().filter(|format| left_out::<Waypoint>() & format.bit() != 0);
        for format in lacking {
            let refused = TopicFormats::of::<Waypoint>(Some(format), false).unwrap_err().to_string();
            assert!(refused.contains(&format!("turn on the feature \"{format}\"")), "{refused}");
        }
        assert_eq!(left_out::<Waypoint>() & Waypoint::formats(), 0);
        assert_eq!(left_out::<Waypoint>() & Format::Json.bit() == 0, Format::Json.is_built_in());
    }

    #[test]
    fn formats_are_listed_by_name() {
        assert_eq!(names(Format::Cdr.bit() | Format::Json.bit()), "cdr, json");
        assert_eq!(names(RAW_FORMATS), "bytes in no format");
        assert_eq!(
            (names(ANY_FORMAT), names(0)),
            ("any format".into(), "no format that is known here".into())
        );
    }
}
