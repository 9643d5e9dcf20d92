//! The head of a request: the little of HTTP that a page on this machine needs.

/// Longest head that is read.
pub(crate) const HEAD_BYTES_MAX: usize = 8 << 10;

/// Fields of an HTTP request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) token: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) is_upgrade: bool,
    /// Subprotocols of the WebSocket that the other side speaks.
    pub(crate) protocols: Vec<String>,
}

/// Where a head is at, given the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// The head is not complete.
    Partial,
    /// It is no request of ours.
    Bad,
    /// A request.
    Whole(Request),
}

/// Reads a head. Never panics; looks at no more than [`HEAD_BYTES_MAX`].
pub(crate) fn parse(bytes: &[u8]) -> Head {
    let bytes = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if bytes.len() == HEAD_BYTES_MAX { Head::Bad } else { Head::Partial };
    };
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else { return Head::Bad };
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some("GET"), Some(target), Some("HTTP/1.1")) = (words.next(), words.next(), words.next()) else {
        return Head::Bad;
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    let mut request = Request {
        path: path.to_owned(),
        token: token.map(str::to_owned),
        host: None,
        origin: None,
        is_upgrade: false,
        protocols: Vec::new(),
    };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { return Head::Bad };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            // Twice is an attempt to be read in two ways.
            "host" if request.host.is_some() => return Head::Bad,
            "origin" if request.origin.is_some() => return Head::Bad,
            "host" => request.host = Some(value.to_owned()),
            "origin" => request.origin = Some(value.to_owned()),
            "sec-websocket-protocol" => {
                request.protocols.extend(value.split(',').map(|name| name.trim().to_owned()));
            }
            "upgrade" => request.is_upgrade = value.eq_ignore_ascii_case("websocket"),
            _ => {}
        }
    }
    Head::Whole(request)
}

/// Equal, in a time that does not tell where the difference is.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let different = one.bytes().zip(other.bytes()).fold(0, |different, (a, b)| different | (a ^ b));
    one.len() == other.len() && different == 0
}

/// A head of any bytes; for the fuzzer.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let request = |text: &str| parse(text.as_bytes());
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a"), Head::Partial);
        assert_eq!(request("POST / HTTP/1.1\r\n\r\n"), Head::Bad);
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Head::Bad);
        assert_eq!(parse(&[b'a'; HEAD_BYTES_MAX]), Head::Bad);
        let text = "GET /socket?x=1&token=ab HTTP/1.1\r\nhost: h:1\r\nORIGIN: http://h:1\r\nUpgrade: WebSocket\r\n\
                    Sec-WebSocket-Protocol: a.v2, a.v1\r\n\r\nrest";
        let Head::Whole(found) = request(text) else { panic!("no head") };
        assert_eq!((found.path.as_str(), found.token.as_deref()), ("/socket", Some("ab")));
        assert_eq!((found.host.as_deref(), found.origin.as_deref()), (Some("h:1"), Some("http://h:1")));
        assert!(found.is_upgrade);
        assert_eq!(found.protocols, ["a.v2", "a.v1"]);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut state = 88_172_645_463_325_252_u64;
        let pieces: [&[u8]; 8] =
            [b"GET ", b"/", b"?token=", b" HTTP/1.1", b"\r\n", b"Host:", b"\xFF", b"\r\n\r\n"];
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..12 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                bytes.extend_from_slice(pieces[(state % 8) as usize]);
            }
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn tokens_are_equal_or_not() {
        assert!(is_same("abc", "abc"));
        assert!(!is_same("abc", "abd") && !is_same("abc", "ab") && !is_same("", "a"));
    }
}
