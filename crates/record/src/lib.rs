//! Recording the samples of a robot, and publishing them again.
//!
//! # Problem
//!
//! A recording is looked at weeks later by somebody who asks how old the data were when they were used. A file that has
//! only the time at which the recorder wrote a message cannot answer. And a recorder must not change what it records:
//! a slow disk may cost the recording samples, never the robot.
//!
//! # Approach
//!
//! - Files are MCAP, so that Foxglove, PlotJuggler and rosbag2 open them: the log time of a message is when the recorder
//!   received the sample, its publish time is the source time of the sample, both since 1970. What other formats have no
//!   place for, the bound and the standard error of the source time, is in [records](times) of our own beside the messages, and so are
//!   every node's clock and the links between nodes ([`state`]).
//! - One thread for each topic takes samples and copies them once into a queue of limited size; one thread writes. When
//!   the queue is full, the sample is left out and counted ([`recorder`]).
//! - A chunk goes to the file as a whole, twice a second at least, so that a process that is killed leaves a file that opens
//!   and lacks less than a second ([`writer`]). Such a file has no end, which most readers ask first; it can be given one ([`mend`]).
//! - The player works out when each message is due before it plays ([`schedule`]); what is due does not depend on the clock, so that
//!   two plays publish the same samples in the same order ([`player`]).
//! - What is too old, too slow or too uncertain for too long fires an [alarm](alarms), live and of a file alike.
//! - Recordings of others are read as far as their messages say how old they are ([`ages`]).
#![forbid(unsafe_code)]

pub mod ages;
pub mod alarms;
pub mod check;
pub mod ends;
pub mod file;
pub mod mend;
pub mod observer;
pub mod player;
pub mod recorder;
pub mod schedule;
pub mod stamp;
pub mod state;
pub mod times;
pub mod writer;

mod block_buffer;
mod queue;
mod staged;
mod unnamed;
