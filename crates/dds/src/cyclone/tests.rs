use super::reader::READER_DEPTH;
use super::*;

const TOPIC: (&str, &str) = ("rt/count", "std_msgs::msg::dds_::String_");

impl Participant {
    /// Another one of this process, in the same domain.
    fn beside(&self) -> Participant {
        let mut domain = 0;
        // SAFETY: numbers, a place for one, and null for "default".
        let other = unsafe {
            checked("its domain", c::dds_get_domainid(self.entity.0, &mut domain)).unwrap();
            c::dds_create_participant(domain, ptr::null(), ptr::null())
        };
        let entity = Entity::new("a participant", other).unwrap();
        let nothing = Entity(c::DDS_RETCODE_BAD_PARAMETER);
        let Participant { publications, subscriptions, participants, news, guid, .. } = *self;
        Participant { entity, _domain: nothing, publications, subscriptions, participants, news, guid }
    }
}

#[test]
fn what_keep_last_overwrites_before_it_is_taken_is_counted_exactly() {
    let here = Participant::join(199, Some(Ipv4Addr::LOCALHOST), "").unwrap();
    let (there, qos) = (here.beside(), Qos { reliability: Reliability::Reliable, ..Qos::default() });
    let mut reader = here.reader(TOPIC, &qos, "").unwrap();
    let writer = there.writer(TOPIC, &qos, "").unwrap();
    let mut taken = 0;
    // Within a process Cyclone stores a sample before the call that writes it returns.
    for (written, lost) in [(100, 0), (READER_DEPTH + 172, 172), (READER_DEPTH, 172), (1, 172)] {
        for number in 0..written {
            let [a, b, c, d] = number.to_le_bytes();
            writer.write(&[0, 1, 0, 0, a, b, c, d], i64::from(number)).unwrap();
        }
        let before = taken;
        while reader.take(|_| taken += 1).unwrap() > 0 {}
        assert_eq!(reader.overwritten(), lost);
        assert_eq!(taken - before, written.min(READER_DEPTH));
    }
}
