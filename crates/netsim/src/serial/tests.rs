use proptest::prelude::*;

use super::*;

fn at(span: Span) -> Instant<Truth> {
    Instant::from_ns(span.ns())
}

fn line(spec: SerialSpec) -> SerialLine {
    SerialLine::new(spec, at(Span::ZERO), 7)
}

/// Everything that arrives, with its time, asked for exactly when the line says.
fn arrivals(line: &mut SerialLine) -> Vec<(Span, u8)> {
    let mut arrived = Vec::new();
    let mut byte = [0];
    while let Some(due) = line.poll_timeout() {
        while line.poll_deliver(due, &mut byte) == 1 {
            arrived.push((due - at(Span::ZERO), byte[0]));
        }
    }
    arrived
}

#[test]
fn bytes_arrive_one_after_the_other_in_exactly_their_wire_time() {
    for (baud, format, bits) in
        [(115_200, "8N1", 10), (921_600, "8E2", 12), (460_800, "7N1", 9), (9_600, "5O2", 9)]
    {
        let format: CharacterFormat = format.parse().unwrap();
        assert_eq!(format.bits(), bits);
        let mut line = line(SerialSpec { baud, format, ..SerialSpec::default() });
        assert_eq!(line.handle_bytes(at(Span::ZERO), &[0x15; 1_000]), 1_000);
        for (number, (due, byte)) in arrivals(&mut line).into_iter().enumerate() {
            let exact = (number as i64 + 1) * bits as i64 * 1_000_000_000 / i64::from(baud);
            assert_eq!((due.ns(), byte), (exact, 0x15));
        }
        assert_eq!(line.statistics().delivered, 1_000);
    }
}

#[test]
fn a_line_agrees_with_the_wire_time_others_subtract() {
    let mut line = line(SerialSpec { baud: 921_600, ..SerialSpec::default() });
    line.handle_bytes(at(Span::ZERO), &[0; 115]);
    assert_eq!(arrivals(&mut line).last().map(|(due, _)| *due), Span::from_serial_bytes(115, 921_600));
}

#[test]
fn a_full_fifo_takes_no_more_until_a_byte_has_left() {
    let mut line = line(SerialSpec { baud: 1_000_000, fifo_bytes: 16, ..SerialSpec::default() });
    assert_eq!(line.handle_bytes(at(Span::ZERO), &[1; 40]), 16);
    assert_eq!(line.handle_bytes(at(Span::ZERO), &[1; 40]), 0);
    let room = line.poll_room().unwrap();
    assert_eq!(room, at(Span::from_us(10)));
    assert_eq!(line.handle_bytes(room, &[1; 40]), 1);
    // Kept full, the line never pauses.
    assert_eq!(arrivals(&mut line).last().map(|(due, _)| *due), Some(Span::from_us(170)));
}

#[test]
fn a_receive_fifo_hands_over_at_its_level_and_the_rest_after_a_silence() {
    let receive_fifo = Some(FIFO_16550);
    let mut line = line(SerialSpec { baud: 1_000_000, receive_fifo, ..SerialSpec::default() });
    line.handle_bytes(at(Span::ZERO), &(0..19).collect::<Vec<u8>>());
    let arrived = arrivals(&mut line);
    let times = arrived.iter().map(|(due, _)| due.ns() / 1000).collect::<Vec<i64>>();
    assert_eq!(times, [[80; 8], [160; 8]].concat().into_iter().chain([230; 3]).collect::<Vec<i64>>());
    assert!(arrived.iter().map(|(_, byte)| *byte).eq(0..19));
}

fn ftdi(timer_ms: i64) -> SerialSpec {
    let adapter = Adapter { latency_timer: Span::from_ms(timer_ms), frame: Span::from_ms(1) };
    SerialSpec { baud: 1_000_000, adapter: Some(adapter), ..SerialSpec::default() }
}

#[test]
fn a_short_message_waits_for_the_latency_timer() {
    for timer_ms in [16, 1] {
        let mut line = line(ftdi(timer_ms));
        line.handle_bytes(at(Span::from_us(100)), &[1; 20]);
        let due: Vec<Span> = arrivals(&mut line).into_iter().map(|(due, _)| due).collect();
        assert_eq!(due, vec![Span::from_ms(timer_ms); 20]);
    }
}

#[test]
fn after_a_pause_the_timer_still_ticks_at_its_own_pace() {
    let mut line = line(ftdi(16));
    line.handle_bytes(at(Span::from_ms(100)), &[1]);
    // Ticks at 96 and 112 ms.
    assert_eq!(arrivals(&mut line), [(Span::from_ms(112), 1)]);
}

#[test]
fn a_full_usb_packet_leaves_at_the_next_frame() {
    let mut line = line(ftdi(16));
    line.handle_bytes(at(Span::ZERO), &[1; 70]);
    let due: Vec<Span> = arrivals(&mut line).into_iter().map(|(due, _)| due).collect();
    assert_eq!(due[..62], [Span::from_ms(1); 62], "whole at 620 µs");
    // The timer counts from the packet at 620 µs.
    assert_eq!(due[62..], [Span::from_ms(17); 8]);
}

#[test]
fn noise_has_its_shares_and_every_byte_is_accounted_for() {
    let shares = Noise {
        flipped: Share::from_billionths(10_000_000),
        dropped: Share::from_billionths(5_000_000),
        inserted: Share::from_billionths(20_000_000),
        burst_bytes: 1,
    };
    for burst_bytes in [1, 8] {
        let noise = Noise { burst_bytes, ..shares };
        let spec =
            SerialSpec { baud: 12_000_000, noise, fifo_bytes: FIFO_BYTES_MAX, ..SerialSpec::default() };
        let mut line = line(spec);
        let count = 200_000;
        assert_eq!(line.handle_bytes(at(Span::ZERO), &vec![0; count]), count);
        let mut taken = vec![0; 2 * count];
        let delivered = line.poll_deliver(at(Span::from_s(10)), &mut taken);
        let statistics = line.statistics();
        assert_eq!(delivered as u64, statistics.sent - statistics.dropped + statistics.inserted);
        for (hit, share) in
            [(statistics.flipped, 0.01), (statistics.dropped, 0.005), (statistics.inserted, 0.02)]
        {
            let expected = count as f64 * share;
            // Five deviations; runs of mean length L widen the variance by about 2L at one in two.
            let widening = if burst_bytes == 1 { 1.0 } else { 2.0 * f64::from(burst_bytes) };
            let tolerance = 5.0 * (expected * widening).sqrt();
            assert!((hit as f64 - expected).abs() < tolerance, "{hit}, expected {expected} ± {tolerance}");
        }
    }
}

#[test]
fn parity_turns_a_flipped_bit_into_a_missing_byte() {
    let noise = Noise { flipped: Share::from_billionths(500_000_000), ..Noise::default() };
    let format = "8E1".parse().unwrap();
    let mut line = line(SerialSpec { noise, format, ..SerialSpec::default() });
    line.handle_bytes(at(Span::ZERO), &[0xaa; 1_000]);
    let arrived = arrivals(&mut line);
    assert!(arrived.iter().all(|(_, byte)| *byte == 0xaa));
    assert_eq!(arrived.len() as u64 + line.statistics().parity_errors, 1_000);
    assert!((400..600).contains(&arrived.len()));
}

#[test]
fn an_unplugged_line_loses_what_is_on_it_and_what_comes() {
    let mut line = line(ftdi(16));
    line.handle_bytes(at(Span::ZERO), &[1; 30]);
    line.set_plugged(at(Span::from_us(105)), false);
    assert_eq!((line.statistics().unplugged, line.poll_timeout()), (30, None));
    assert_eq!(line.handle_bytes(at(Span::from_ms(1)), &[1; 5]), 5);
    line.set_plugged(at(Span::from_ms(2)), true);
    line.handle_bytes(at(Span::from_ms(3)), &[9]);
    assert_eq!(arrivals(&mut line).len(), 1);
    assert_eq!(line.statistics().unplugged, 35);
}

#[test]
fn a_receiver_that_takes_nothing_overruns_and_is_notified() {
    let mut line = line(SerialSpec { baud: 12_000_000, fifo_bytes: FIFO_BYTES_MAX, ..SerialSpec::default() });
    for second in [0, 2] {
        line.handle_bytes(at(Span::from_s(second)), &vec![0; RECEIVED_BYTES_MAX]);
    }
    line.set_plugged(at(Span::from_s(5)), true);
    assert_eq!(line.statistics().overrun, RECEIVED_BYTES_MAX as u64);
}

#[test]
fn formats_are_read_or_refused() {
    for format in ["8N1", "7E1", "5O2"] {
        assert_eq!(format.parse::<CharacterFormat>().unwrap().to_string(), format);
    }
    for format in ["", "9N1", "8M1", "8N3", "8N1 ", "é1"] {
        assert!(format.parse::<CharacterFormat>().unwrap_err().to_string().contains("such as 8N1"));
    }
}

proptest! {
    #[test]
    fn without_noise_every_byte_arrives_in_order_and_none_before_its_wire_time(
        writes in proptest::collection::vec((0i64..3_000, 1usize..200), 1..40), with_adapter: bool,
    ) {
        let adapter = ftdi(4).adapter.filter(|_| with_adapter);
        let mut line = line(SerialSpec { baud: 460_800, fifo_bytes: 256, adapter, ..SerialSpec::default() });
        let (mut now, mut next, mut expected) = (at(Span::ZERO), 0_u8, 0_u8);
        let mut buffer = [0; 64];
        let mut total = 0_i64;
        for (pause_us, count) in writes {
            now += Span::from_us(pause_us);
            let bytes: Vec<u8> = (0..count).map(|offset| next.wrapping_add(offset as u8)).collect();
            let taken = line.handle_bytes(now, &bytes);
            next = next.wrapping_add(taken as u8);
            let got = line.poll_deliver(now, &mut buffer);
            for byte in &buffer[..got] {
                prop_assert_eq!(*byte, expected);
                expected = expected.wrapping_add(1);
            }
            total += got as i64;
            prop_assert!(total * 10 * 1_000_000_000 / 460_800 <= now.ns());
        }
        for (_, byte) in arrivals(&mut line) {
            prop_assert_eq!(byte, expected);
            expected = expected.wrapping_add(1);
        }
        prop_assert_eq!(expected, next);
        prop_assert_eq!(line.statistics().sent, line.statistics().delivered);
    }
}
