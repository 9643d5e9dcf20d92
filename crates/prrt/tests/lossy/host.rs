//! A host whose thread stalls now and then: what arrives waits in its socket, and what should be sent is not.

use noctule_netsim::Random;
use noctule_prrt::Local;
use noctule_timebase::{Instant, Span};

/// How often, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStalls {
    /// Between the end of one and the begin of the next, exponential with this mean.
    pub every: Span,
    /// Uniform from the first to the second.
    pub length: (Span, Span),
}

impl ThreadStalls {
    /// A thread with normal priority beside a build: a second apart, 5 to 50 ms.
    pub const BUSY: ThreadStalls =
        ThreadStalls { every: Span::from_s(1), length: (Span::from_ms(5), Span::from_ms(50)) };
}

/// The thread of one host.
pub struct Thread {
    thread_stalls: Option<ThreadStalls>,
    random: Random,
    /// The present stall, or the next.
    begin: Instant<Local>,
    end: Instant<Local>,
}

impl Thread {
    pub fn new(thread_stalls: Option<ThreadStalls>, random: Random, now: Instant<Local>) -> Thread {
        let mut thread = Thread { thread_stalls, random, begin: now, end: now };
        thread.go_on();
        thread
    }

    /// Until when it stalls, if it does. To be asked in order of time.
    pub fn still_until(&mut self, now: Instant<Local>) -> Option<Instant<Local>> {
        while self.thread_stalls.is_some() && self.end <= now {
            self.go_on();
        }
        (self.begin <= now && now < self.end).then_some(self.end)
    }

    fn go_on(&mut self) {
        let Some(ThreadStalls { every, length: (least, most) }) = self.thread_stalls else { return };
        let (runs_ns, stands_ns) = (
            self.random.exponential(every.ns() as f64),
            self.random.uniform(least.ns() as f64, most.ns() as f64),
        );
        self.begin = self.end + Span::from_ns(runs_ns as i64);
        self.end = self.begin + Span::from_ns(stands_ns as i64);
    }
}
