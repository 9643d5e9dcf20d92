//! The XML configuration that Cyclone is started with.

use std::net::Ipv4Addr;

use super::SAMPLE_BYTES_MAX;

/// Participants on one loopback address, whose ports discovery asks.
const LOOPBACK_PARTICIPANTS_MAX: u32 = 40;

/// Cyclone's own settings, as XML; `ros` are those that ROS 2's variables ask for, after which Cyclone's own variable counts.
pub(super) fn settings(interface: Option<Ipv4Addr>, ros: &str) -> String {
    let ours = format!("<Internal><MaxSampleSize>{SAMPLE_BYTES_MAX}B</MaxSampleSize></Internal>");
    match interface {
        Some(address) if address.is_loopback() => format!(
            "<General><Interfaces><NetworkInterface address=\"{address}\"/></Interfaces>\
             <AllowMulticast>false</AllowMulticast></General>\
             <Discovery><ParticipantIndex>auto</ParticipantIndex>\
             <MaxAutoParticipantIndex>{LOOPBACK_PARTICIPANTS_MAX}</MaxAutoParticipantIndex>\
             <Peers><Peer address=\"{address}\"/></Peers></Discovery>{ours}"
        ),
        Some(address) => format!(
            "<General><Interfaces><NetworkInterface address=\"{address}\"/></Interfaces></General>{ours}"
        ),
        None => {
            let theirs = std::env::var("CYCLONEDDS_URI").unwrap_or_default();
            let parts = [ros, theirs.trim(), &ours];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
        }
    }
}
