//! Links by name.

/// Named specifications; where their numbers come from stands in `docs/design/link-emulator.md`.
pub const PRESETS: [(&str, &str); 5] = [
    ("wifi_clean", "delay=2.8ms jitter=700us distribution=lognormal rate=50mbit queue=100ms"),
    (
        "wifi_bursty",
        "delay=2.8ms jitter=700us distribution=lognormal rate=50mbit queue=200ms loss=2% burst=20ms stall=70ms/25s",
    ),
    (
        "lte",
        "delay=22ms jitter=5ms distribution=lognormal queue=300ms loss=0.05% burst=3; a>b: rate=12mbit; b>a: rate=40mbit",
    ),
    (
        "radio_telemetry",
        "delay=25ms jitter=12ms distribution=uniform rate=24kbit queue=2kB overhead=12B loss=2% burst=120ms mtu=576B",
    ),
    ("satellite", "delay=260ms jitter=3ms queue=400ms loss=0.1% burst=4; a>b: rate=3mbit; b>a: rate=25mbit"),
];
