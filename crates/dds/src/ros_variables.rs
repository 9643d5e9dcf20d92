//! ROS 2's discovery variables, and what each does for the bridge: as for a program of ROS 2 on rmw_cyclonedds (Iron and later), where
//! no interface is named to the bridge.
//!
//! | variable | for the bridge |
//! |---|---|
//! | `ROS_AUTOMATIC_DISCOVERY_RANGE` | `SUBNET` (or unset): everybody in reach of multicast; `LOCALHOST`: this host; `SYSTEM_DEFAULT`: as Cyclone is set; `OFF`: refused, for there would be nobody |
//! | `ROS_STATIC_PEERS` | further hosts, `;` between them, but with `SYSTEM_DEFAULT` |
//! | `ROS_LOCALHOST_ONLY` | `1`: as `LOCALHOST`, without static peers |
//! | `ROS_DOMAIN_ID` | nothing: the bridge is given its domain; another number is reported once |

use std::env::VarError;

/// Hosts that can be named.
pub const PEERS_MAX: usize = 64;
/// Ports that are asked at each host, as in ROS 2.
const PARTICIPANTS_MAX: u32 = 32;

/// Without the interface the bridge's Cyclone and that of ROS 2 Jazzy (0.10) do not find each other, though each finds its own kind.
const ONLY_HERE: &str = "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>\
    <AllowMulticast>false</AllowMulticast></General>";

const RANGE: &str = "ROS_AUTOMATIC_DISCOVERY_RANGE";
const PEERS: &str = "ROS_STATIC_PEERS";
const LOCALHOST_ONLY: &str = "ROS_LOCALHOST_ONLY";
const DOMAIN: &str = "ROS_DOMAIN_ID";

/// An environment variable of ROS 2 with a value that the bridge cannot follow.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RosVariableError {
    /// A word that the variable does not have.
    #[error("{variable} is \"{value}\"; it can be {allowed}")]
    Value {
        /// Name of the variable.
        variable: &'static str,
        /// Value of the variable.
        value: String,
        /// The values it can have, in words.
        allowed: &'static str,
    },
    /// No discovery at all.
    #[error(
        "ROS_AUTOMATIC_DISCOVERY_RANGE is OFF, so the bridge would find nobody; set it to LOCALHOST or SUBNET for the bridge, or name an interface"
    )]
    Off,
    /// A peer that is no host.
    #[error(
        "ROS_STATIC_PEERS names \"{0}\", which is neither an address nor a host name; write e.g. 10.0.0.2;robot.local"
    )]
    Peer(String),
    /// More peers than are asked.
    #[error("ROS_STATIC_PEERS names {0} hosts; at most {PEERS_MAX} are asked")]
    Peers(usize),
}

/// Settings of Cyclone's, as XML, that these variables ask for; empty if none does. `variable` is asked for each by its name.
///
/// # Errors
/// A value that the variable does not have.
pub fn discovery(variable: impl Fn(&str) -> Result<String, VarError>) -> Result<String, RosVariableError> {
    let is_localhost_only = match value(&variable, LOCALHOST_ONLY, "0 or 1")?.as_str() {
        "" | "0" => false,
        "1" => true,
        other => return Err(refused(LOCALHOST_ONLY, other, "0 or 1")),
    };
    let allowed = "SUBNET, LOCALHOST, SYSTEM_DEFAULT or OFF";
    let range = value(&variable, RANGE, allowed)?;
    let is_here = match range.as_str() {
        _ if is_localhost_only => true,
        "LOCALHOST" => true,
        "" | "SUBNET" => false,
        "SYSTEM_DEFAULT" => return Ok(String::new()),
        "OFF" => return Err(RosVariableError::Off),
        other => return Err(refused(RANGE, other, allowed)),
    };
    let named =
        if is_localhost_only { String::new() } else { value(&variable, PEERS, "hosts, ; between them")? };
    let mut peers: Vec<&str> = named.split(';').map(str::trim).filter(|peer| !peer.is_empty()).collect();
    if peers.len() > PEERS_MAX {
        return Err(RosVariableError::Peers(peers.len()));
    }
    if let Some(odd) = peers.iter().find(|peer| !is_host(peer)) {
        return Err(RosVariableError::Peer((*odd).to_owned()));
    }
    // A bridge that is to reach further hosts needs its other interfaces.
    let is_only_here = is_here && peers.is_empty();
    if is_here {
        peers.push("localhost");
    }
    if peers.is_empty() {
        return Ok(String::new());
    }
    let general = if is_only_here {
        ONLY_HERE
    } else if is_here {
        "<General><AllowMulticast>false</AllowMulticast></General>"
    } else {
        ""
    };
    let peers: String = peers.iter().map(|peer| format!("<Peer address=\"{peer}\"/>")).collect();
    Ok(format!(
        "{general}<Discovery><ParticipantIndex>auto</ParticipantIndex>\
         <MaxAutoParticipantIndex>{PARTICIPANTS_MAX}</MaxAutoParticipantIndex><Peers>{peers}</Peers></Discovery>"
    ))
}

/// Warning if `ROS_DOMAIN_ID` puts programs of ROS 2 that are started here into another domain than the bridge.
pub fn other_domain(
    domain: u32,
    variable: impl Fn(&str) -> Result<String, VarError>,
) -> Result<Option<String>, RosVariableError> {
    let allowed = "a number from 0 to 232";
    let named = value(&variable, DOMAIN, allowed)?;
    if named.is_empty() {
        return Ok(None);
    }
    match named.parse::<u32>() {
        Ok(other) if other > 232 => Err(refused(DOMAIN, &named, allowed)),
        Ok(other) if other == domain => Ok(None),
        Ok(other) => Ok(Some(format!(
            "{DOMAIN} is {other}, but this bridge was given DDS domain {domain}: programs of ROS 2 that are started with \
             this variable are not in it"
        ))),
        Err(_) => Err(refused(DOMAIN, &named, allowed)),
    }
}

/// The value of a variable; empty if it is not set.
fn value(
    variable: &impl Fn(&str) -> Result<String, VarError>,
    name: &'static str,
    allowed: &'static str,
) -> Result<String, RosVariableError> {
    match variable(name) {
        Ok(value) => Ok(value.trim().to_owned()),
        Err(VarError::NotPresent) => Ok(String::new()),
        Err(VarError::NotUnicode(bytes)) => Err(refused(name, &bytes.to_string_lossy(), allowed)),
    }
}

fn refused(variable: &'static str, value: &str, allowed: &'static str) -> RosVariableError {
    RosVariableError::Value { variable, value: value.to_owned(), allowed }
}

/// Letters, digits and what addresses and host names have between them: nothing that could be XML.
fn is_host(text: &str) -> bool {
    text.len() <= 253
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_' | '%'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(set: &[(&str, &str)]) -> Result<String, RosVariableError> {
        discovery(|name| {
            let found = set.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
        })
    }

    const HERE: &str = "<General><AllowMulticast>false</AllowMulticast></General>";

    fn asks(peers: &str) -> String {
        format!(
            "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>\
             <Peers>{peers}</Peers></Discovery>"
        )
    }

    #[test]
    fn each_range_is_that_of_ros() {
        for unset in [
            &[][..],
            &[(RANGE, "SUBNET")],
            &[(RANGE, "SYSTEM_DEFAULT"), (PEERS, "a")],
            &[(LOCALHOST_ONLY, "0")],
        ] {
            assert_eq!(of(unset).unwrap(), "", "{unset:?}");
        }
        let here = format!("{ONLY_HERE}{}", asks("<Peer address=\"localhost\"/>"));
        assert_eq!(of(&[(RANGE, "LOCALHOST")]).unwrap(), here);
        assert_eq!(of(&[(LOCALHOST_ONLY, "1"), (RANGE, "OFF"), (PEERS, "robot")]).unwrap(), here);
        let peers = asks("<Peer address=\"10.0.0.2\"/><Peer address=\"robot.local\"/>");
        assert_eq!(of(&[(PEERS, "10.0.0.2; robot.local;")]).unwrap(), peers);
        let both = asks("<Peer address=\"10.0.0.2\"/><Peer address=\"localhost\"/>");
        assert_eq!(of(&[(RANGE, "LOCALHOST"), (PEERS, "10.0.0.2")]).unwrap(), format!("{HERE}{both}"));
    }

    #[test]
    fn bad_values_are_named_with_the_way_out() {
        let text = |set: &[(&str, &str)]| of(set).unwrap_err().to_string();
        let expected =
            "ROS_AUTOMATIC_DISCOVERY_RANGE is \"local\"; it can be SUBNET, LOCALHOST, SYSTEM_DEFAULT or OFF";
        assert_eq!(text(&[(RANGE, "local")]), expected);
        assert_eq!(text(&[(LOCALHOST_ONLY, "yes")]), "ROS_LOCALHOST_ONLY is \"yes\"; it can be 0 or 1");
        assert!(text(&[(RANGE, "OFF")]).contains("would find nobody; set it to LOCALHOST or SUBNET"));
        assert!(text(&[(PEERS, "a\"/><b")]).contains("neither an address nor a host name"));
        assert_eq!(of(&[(PEERS, &"a;".repeat(65))]), Err(RosVariableError::Peers(65)));
    }

    #[test]
    fn another_domain_is_named() {
        let with = |value: &str| other_domain(3, |_| Ok(value.to_owned()));
        assert_eq!((with(""), with("3")), (Ok(None), Ok(None)));
        assert!(
            with("5")
                .unwrap()
                .unwrap()
                .contains("ROS_DOMAIN_ID is 5, but this bridge was given DDS domain 3")
        );
        for bad in ["233", "-1", "x"] {
            assert_eq!(with(bad).unwrap_err(), refused(DOMAIN, bad, "a number from 0 to 232"));
        }
    }

    proptest! {
        #[test]
        fn nothing_but_hosts_comes_into_the_xml(peers in ".{0,80}") {
            if let Ok(xml) = of(&[(PEERS, &peers)]) {
                let hosts = peers.split(';').filter(|peer| !peer.trim().is_empty()).count();
                prop_assert_eq!(xml.matches("<Peer ").count(), hosts);
                prop_assert_eq!(xml.matches('"').count(), 2 * hosts);
            }
        }
    }
}
