//! Loops of a node between `run` and `done`, whose cost is part of every figure.
//!
//! Nothing here allocates or makes a system call per message beyond what the middleware needs. One
//! reading of the clock (about 20 ns) per stamp; in a closed loop one stamp serves as the end of a
//! round trip and the start of the next.

use noctule_sys::clock;

use crate::control::{Command, Control};
use crate::inbox::Inbox;
use crate::line::Line;
use crate::message::{Header, Outgoing, Touch, WARM_UP};
use crate::open_loop::Schedule;
use crate::receiver::{QUIET_NS, receive, receive_for};
use crate::stamp_clock::StampClock;
use crate::table::Table;
use crate::transport::{Open, PeerError, Role, Transport, Wait};

/// After the last message or the lab's `stop`, how long silence must last to mean "no more", unless the lab says it.
pub(crate) const SILENCE_NS: i64 = 200_000_000;

const _: () = assert!(QUIET_NS < SILENCE_NS);

/// Measurement that the lab asks for (spec section 1.3).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) messages: u64,
    pub(crate) limit_ns: i64,
    pub(crate) rate_hz: Option<f64>,
    pub(crate) warm_up_messages: u64,
    pub(crate) warm_up_ns: i64,
    pub(crate) reply_timeout_ns: i64,
    /// Silence after the lab's `stop` that means "no more", ns.
    pub(crate) quiet_ns: i64,
    pub(crate) touch: Touch,
}

/// One node, ready to run once.
pub(crate) struct Node {
    role: Role,
    wait: Wait,
    plan: Plan,
    outgoing: Outgoing,
    inbox: Inbox,
    recorder_ns: f64,
    cpu_start_ns: Option<i64>,
}

impl Node {
    /// Allocates everything the run needs and calibrates the recorder.
    pub(crate) fn new(open: &Open, plan: Plan) -> Self {
        let sends_first = matches!(open.role, Role::Initiator | Role::Source);
        let mut inbox = Inbox::new(open.payload_bytes, plan.touch, plan.messages as usize);
        inbox.clock = StampClock::new(open.clock.clone());
        let recorder_ns = Inbox::calibrate(&inbox.clock);
        inbox.sent = if sends_first { 0 } else { u64::MAX };
        Self {
            role: open.role,
            wait: open.wait,
            plan,
            outgoing: Outgoing::new(open.payload_bytes, plan.touch),
            inbox,
            recorder_ns,
            cpu_start_ns: None,
        }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.inbox.table
    }

    /// Runs to the end and returns the `done` line.
    pub(crate) fn run(
        &mut self,
        transport: &mut dyn Transport,
        control: &mut Control,
    ) -> Result<Line, PeerError> {
        match self.role {
            Role::Initiator => self.initiate(transport)?,
            Role::Source => self.send_all(transport)?,
            Role::Echo | Role::Forwarder | Role::Sink => self.receive_all(transport, control)?,
        }
        let facts = transport.facts();
        Ok(facts.iter().fold(self.done(), |line, (name, value)| line.with(&format!("fact.{name}"), value)))
    }

    fn done(&self) -> Line {
        let now_ns = self.inbox.clock.now_ns();
        let mut cpu_ns = self.cpu_start_ns.map_or(0, |start_ns| clock::process_cpu_ns() - start_ns);
        if self.wait == Wait::Spin && self.inbox.last_arrival_ns != 0 {
            // A spinning node burned its core from the last message until it received "stop".
            cpu_ns -= now_ns - self.inbox.last_arrival_ns;
        }
        Line::new("done")
            .with("sent", self.inbox.table.sent())
            .with("received", self.inbox.received)
            .with("duplicated", self.inbox.duplicated)
            .with("unexpected", self.inbox.unexpected)
            .with("overrun", self.inbox.table.overrun)
            .with("cpu_ns", cpu_ns.max(0))
            .with("recorder_ns", format!("{:.1}", self.recorder_ns))
    }

    fn begin_measuring(&mut self) {
        self.cpu_start_ns = Some(clock::process_cpu_ns());
    }

    // — initiator —

    fn initiate(&mut self, transport: &mut dyn Transport) -> Result<(), PeerError> {
        match self.plan.rate_hz {
            None => self.initiate_closed(transport),
            Some(rate_hz) => self.initiate_open(transport, rate_hz),
        }
    }

    /// Closed loop: the next message leaves when the last came back.
    fn initiate_closed(&mut self, transport: &mut dyn Transport) -> Result<(), PeerError> {
        let end_ns = self.inbox.clock.now_ns() + self.plan.warm_up_ns;
        for number in 0..self.plan.warm_up_messages {
            let sent_ns = self.inbox.clock.now_ns();
            if sent_ns >= end_ns {
                break;
            }
            self.exchange(transport, WARM_UP | number, sent_ns)?;
        }
        self.begin_measuring();
        let mut sent_ns = self.inbox.clock.now_ns();
        let end_ns = sent_ns + self.plan.limit_ns;
        for index in 0..self.plan.messages {
            if sent_ns >= end_ns {
                break;
            }
            sent_ns = self.exchange(transport, index, sent_ns)?;
        }
        Ok(())
    }

    /// One round trip; returns the time it ended, which is when the next may start.
    #[inline]
    fn exchange(
        &mut self,
        transport: &mut dyn Transport,
        index: u64,
        sent_ns: i64,
    ) -> Result<i64, PeerError> {
        let Self { inbox, outgoing, plan, wait, .. } = self;
        let shown_ns = inbox.clock.shown_ns(sent_ns);
        if index & WARM_UP == 0 {
            inbox.sent = index + 1;
            if let Some(slot) = inbox.table.slot(index) {
                slot.scheduled_ns = shown_ns;
                slot.sent_ns = shown_ns;
            }
        }
        transport.send(outgoing.set(Header { index, scheduled_ns: shown_ns }))?;
        let mut answered_ns = None;
        while answered_ns.is_none() {
            let count = receive(*wait, transport, &mut |message| {
                if let Some((header, now_ns)) = inbox.take(message)
                    && header.index == index
                {
                    answered_ns = Some(now_ns);
                }
            })?;
            // Only a receive that came back empty reads the clock.
            if count == 0 {
                let now_ns = inbox.clock.now_ns();
                if now_ns - sent_ns >= plan.reply_timeout_ns {
                    return Ok(now_ns);
                }
            }
        }
        Ok(answered_ns.unwrap_or(sent_ns))
    }

    /// Open loop: messages leave when they are due, whether or not the last came back.
    fn initiate_open(&mut self, transport: &mut dyn Transport, rate_hz: f64) -> Result<(), PeerError> {
        let schedule = Schedule::starting_at(self.inbox.clock.now_ns() + 1_000_000, rate_hz);
        let mut turns = Turns::new(self.plan);
        for number in 0.. {
            let due_ns = schedule.due_ns(number);
            self.receive_while_waiting(transport, due_ns - schedule.lead_ns, self.wait)?;
            self.receive_while_waiting(transport, due_ns, Wait::Spin)?;
            let Some(index) = turns.next(due_ns, self.inbox.clock.now_ns()) else { break };
            self.send_in_turn(transport, index, due_ns)?;
        }
        self.drain(transport)
    }

    fn receive_while_waiting(
        &mut self,
        transport: &mut dyn Transport,
        until_ns: i64,
        wait: Wait,
    ) -> Result<(), PeerError> {
        let inbox = &mut self.inbox;
        loop {
            let left_ns = until_ns - inbox.clock.now_ns();
            if left_ns <= 0 {
                return Ok(());
            }
            receive_for(wait, transport, left_ns, &mut |message| {
                inbox.take(message);
            })?;
        }
    }

    fn send_in_turn(
        &mut self,
        transport: &mut dyn Transport,
        index: u64,
        scheduled_ns: i64,
    ) -> Result<(), PeerError> {
        if index == 0 {
            self.begin_measuring();
        }
        let inbox = &mut self.inbox;
        let shown_ns = inbox.clock.shown_ns(scheduled_ns);
        if index & WARM_UP == 0 {
            inbox.sent = index + 1;
            if let Some(slot) = inbox.table.slot(index) {
                slot.scheduled_ns = shown_ns;
                // Without a rate the one reading is both (spec section 3).
                slot.sent_ns = match self.plan.rate_hz {
                    Some(_) => inbox.clock.shown_ns(inbox.clock.now_ns()),
                    None => shown_ns,
                };
            }
        }
        transport.send(self.outgoing.set(Header { index, scheduled_ns: shown_ns }))
    }

    /// After the last message: collects the echoes still on the way.
    fn drain(&mut self, transport: &mut dyn Transport) -> Result<(), PeerError> {
        let inbox = &mut self.inbox;
        inbox.last_arrival_ns = inbox.last_arrival_ns.max(inbox.clock.now_ns());
        let silence_ns = self.plan.reply_timeout_ns.max(SILENCE_NS);
        while inbox.received < inbox.sent {
            let count = receive(self.wait, transport, &mut |message| {
                inbox.take(message);
            })?;
            if count == 0 && inbox.clock.now_ns() - inbox.last_arrival_ns >= silence_ns {
                break;
            }
        }
        Ok(())
    }

    // — source —

    fn send_all(&mut self, transport: &mut dyn Transport) -> Result<(), PeerError> {
        let start_ns = self.inbox.clock.now_ns() + 1_000_000;
        let schedule = self.plan.rate_hz.map(|rate_hz| Schedule::starting_at(start_ns, rate_hz));
        let mut turns = Turns::new(self.plan);
        for number in 0.. {
            let (scheduled_ns, now_ns) = match &schedule {
                Some(schedule) => {
                    let now_ns = schedule.wait_for(number, &self.inbox.clock);
                    (schedule.due_ns(number), now_ns)
                }
                None => {
                    let now_ns = self.inbox.clock.now_ns();
                    (now_ns, now_ns)
                }
            };
            let Some(index) = turns.next(scheduled_ns, now_ns) else { break };
            self.send_in_turn(transport, index, scheduled_ns)?;
        }
        Ok(())
    }

    // — echo, forwarder, sink —

    fn receive_all(&mut self, transport: &mut dyn Transport, control: &mut Control) -> Result<(), PeerError> {
        // More than a batch of any middleware here; grows only in a burst beyond it.
        let mut headers: Vec<Header> = Vec::with_capacity(4096);
        let mut expected: Option<u64> = None;
        let mut stopped_ns = i64::MIN;
        loop {
            if self.receive_some(transport, &mut headers)? > 0 {
                if self.cpu_start_ns.is_none() && self.inbox.received > 0 {
                    self.begin_measuring();
                }
                if expected.is_some_and(|expected| self.inbox.received >= expected) {
                    return Ok(());
                }
                continue;
            }
            match control.glance().map_err(|e| PeerError::of("lost the lab", e))? {
                Some(Command::Line(line)) if line.verb() == "stop" => {
                    expected = Some(line.read("messages", "a number")?.unwrap_or(0));
                    stopped_ns = self.inbox.clock.now_ns();
                }
                Some(Command::End) => {
                    return Err(PeerError("the lab closed the line in the middle".into()));
                }
                Some(_) => return Err(PeerError("only stop is understood while running".into())),
                None => {}
            }
            let silent_ns = self.inbox.clock.now_ns() - self.inbox.last_arrival_ns.max(stopped_ns);
            if expected.is_some_and(|all| self.inbox.received >= all || silent_ns >= self.plan.quiet_ns) {
                return Ok(());
            }
        }
    }

    /// Receives one batch and does with it what the role demands; `headers` is scratch space.
    #[inline]
    fn receive_some(
        &mut self,
        transport: &mut dyn Transport,
        headers: &mut Vec<Header>,
    ) -> Result<usize, PeerError> {
        let Self { inbox, outgoing, .. } = self;
        match self.role {
            // An echo answers first and records then: its own stamps are part of no figure, but the
            // time they take would be part of every round trip.
            Role::Echo => {
                let count = receive(self.wait, transport, &mut |message| match inbox.judge(message) {
                    Some(header) if inbox.is_new(header) => headers.push(header),
                    Some(again) => {
                        let now_ns = inbox.clock.now_ns();
                        inbox.record(again, now_ns);
                    }
                    None => {}
                })?;
                for header in headers.drain(..) {
                    transport.send(outgoing.set(header))?;
                    let now_ns = inbox.clock.now_ns();
                    inbox.record(header, now_ns);
                    inbox.record_sent(header, now_ns);
                }
                Ok(count)
            }
            Role::Forwarder => {
                let count = receive(self.wait, transport, &mut |message| {
                    headers.extend(inbox.take(message).map(|(header, _)| header));
                })?;
                for header in headers.drain(..) {
                    let now_ns = inbox.clock.now_ns();
                    inbox.record_sent(header, now_ns);
                    transport.send(outgoing.set(header))?;
                }
                Ok(count)
            }
            _ => receive(self.wait, transport, &mut |message| {
                inbox.take(message);
            }),
        }
    }
}

/// Counts off the messages of a sender: warm-up, then measured, until either has had its share.
struct Turns {
    plan: Plan,
    warm_up: u64,
    measured: u64,
    warm_up_start_ns: Option<i64>,
    start_ns: Option<i64>,
}

impl Turns {
    fn new(plan: Plan) -> Self {
        Self { plan, warm_up: 0, measured: 0, warm_up_start_ns: None, start_ns: None }
    }

    /// Index of the message that was due at `scheduled_ns`; `None` after the last. A sender may be far behind its schedule:
    /// the time it is given is that of the clock.
    #[inline]
    fn next(&mut self, scheduled_ns: i64, now_ns: i64) -> Option<u64> {
        if self.start_ns.is_none() && self.warm_up < self.plan.warm_up_messages {
            let start_ns = *self.warm_up_start_ns.get_or_insert(scheduled_ns);
            if scheduled_ns - start_ns < self.plan.warm_up_ns {
                self.warm_up += 1;
                return Some(WARM_UP | (self.warm_up - 1));
            }
        }
        let start_ns = *self.start_ns.get_or_insert(scheduled_ns);
        let over = self.measured >= self.plan.messages || now_ns - start_ns >= self.plan.limit_ns;
        self.measured += 1;
        (!over).then(|| self.measured - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(warm_up_messages: u64, warm_up_ns: i64, messages: u64, limit_ns: i64) -> Vec<u64> {
        let plan = Plan {
            messages,
            limit_ns,
            rate_hz: None,
            warm_up_messages,
            warm_up_ns,
            reply_timeout_ns: 1,
            quiet_ns: 1,
            touch: Touch::Header,
        };
        let mut turns = Turns::new(plan);
        (0..).map_while(|number| turns.next(5_000 + number * 10, 5_000 + number * 10)).collect()
    }

    #[test]
    fn a_sender_that_cannot_hold_its_rate_stops_when_its_time_is_over() {
        let plan = Plan {
            messages: 100,
            limit_ns: 1_000,
            rate_hz: Some(1e8),
            warm_up_messages: 0,
            warm_up_ns: 0,
            reply_timeout_ns: 1,
            quiet_ns: 1,
            touch: Touch::Header,
        };
        let mut turns = Turns::new(plan);
        // Due every 10 ns, but each takes 100.
        let sent = (0..).map_while(|number| turns.next(5_000 + number * 10, 5_000 + number * 100)).count();
        assert_eq!(sent, 10);
    }

    #[test]
    fn warm_up_ends_by_number_or_by_time_and_so_does_the_rest() {
        assert_eq!(turns(2, 1000, 3, 1000), [WARM_UP, WARM_UP | 1, 0, 1, 2]);
        assert_eq!(turns(99, 15, 2, 1000), [WARM_UP, WARM_UP | 1, 0, 1]);
        assert_eq!(turns(0, 0, 99, 25), [0, 1, 2]);
    }
}
