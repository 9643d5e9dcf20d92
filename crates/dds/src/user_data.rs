//! The type hash that endpoints of ROS 2 carry in their USER_DATA, since Iron: `typehash=RIHS01_` and 64 hexadecimal digits.
//!
//! USER_DATA is `key=value;` again and again; a `;` in a value is doubled (rmw_dds_common, `qos.cpp`). ROS 2 prints a warning
//! for each endpoint without any USER_DATA, and none for one without that key.

/// Longest USER_DATA that is looked at, in bytes.
const LOOKED_AT_MAX: usize = 4096;
const KEY: &str = "typehash";
/// Longest name of a client that is kept: 16 bytes in hexadecimal digits with dots.
const OWNER_BYTES_MAX: usize = 47;
const VERSION: &str = "RIHS01_";
const DIGITS: usize = 64;

/// The type hash in an endpoint's USER_DATA, if it has a valid one.
pub fn type_hash(user_data: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(user_data.get(..user_data.len().min(LOOKED_AT_MAX))?).ok()?;
    // No hash holds a `;`, so that a doubled one only makes an entry without a key.
    let value = text.split(';').find_map(|entry| entry.strip_prefix(KEY)?.strip_prefix('='))?;
    is_hash(value).then(|| value.to_owned())
}

/// The key by which both endpoints of a client of a service name it.
pub const CLIENT: &str = "clientid";
/// The key by which both endpoints of a server of a service name it.
pub const SERVICE: &str = "serviceid";

/// Whose endpoint of a service it is, as `rmw_cyclonedds_cpp` writes it: 16 bytes in hexadecimal digits, joined by dots.
pub fn owner(key: &str, id: &[u8; 16]) -> String {
    let digits: Vec<String> = id.iter().map(|byte| format!("{byte:x}")).collect();
    format!("{key}={};", digits.join("."))
}

/// The name of the client of a service whose endpoint says this, if it says one.
pub fn client(user_data: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(user_data.get(..user_data.len().min(LOOKED_AT_MAX))?).ok()?;
    let value = text.split(';').find_map(|entry| entry.strip_prefix(CLIENT)?.strip_prefix('='))?;
    (!value.is_empty() && value.len() <= OWNER_BYTES_MAX).then(|| value.to_owned())
}

/// USER_DATA of an endpoint of the bridge: its type's hash, or a mark of the bridge if the hash is not known.
pub fn user_data(type_hash: Option<&str>) -> String {
    match type_hash {
        Some(hash) => format!("{KEY}={hash};"),
        None => "noctule=1;".to_owned(),
    }
}

fn is_hash(value: &str) -> bool {
    value.strip_prefix(VERSION).is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hash_is_found_among_other_entries_and_nothing_else_is_one() {
        let hash = format!("RIHS01_{}", "0f".repeat(32));
        for text in [format!("typehash={hash};"), format!("clientid=1.2;;3;typehash={hash};x=y;")] {
            assert_eq!(type_hash(text.as_bytes()), Some(hash.clone()), "{text}");
        }
        assert_eq!(type_hash(user_data(Some(&hash)).as_bytes()), Some(hash.clone()));
        let wrong = ["", ";", "typehash=", "typehash=RIHS01_0f;", "noctule=1;"].map(str::to_owned);
        for text in wrong.into_iter().chain([format!("typehash={hash}0;"), format!("nottypehash={hash};")]) {
            assert_eq!(type_hash(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn both_endpoints_of_a_client_name_it_and_a_server_is_none() {
        let id = [0, 1, 16, 255, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let text = owner(CLIENT, &id);
        assert_eq!(text, "clientid=0.1.10.ff.4.5.6.7.8.9.a.b.c.d.e.f;");
        let both = format!("{text}{}", user_data(None));
        assert_eq!(client(both.as_bytes()).as_deref(), Some("0.1.10.ff.4.5.6.7.8.9.a.b.c.d.e.f"));
        for other in [owner(SERVICE, &id), "clientid=;".into(), format!("clientid={};", "0.".repeat(24))] {
            assert_eq!(client(other.as_bytes()), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(hash) = type_hash(&bytes) {
                prop_assert_eq!(hash.len(), 71);
            }
            prop_assert!(client(&bytes).is_none_or(|name| name.len() <= OWNER_BYTES_MAX));
        }
    }
}
