//! Handling of a client's messages.

use std::sync::Arc;

use noctule_timebase::Instant;

use super::answer::{self, IDENTITY_BYTES};
use super::{AgentContext, Control, STREAMS_MAX, SentTimestamp, Session};
use crate::creation::read_creation;
use crate::data_reader::Request;
use crate::event::{ClientClock, Event, Exchange, Gone, Sample, Stamp, count};
use crate::inbound::Arrival;
use crate::outbound::Outbound;
use crate::wire::{
    Header, Kind, LAST_FRAGMENT, ObjectId, Reader, RequestId, Status, Submessage, Submessages, Truncated, id,
};

/// A session that has ended by its client's wish, and what the client is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeleteClient {
    pub(crate) request: RequestId,
}

/// Context of one submessage.
#[derive(Clone, Copy)]
struct Context {
    stream: u8,
    arrived: Stamp,
}

impl Session {
    /// Takes a message of this session. `Some` if the client takes leave.
    pub(crate) fn handle_message(
        &mut self,
        header: &Header,
        rest: &[u8],
        arrived: Stamp,
        agent: &mut AgentContext,
    ) -> Option<DeleteClient> {
        self.hear(arrived.local);
        self.messages_in += 1;
        let context = Context { stream: header.stream, arrived };
        match header.stream {
            0 => self.handle_submessages(rest, context, agent),
            1..0x80 => {
                if !self.newest.contains_key(&header.stream) && self.newest.len() >= STREAMS_MAX {
                    count(&mut agent.counters.refused_full);
                    return None;
                }
                let newest = self.newest.entry(header.stream).or_default();
                let Some(missing) = newest.handle_message(header.sequence) else {
                    count(&mut agent.counters.repeated);
                    return None;
                };
                agent.counters.lost = agent.counters.lost.saturating_add(missing.into());
                self.measured[0] = None;
                self.handle_submessages(rest, context, agent)
            }
            0x80.. => self.handle_reliable(header, rest, context, agent),
        }
    }

    fn handle_reliable(
        &mut self,
        header: &Header,
        rest: &[u8],
        context: Context,
        agent: &mut AgentContext,
    ) -> Option<DeleteClient> {
        if !self.inbound.contains_key(&header.stream) && self.inbound.len() >= STREAMS_MAX {
            count(&mut agent.counters.refused_full);
            return None;
        }
        if !self.outbound.get(&0x80).is_none_or(Outbound::has_room) {
            count(&mut agent.counters.held_back);
            return None;
        }
        let inbound = self.inbound.entry(header.stream).or_default();
        let counter = match inbound.handle_message(header.sequence, rest) {
            Arrival::Next => {
                let mut deletion = self.handle_submessages(rest, context, agent);
                while deletion.is_none() {
                    let Some(body) = self.poll_waiting(header.stream) else { break };
                    deletion = self.handle_submessages(&body, context, agent);
                }
                return deletion;
            }
            Arrival::Waits => return None,
            Arrival::Repeated => &mut agent.counters.repeated,
            Arrival::Beyond => &mut agent.counters.beyond,
        };
        count(counter);
        None
    }

    fn poll_waiting(&mut self, stream: u8) -> Option<Vec<u8>> {
        self.inbound.get_mut(&stream)?.poll_waiting()
    }

    fn handle_submessages(
        &mut self,
        rest: &[u8],
        context: Context,
        agent: &mut AgentContext,
    ) -> Option<DeleteClient> {
        for submessage in Submessages::of(rest) {
            match self.handle_submessage(submessage, context, agent) {
                Ok(None) => {}
                Ok(deletion) => return deletion,
                Err(Truncated) => count(&mut agent.counters.malformed),
            }
        }
        None
    }

    fn handle_submessage(
        &mut self,
        submessage: Submessage<'_>,
        context: Context,
        agent: &mut AgentContext,
    ) -> Result<Option<DeleteClient>, Truncated> {
        let mut reader = Reader::new(submessage.body, submessage.is_little_endian());
        match submessage.id {
            id::CREATE => self.handle_create(submessage.flags, &mut reader, context, agent)?,
            id::DELETE => return self.handle_delete(&mut reader, context, agent),
            id::GET_INFO => self.handle_get_info(&mut reader, agent)?,
            id::WRITE_DATA => self.handle_write(&mut reader, context, agent)?,
            id::READ_DATA => self.handle_read(&mut reader, context)?,
            id::ACKNACK => self.handle_acknack(&mut reader, context, agent)?,
            id::HEARTBEAT => {
                let (first, last, stream) = (reader.u16()?, reader.u16()?, reader.u8()?);
                // Without one message it is not known that there is such a stream; there is room for it.
                if stream >= 0x80 && (self.inbound.contains_key(&stream) || self.inbound.len() < STREAMS_MAX)
                {
                    self.inbound.entry(stream).or_default().handle_heartbeat(first, last);
                }
            }
            id::RESET => self.reset_streams(),
            id::FRAGMENT => return self.handle_fragment(submessage, context, agent),
            id::TIMESTAMP => {
                let originated = reader.octets()?;
                let time = Control::Time { received: context.arrived.wall, originated };
                if !self.answer(time) {
                    count(&mut agent.counters.answers_dropped);
                }
            }
            id::TIMESTAMP_REPLY => self.handle_fourth_stamp(&mut reader, context, agent)?,
            id::STAMP if self.is_ours => {
                self.measured[usize::from(context.stream >= 0x80)] = Some(reader.time::<ClientClock>()?);
            }
            // INFO and what is not known: it is alive, and that was noted.
            _ => {}
        }
        Ok(None)
    }

    fn handle_create(
        &mut self,
        flags: u8,
        reader: &mut Reader<'_>,
        context: Context,
        agent: &mut AgentContext,
    ) -> Result<(), Truncated> {
        let (request, object) = (RequestId(reader.octets()?), ObjectId(reader.octets()?));
        let creation = read_creation(reader, object, &agent.references);
        let serial = &mut agent.last_serial;
        let status = match creation.and_then(|creation| self.objects.create(object, creation, flags, serial))
        {
            Ok((status, difference)) => {
                self.tell(difference, agent);
                status
            }
            Err(status) => {
                if status == Status::Resources {
                    count(&mut agent.counters.refused_full);
                }
                status
            }
        };
        self.answer_status(context.stream, request, object, status);
        Ok(())
    }

    fn handle_delete(
        &mut self,
        reader: &mut Reader<'_>,
        context: Context,
        agent: &mut AgentContext,
    ) -> Result<Option<DeleteClient>, Truncated> {
        let (request, object) = (RequestId(reader.octets()?), ObjectId(reader.octets()?));
        if object == ObjectId::CLIENT {
            self.close_all(agent);
            agent.tell(Event::Disconnected { client: self.key, reason: Gone::Left });
            return Ok(Some(DeleteClient { request }));
        }
        let status = match self.objects.delete(object) {
            Some(difference) => {
                self.tell(difference, agent);
                Status::Ok
            }
            None => Status::UnknownReference,
        };
        self.answer_status(context.stream, request, object, status);
        Ok(None)
    }

    fn handle_get_info(
        &mut self,
        reader: &mut Reader<'_>,
        agent: &mut AgentContext,
    ) -> Result<(), Truncated> {
        let request = RequestId(reader.octets()?);
        let mut body = Vec::new();
        answer::info(&mut body, request, true, &[]);
        if !self.answer(Control::Submessage(body)) {
            count(&mut agent.counters.answers_dropped);
        }
        Ok(())
    }

    fn handle_write(
        &mut self,
        reader: &mut Reader<'_>,
        context: Context,
        agent: &mut AgentContext,
    ) -> Result<(), Truncated> {
        let (request, object) = (RequestId(reader.octets()?), ObjectId(reader.octets()?));
        let measured = self.measured[usize::from(context.stream >= 0x80)].take();
        let Some(endpoint) = self.objects.writer(object) else {
            // Only where the number of answers is bounded by acknowledgements.
            if context.stream >= 0x80 {
                self.answer_status(context.stream, request, object, Status::UnknownReference);
            }
            return Ok(());
        };
        let body = reader.rest();
        let body: Arc<[u8]> = match object.kind() {
            Some(Kind::Requester) => [&answer::identity(endpoint, request)[..], body].concat().into(),
            Some(Kind::Replier) if body.len() < IDENTITY_BYTES => return Err(Truncated),
            _ => body.into(),
        };
        let sample = Sample { body, is_little_endian: reader.is_little() };
        if context.stream >= 0x80 {
            self.ack_holding.handle_asked(self.hold(), context.arrived.local);
        }
        agent.tell(Event::Published { endpoint, sample, arrived: context.arrived, measured });
        Ok(())
    }

    fn handle_read(&mut self, reader: &mut Reader<'_>, context: Context) -> Result<(), Truncated> {
        let (id, object) = (RequestId(reader.octets()?), ObjectId(reader.octets()?));
        let request = Request::read(id, reader, context.arrived.local)?;
        let has_room = request.is_none_or(|request| self.has_room_for(request.stream));
        match self.objects.reading(object) {
            Some(reading) if has_room => {
                reading.handle_request(request);
                // micro-ROS waits a second for the answer to a cancellation before it deletes the reader.
                if request.is_none() {
                    self.answer_status(context.stream, id, object, Status::Ok);
                }
            }
            // Samples are the answer; failure is a STATUS.
            Some(_) => self.answer_status(context.stream, id, object, Status::Resources),
            None => self.answer_status(context.stream, id, object, Status::UnknownReference),
        }
        Ok(())
    }

    /// Whether samples can be delivered on this stream.
    fn has_room_for(&self, stream: u8) -> bool {
        match stream {
            0x80.. => self.outbound.contains_key(&stream) || self.outbound.len() < STREAMS_MAX,
            _ => self.best_effort.contains_key(&stream) || self.best_effort.len() < STREAMS_MAX,
        }
    }

    fn handle_acknack(
        &mut self,
        reader: &mut Reader<'_>,
        context: Context,
        agent: &mut AgentContext,
    ) -> Result<(), Truncated> {
        let (first, missed, stream) = (reader.u16()?, u16::from_be_bytes(reader.octets()?), reader.u8()?);
        if let Some(outbound) = self.outbound.get_mut(&stream)
            && let Some((object, bytes)) =
                outbound.handle_acknack(first, missed, context.arrived.local).undeliverable
        {
            agent.tell_undeliverable(self.key, object, bytes);
        }
        Ok(())
    }

    fn handle_fragment(
        &mut self,
        submessage: Submessage<'_>,
        context: Context,
        agent: &mut AgentContext,
    ) -> Result<Option<DeleteClient>, Truncated> {
        let Some(inbound) = self.inbound.get_mut(&context.stream) else { return Err(Truncated) };
        let is_last = submessage.flags & LAST_FRAGMENT != 0;
        let bytes_max = agent.config.sample_bytes_max;
        match inbound.assembly().handle_piece(submessage.body, is_last, bytes_max) {
            Ok(None) => Ok(None),
            Ok(Some(whole)) => {
                let inner = Submessages::of(&whole).next().ok_or(Truncated)?;
                // Fragments of fragments would be a way to have us call ourselves.
                if inner.id == id::FRAGMENT {
                    return Err(Truncated);
                }
                self.handle_submessage(inner, context, agent)
            }
            Err(_) => {
                count(&mut agent.counters.too_large);
                Ok(None)
            }
        }
    }

    /// A client of ours says when our last time stamp arrived there.
    fn handle_fourth_stamp(
        &mut self,
        reader: &mut Reader<'_>,
        context: Context,
        agent: &mut AgentContext,
    ) -> Result<(), Truncated> {
        if !self.is_ours {
            return Ok(());
        }
        let (t3, t2): (Instant<ClientClock>, Instant<ClientClock>) = (reader.time()?, reader.time()?);
        let stamp: [u8; 8] = reader.octets()?;
        let Some(at) = self.departures.iter().position(|before| before.octets == stamp) else {
            return Ok(());
        };
        // What was sent before it is old news now.
        let Some(SentTimestamp { departed: t1, .. }) = self.departures.drain(..=at).next_back() else {
            return Ok(());
        };
        let exchange = Exchange { t1, t2, t3, t4: context.arrived.local };
        agent.tell(Event::Exchanged { client: self.key, exchange });
        Ok(())
    }
}
