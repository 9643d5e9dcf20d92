//! A link: the connection of one pair of nodes, its timers, datagrams in and out, and the parts that handle them.

use std::sync::Arc;

use noctule_timebase::{Instant, Span};

use crate::ack_state::{ACK_ELICITING_THRESHOLD, ACK_RANGE_PACKETS, AckState};
use crate::association::Association;
use crate::config::{DATAGRAM_BYTES, LinkConfig};
use crate::congestion::path_mtu::{PathMtu, Sizes};
use crate::congestion::window::WindowLimits;
use crate::counters::LinkCounters;
use crate::deadline_receiver::{DeadlineReceiver, ReceivedCounters};
use crate::delivery::{Delivery, Sink, Whole};
use crate::feasibility::FeasibilityChange;
use crate::path::ACK_DELAY_PARTS;
use crate::receiving::Receiving;
use crate::sending::{Piggyback, SendError, Sending};
use crate::sent_counters::SentCounters;
use crate::sent_packets::SentPackets;
use crate::stream::{Arrival, Class, Delivered, Ecn, Local, Outgoing, Stamps, StreamId};
use crate::trace::{self, Event, Record};
use crate::wire::{self, Fragment, Load, Malformed, Place, Service};

/// Datagrams that may be taken in before [`Link::poll_transmit`] must be called: an acknowledgement names 64 at most, those among them
/// that waited for it before, and what none names is retransmitted.
pub const BATCH_LIMIT: usize = ACK_RANGE_PACKETS as usize + 1 - ACK_ELICITING_THRESHOLD as usize;
/// If a datagram with a deadline asks for its acknowledgement soon, it is sent within this part of the deadline after the feedback before:
/// slow streams are acknowledged at once, quick ones in batches.
const ACK_SOON_PARTS: i64 = 64;
/// Feedback is no more than so many bytes for each byte that came from the other side (RFC 9000, section 8.1): an attacker that forges
/// an address must gain nothing. What is left over may be saved up to the limit.
const FEEDBACK_SHARE: usize = 3;
const FEEDBACK_SAVED_LIMIT_BYTES: usize = 64 << 10;

/// A numbered datagram that arrived.
struct Received {
    packet: u64,
    is_taken: bool,
    ack_delay: Option<Span>,
}

/// Everything between this node and one other, while both live.
#[derive(Debug)]
pub struct Link {
    association: Association,
    sending: Sending,
    receiving: Receiving,
    deadline_receiver: DeadlineReceiver,
    ack_state: AckState,
    stamps: Option<Stamps>,
    /// Bytes of feedback that may be sent on their own.
    feedback_bytes: usize,
    /// Feedback that is due did not fit into the last datagram.
    feedback_waits: bool,
    counters: Record,
}

impl Link {
    /// A link on which nothing is expected yet.
    pub fn new(config: LinkConfig, now: Instant<Local>) -> Link {
        let max_bytes = config.datagram_bytes_max.clamp(*DATAGRAM_BYTES.start(), *DATAGRAM_BYTES.end());
        let base_bytes = config.datagram_bytes_base.clamp(*DATAGRAM_BYTES.start(), max_bytes);
        let initial_bytes = config.datagram_bytes_initial.clamp(base_bytes, max_bytes);
        let sizes = Sizes { base_bytes, initial_bytes, max_bytes, envelope_bytes: config.envelope_bytes };
        let limits = WindowLimits {
            packet_bytes: SentPackets::cost(initial_bytes),
            initial_bytes: config.window_bytes_initial,
            max_bytes: config.window_bytes_max,
        };
        let sent_packets = SentPackets::new(limits, PathMtu::new(sizes, now), now);
        Link {
            association: Association::new(config.session, config.id),
            sending: Sending::new(config.queue_bytes_max, sent_packets),
            receiving: Receiving::new(&config),
            deadline_receiver: DeadlineReceiver::default(),
            ack_state: AckState::default(),
            stamps: None,
            feedback_bytes: 0,
            feedback_waits: false,
            counters: Record::default(),
        }
    }

    /// Samples of `writer` of the other node are to be delivered from now on, `payload_bytes_max` long at
    /// most. Others' are dropped, and reliable ones repeated by their sender until they are expected.
    pub fn expect(&mut self, writer: StreamId, payload_bytes_max: u32, class: Class) {
        if let Class::DeadlineBound(bound) = class {
            self.receiving.forget(writer);
            self.deadline_receiver.expect(writer, payload_bytes_max, bound);
        } else {
            self.deadline_receiver.forget(writer, self.receiving.room());
            self.receiving.expect(writer, payload_bytes_max, class == Class::Reliable);
        }
    }

    /// Of the reliable `writer` of the other node `room` samples more are taken than were delivered, of `window` that there is room for at
    /// most; it waits with others until it is granted more. To be called after each delivered sample and when there is room
    /// again. `None`: there is room for all, as in the beginning. Gives from how much room on it must be called again.
    pub fn grant(&mut self, writer: StreamId, room: Option<(u32, u32)>) -> u32 {
        self.receiving.grant(writer, room)
    }

    /// A writer of ours whose reader has taken nothing for `timeout` although something waits; each such time once.
    pub fn poll_held_up(&mut self, timeout: Span, now: Instant<Local>) -> Option<StreamId> {
        self.sending.poll_held_up(timeout, now)
    }

    /// Samples of `writer` of the other node are no longer wanted.
    pub fn forget(&mut self, writer: StreamId) {
        self.receiving.forget(writer);
        self.deadline_receiver.forget(writer, self.receiving.room());
    }

    /// Queues one sample for the other node. If its writer has [`Outgoing::depth`] samples that have not begun to be
    /// sent, or the queue is full, the oldest of those is given up for it; a sample of which a part is on its way never is.
    ///
    /// # Errors
    /// It is not queued, and counted: too long for any path, or no room although nothing that waits is older. A sample with a deadline is
    /// never refused here: `refused_too_long`, `refused_full` and `expired` of [`LinkCounters`] count those that are not queued.
    pub fn send(&mut self, sample: &Outgoing<'_>, now: Instant<Local>) -> Result<(), SendError> {
        self.observe_clock(sample, now);
        self.counters.at(now);
        self.sending.send(sample, None, now, &mut self.counters)
    }

    /// As [`send`](Link::send), without a copy: `sample.payload` is the bytes of `payload`, which several links may hold.
    ///
    /// # Errors
    /// As [`send`](Link::send).
    pub fn send_shared(
        &mut self,
        sample: &Outgoing<'_>,
        payload: &Arc<[u8]>,
        now: Instant<Local>,
    ) -> Result<(), SendError> {
        self.observe_clock(sample, now);
        self.counters.at(now);
        let sample = Outgoing { payload, ..*sample };
        self.sending.send(&sample, Some(payload), now, &mut self.counters)
    }

    fn observe_clock(&mut self, sample: &Outgoing<'_>, now: Instant<Local>) {
        self.association.observe_clock(sample.origin.source_time_ns.saturating_add(sample.age.ns()), now);
    }

    /// Whether a sample of so many bytes fits without giving up any, `depth` samples of its writer being neither sent nor
    /// acknowledged at most (history, keep all).
    pub fn has_room(&self, writer: StreamId, payload_bytes: usize, depth: u32) -> bool {
        self.sending.has_room(writer, payload_bytes, depth)
    }

    /// Bytes of the samples that wait to be sent or acknowledged, [`SAMPLE_OVERHEAD_BYTES`](crate::SAMPLE_OVERHEAD_BYTES) added for each; some of them may be shared
    /// with other links ([`send_shared`](Link::send_shared)).
    pub fn queue_bytes(&self) -> usize {
        self.sending.queue_bytes()
    }

    /// The part of [`queue_bytes`](Link::queue_bytes) that no other link shares.
    pub fn own_bytes(&self) -> usize {
        self.sending.own_bytes()
    }

    /// A writer of ours of which samples were given up for newer ones or refused, and how many since it was last named
    /// here. Those with a deadline are in [`sent`](Link::sent).
    pub fn poll_given_up(&mut self) -> Option<(StreamId, u64)> {
        self.sending.poll_given_up()
    }

    /// The other node no longer wants samples of our `writer`: what is queued of it is given up.
    pub fn stop(&mut self, writer: StreamId) {
        self.sending.stop(writer, &mut self.counters);
    }

    /// Whether a sample of our `writer` waits to be sent or, if reliable, acknowledged.
    pub fn is_sending(&self, writer: StreamId) -> bool {
        self.sending.holds(writer)
    }

    /// Takes in a datagram. A whole sample that is next in order goes to `deliver` where it lies.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break; counted.
    pub fn handle_datagram(
        &mut self,
        body: &[u8],
        arrival: Arrival,
        deliver: &mut dyn FnMut(Delivered<'_>),
    ) -> Result<(), Malformed> {
        self.handle_datagram_into(body, arrival, &mut Whole(deliver))
    }

    /// As [`handle_datagram`](Link::handle_datagram), with a place for long samples that arrive in order. A link's datagrams are all to be taken in by the same of the two:
    /// the rest of a sample that was begun in such a place is refused by the other.
    ///
    /// # Errors
    /// As there.
    pub fn handle_datagram_into(
        &mut self,
        body: &[u8],
        arrival: Arrival,
        delivery: &mut dyn Delivery,
    ) -> Result<(), Malformed> {
        self.counters.at(arrival.now);
        self.counters.received_datagrams += 1;
        let head = wire::Head::of(body).inspect_err(|_| self.counters.malformed += 1)?;
        if !self.association.is_ours(head) {
            self.counters.other_session += 1;
            return Ok(());
        }
        let own_packet = self.sending.packets().0;
        let reference = self.association.reference(self.ack_state.next(), own_packet, arrival.now);
        let datagram =
            wire::Datagram::decode(body, &reference).inspect_err(|_| self.counters.malformed += 1)?;
        self.association.observe_clock(arrival.own_ns, arrival.came);
        self.association.handle(head, arrival.now);
        self.feedback_bytes =
            (self.feedback_bytes + FEEDBACK_SHARE * body.len()).min(FEEDBACK_SAVED_LIMIT_BYTES);
        self.sending.handle_wait(arrival.came, arrival.now);
        if let Some(feedback) = &datagram.feedback {
            self.handle_feedback(feedback, arrival);
        }
        let outcome = match &datagram.load {
            None => None,
            Some(Load::Samples(samples)) => {
                let each = samples.fragments().map(Load::Fragment);
                let outcomes = each.map(|load| self.handle_noted(&load, arrival, delivery));
                // They have one packet number: it is refused if one of them is.
                outcomes
                    .flatten()
                    .reduce(|all, next| Received { is_taken: all.is_taken && next.is_taken, ..all })
            }
            Some(load) => self.handle_noted(load, arrival, delivery),
        };
        if let Some(Received { packet, is_taken, ack_delay }) = outcome {
            self.ack_state.record(packet, is_taken, ack_delay, arrival);
        }
        Ok(())
    }

    fn handle_noted(
        &mut self,
        load: &Load<'_>,
        arrival: Arrival,
        delivery: &mut dyn Delivery,
    ) -> Option<Received> {
        let before = self.counters.note_received(load);
        let outcome = self.handle_load(load, arrival, delivery);
        if let Some(before) = before {
            self.counters.note_discarded(load, &before);
        }
        outcome
    }

    fn handle_feedback(&mut self, feedback: &wire::Feedback, arrival: Arrival) {
        let (newest, missing) = (feedback.newest, trace::missing(feedback));
        self.counters.note(|| Event::AckReceived { newest, missing });
        if let Some(t1) = self.sending.handle_feedback(feedback, arrival, &mut self.counters) {
            let t3_ns = feedback.arrived_ns.saturating_add(feedback.delay_ns.into());
            self.stamps = Some(Stamps { t1, t2_ns: feedback.arrived_ns, t3_ns, t4: arrival.came });
        }
    }

    /// Passes on what a datagram carries. Gives what the next feedback says of it, if it is numbered.
    fn handle_load(
        &mut self,
        load: &Load<'_>,
        arrival: Arrival,
        delivery: &mut dyn Delivery,
    ) -> Option<Received> {
        let mut sink = Sink { counters: &mut self.counters, delivery };
        let (packet, is_taken, ack_delay) = match load {
            Load::Probe(probe) => (probe.packet, true, None),
            Load::Limit(limit) => {
                self.sending.handle_limit(*limit);
                return None;
            }
            Load::Blocked(blocked) => {
                self.receiving.handle_blocked(*blocked, &mut sink);
                return None;
            }
            // They are handled one by one.
            Load::Samples(_) => return None,
            Load::Parity(parity) => {
                let room = self.receiving.room();
                let deadline = self.deadline_receiver.handle_parity(parity, arrival, (room, &mut sink));
                (parity.place.packet, true, deadline.map(|deadline| ack_delay(deadline, parity.place)))
            }
            Load::Fragment(fragment) => match fragment.service {
                Service::BestEffort => {
                    self.receiving.handle_fragment(fragment, &mut sink);
                    return None;
                }
                Service::Reliable(numbers) => {
                    (numbers.packet, self.receiving.handle_fragment(fragment, &mut sink), None)
                }
                Service::Bound(place) => {
                    let room = self.receiving.room();
                    let expected =
                        self.deadline_receiver.handle_fragment(fragment, arrival, (room, &mut sink));
                    let is_in_time = expected.is_none_or(|(_, is_in_time)| is_in_time);
                    (place.packet, is_in_time, expected.map(|(deadline, _)| ack_delay(deadline, place)))
                }
            },
        };
        Some(Received { packet, is_taken, ack_delay })
    }

    /// Processes a fragment of an expected stream that came another way, such as to a [`group`](crate::group); `is_repaired` if
    /// it was recovered. However its fragments come, a sample is delivered once and counts once.
    pub fn handle_fragment(
        &mut self,
        fragment: &Fragment<'_>,
        is_repaired: bool,
        arrival: Arrival,
        deliver: &mut dyn FnMut(Delivered<'_>),
    ) {
        self.counters.at(arrival.now);
        let mut delivery = Whole(deliver);
        let mut sink = Sink { counters: &mut self.counters, delivery: &mut delivery };
        if self.deadline_receiver.counters(fragment.writer).is_some() {
            let room = self.receiving.room();
            self.deadline_receiver.handle_group_fragment(fragment, is_repaired, arrival, (room, &mut sink));
        } else {
            let whole = Fragment { service: Service::BestEffort, ..*fragment };
            self.receiving.handle_fragment(&whole, &mut sink);
        }
    }

    /// Time has passed: samples that waited for one that will not come any more go to `deliver`.
    pub fn handle_timeout(&mut self, now: Instant<Local>, deliver: &mut dyn FnMut(Delivered<'_>)) {
        self.counters.at(now);
        let mut delivery = Whole(deliver);
        let mut sink = Sink { counters: &mut self.counters, delivery: &mut delivery };
        let room = self.receiving.room();
        if self.deadline_receiver.handle_timeout(now, (room, &mut sink)) {
            self.ack_state.request_ack(now);
        }
    }

    /// Datagrams to the other node go another way from now on: nothing is known of what it carries.
    pub fn handle_new_path(&mut self, now: Instant<Local>) {
        self.sending.handle_new_path(now);
    }

    /// This host would not send a datagram of so many bytes, without what an envelope adds: its line does not carry it
    /// (`EMSGSIZE`).
    pub fn handle_too_long(&mut self, datagram_bytes: usize, now: Instant<Local>) {
        self.sending.path_mtu_mut().handle_too_long(datagram_bytes, now);
    }

    /// What the IP headers of this link's datagrams are to say at present.
    pub fn ecn(&self) -> Ecn {
        self.sending.ecn().0
    }

    /// The longest datagram that is sent at present, but for those that ask whether the path carries longer ones.
    pub fn datagram_bytes(&self) -> usize {
        self.sending.path_mtu().datagram_bytes()
    }

    /// A wish of one of our streams that cannot be fulfilled as the path is, or can be again; each change once.
    pub fn poll_feasibility_change(&mut self, now: Instant<Local>) -> Option<(StreamId, FeasibilityChange)> {
        self.sending.poll_feasibility_change(now)
    }

    /// Counters of one of our streams with a deadline; `None` if nothing was sent.
    pub fn sent(&self, writer: StreamId) -> Option<SentCounters> {
        self.sending.sent_counters(writer)
    }

    /// Counters of a stream with a deadline that is expected; `None` if it is not.
    pub fn received(&self, writer: StreamId) -> Option<ReceivedCounters> {
        self.deadline_receiver.counters(writer)
    }

    /// Share of our numbered datagrams that the path loses, 0 to 1, and the mean number lost in a row.
    pub fn loss(&self) -> (f64, f64) {
        self.sending.loss()
    }

    /// Capacity of the path to the other node for this link's traffic: bytes of datagrams a second that arrived while its
    /// queue was not empty, or that samples with a deadline are limited to; `None` until there was one.
    pub fn capacity_bytes_per_s(&self) -> Option<f64> {
        self.sending.capacity_bytes_per_s()
    }

    /// Stamps of the last round trip, each once.
    pub fn poll_stamps(&mut self) -> Option<Stamps> {
        self.stamps.take()
    }

    /// Appends the next datagram to `out`, in which an envelope's header may already be. Call again until
    /// `false`: nothing more is to be sent before [`poll_timeout`](Link::poll_timeout).
    pub fn poll_transmit(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> bool {
        self.poll(now, false, out)
    }

    /// As [`poll_transmit`](Link::poll_transmit), but leaves fragments of samples that need several datagrams and have no
    /// deadline: for a host whose own line is behind, so that what is small or urgent goes ahead of what is long.
    /// `false` does not mean that nothing waits.
    pub fn poll_transmit_urgent(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> bool {
        self.poll(now, true, out)
    }

    /// Whether the sample queued last waits for more, to leave with them, and so did the one before it: since then
    /// [`poll_transmit`](Link::poll_transmit) and [`poll_timeout`](Link::poll_timeout) have nothing new.
    pub fn is_gathering(&self, now: Instant<Local>) -> bool {
        self.sending.is_gathering(now)
    }

    /// Whether feedback that is due says more than that reliable datagrams came one after the other, so that the other side waits for it: a gap, a mark of a queue, a
    /// datagram with a deadline.
    pub fn has_urgent_feedback(&self) -> bool {
        self.ack_state.is_urgent()
    }

    /// Whether the sample queued last ended the wait of others: all of them can be sent.
    pub fn has_gathered(&self) -> bool {
        self.sending.has_gathered()
    }

    /// Samples that wait for more leave with the next [`poll_transmit`](Link::poll_transmit): no more will come soon.
    pub fn flush(&mut self) {
        self.sending.flush();
    }

    /// Whether fragments of a sample that needs several datagrams and has no deadline wait to be sent.
    pub fn has_long_samples(&self) -> bool {
        self.sending.has_long_samples()
    }

    fn piggyback(&self, now: Instant<Local>) -> Piggyback {
        let (next, acknowledged) = self.sending.packets();
        Piggyback {
            head: self.association.head(next, acknowledged, now),
            long: self.association.long(next, now),
            clock_ns: self.association.clock_ns(now),
            feedback: self.ack_state.feedback(now),
            bytes_max: self.datagram_bytes(),
        }
    }

    /// A limit, or a question after one. One that is withheld is asked for again.
    fn poll_flow(&mut self, now: Instant<Local>) -> Option<Load<'static>> {
        let limit = self.receiving.poll_limit().map(Load::Limit);
        limit.or_else(|| self.sending.poll_blocked(now).map(Load::Blocked))
    }

    fn poll(&mut self, now: Instant<Local>, only_urgent: bool, out: &mut Vec<u8>) -> bool {
        self.counters.at(now);
        self.sending.handle_timeout(now, &mut self.counters);
        let is_due = self.ack_state.due().is_some_and(|due| due <= now);
        let goes_first = is_due && self.feedback_waits;
        let flow = if goes_first { None } else { self.poll_flow(now) };
        let must_send = is_due || flow.is_some() || self.association.owes_opening();
        if !must_send && self.sending.has_nothing(now) {
            return false;
        }
        let before = out.len();
        let mut piggyback = self.piggyback(now);
        let feedback = piggyback.feedback;
        let carries_sample = !goes_first
            && flow.is_none()
            && self.sending.poll_transmit((now, only_urgent), &mut piggyback, out, &mut self.counters);
        if !carries_sample {
            if !must_send {
                return false;
            }
            let is_limit = matches!(flow, Some(Load::Limit(_)));
            // A question is asked for a sample, and like one it does not answer to anything.
            let is_question = matches!(flow, Some(Load::Blocked(_)));
            piggyback.encode(flow, out);
            let cost = if is_question { 0 } else { out.len() - before };
            let Some(left) = self.feedback_bytes.checked_sub(cost) else {
                self.counters.feedback_withheld += 1;
                self.ack_state.feedback_sent(now);
                out.truncate(before);
                // Samples may wait behind a limit; it is asked for again.
                return is_limit && self.poll(now, only_urgent, out);
            };
            self.feedback_bytes = left;
        }
        self.association.sent(piggyback.head, now);
        self.feedback_waits = piggyback.feedback.is_some();
        if let Some(feedback) = feedback.filter(|_| !self.feedback_waits) {
            self.ack_state.feedback_sent(now);
            let (newest, missing) = (feedback.newest, trace::missing(&feedback));
            self.counters.note(|| Event::AckSent { newest, missing, piggybacked: carries_sample });
        }
        self.counters.sent_datagrams += 1;
        self.counters.sent_bytes += (out.len() - before) as u64;
        true
    }

    /// When [`poll_transmit`](Link::poll_transmit) may next have something although nothing was sent or
    /// received since it returned `false`. Earlier is harmless; later delays repetitions.
    pub fn poll_timeout(&self) -> Option<Instant<Local>> {
        let due = [self.sending.timeout(), self.ack_state.due(), self.deadline_receiver.timeout()];
        due.into_iter().flatten().min()
    }

    /// Counters of the link so far.
    pub fn counters(&self) -> LinkCounters {
        LinkCounters { marked_packets: self.sending.ecn().1, ..*self.counters }
    }

    /// From now on what happens is kept as events for [`poll_event`](Link::poll_event): the newest
    /// [`EVENTS_LIMIT`](crate::trace::EVENTS_LIMIT).
    pub fn start_trace(&mut self) {
        self.counters.start();
    }

    /// The oldest event not taken yet, and when it happened.
    pub fn poll_event(&mut self) -> Option<(Instant<Local>, Event)> {
        self.counters.poll()
    }

    /// Events dropped since the last call, because [`poll_event`](Link::poll_event) was not called in time.
    pub fn poll_dropped_events(&mut self) -> u64 {
        self.counters.poll_dropped()
    }

    /// Smoothed time from a reliable datagram to its acknowledgement, the other side's waiting taken off;
    /// `None` before the first.
    pub fn round_trip(&self) -> Option<Span> {
        self.sending.round_trip().map(|trip| trip.smoothed)
    }

    /// Bytes of samples held for sending and for delivery, as counted against
    /// [`LinkConfig::queue_bytes_max`] and [`LinkConfig::held_bytes_max`].
    pub fn held_bytes(&self) -> (usize, usize) {
        (self.sending.queue_bytes(), self.receiving.held_bytes())
    }
}

/// How long feedback on a datagram with a deadline may wait, reckoned from the feedback before. None on a repair: the
/// sender waits for it in order not to send another.
fn ack_delay(deadline: Span, place: Place) -> Span {
    match place {
        Place { attempt: 1.., .. } => Span::ZERO,
        Place { ack_soon: true, .. } => deadline / ACK_SOON_PARTS,
        _ => deadline / ACK_DELAY_PARTS,
    }
}
