//! Messages of a client: the input is cut into messages at `FF FE FD FC`; a session is there already, and
//! one message in two is made to belong to it. The first byte chooses what is known of the client: that it is ours, its history, or nothing.
#![no_main]

use std::num::NonZeroU16;

use libfuzzer_sys::fuzz_target;
use noctule_timebase::{Instant, Span};
use noctule_xrce::{Agent, AgentConfig, ClientAddress, Event, References, Stamp};

const CREATE_CLIENT: [u8; 24] = [
    0x80, 0, 0, 0, 0, 1, 16, 0, b'X', b'R', b'C', b'E', 1, 0, b'N', b'C', 1, 2, 3, 4, 0x81, 0, 0, 2,
];

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut introduction = CREATE_CLIENT;
    let is_ours = choice % 3 == 0;
    if !is_ours {
        introduction[14..16].copy_from_slice(&[1, 15]);
    }
    let client_history = NonZeroU16::new(64).filter(|_| choice % 3 == 1);
    let config =
        AgentConfig { sample_bytes_max: 4096, hold: Span::from_us(500), client_history, ..AgentConfig::default() };
    let mut agent = Agent::new(config, References::default());
    let mut now = Instant::from_ns(0);
    let first = [&introduction[..]];
    let mut sequence = 0u16;
    let rest = input.split(|byte| *byte == 0xFC);
    for (number, message) in first.into_iter().chain(rest).enumerate() {
        let mut message = message.to_vec();
        if number > 0 && message.len() > 4 && message[0] & 1 == 0 {
            let [low, high] = sequence.to_le_bytes();
            message[..4].copy_from_slice(&[0x81, 0x80, low, high]);
            sequence = sequence.wrapping_add(1);
        }
        now = now + Span::from_ms(1);
        agent.handle_datagram(&message, ClientAddress::Serial(1), Stamp { local: now, wall: Instant::from_ns(now.ns()) });
        agent.handle_timeout(now);
        let mut readers = Vec::new();
        while let Some(event) = agent.poll_event() {
            match event {
                Event::Opened(endpoint) => readers.push(endpoint.id),
                Event::Published { sample, .. } => {
                    readers.iter().for_each(|reader| agent.handle_sample(*reader, sample.clone(), now));
                }
                _ => {}
            }
        }
        let mut out = Vec::new();
        while let Some(transmit) = agent.poll_transmit(now, &mut out) {
            assert!(out.len() <= 512 || transmit.stamp.is_none());
        }
    }
});
