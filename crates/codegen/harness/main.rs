//! Prints the bytes of seeded values of every generated type; the rule is that of `templates/values.c.j2`.
// Most of it is generated, and of one form for all types.
#![allow(clippy::all, clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

include!(concat!(env!("OUT_DIR"), "/noctule.rs"));

use noctule::formats::plain::{Plain, bytes_of};
use noctule::formats::{Format, Message, decode, encode};

/// Values of each type.
const VALUES: u64 = 20;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn count(&mut self, most: u64) -> u64 {
        self.next() % (most + 1)
    }

    pub fn text(&mut self, most: u64) -> String {
        let mut left = self.count(most);
        let mut text = String::new();
        while left > 0 {
            let word = self.next();
            if word % 8 == 0 && left >= 2 {
                text.push('é');
                left -= 2;
            } else {
                text.push(char::from(b'a' + (word % 26) as u8));
                left -= 1;
            }
        }
        text
    }
}

/// Something with a value for every state of the random numbers.
pub trait Fill {
    fn fill(&mut self, random: &mut Random);
}

fn values<T: Message + Default + Fill>(name: &str, hash: u64) {
    for seed in 0..VALUES {
        let mut value = T::default();
        let mut random = Random(hash ^ seed);
        value.fill(&mut random);
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        encode(Format::Cdr, &value, &mut bytes).unwrap();
        let read: T = decode(Format::Cdr, &bytes).unwrap();
        encode(Format::Cdr, &read, &mut again).unwrap();
        assert_eq!(bytes, again, "{name} of seed {seed} is another value after decoding");
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name} {seed} {digits}");
        damaged::<T>((name, seed), &bytes, &mut random);
    }
}

/// Prints the value of a sample with one flipped bit, and checks that other lengths are refused.
fn damaged<T: Message>((name, seed): (&str, u64), sample: &[u8], random: &mut Random) {
    let body = sample.len() as u64 - 4;
    for number in 4 * seed..4 * seed + 4 {
        let mut copy = sample.to_vec();
        copy[(4 + random.next() % body) as usize] ^= 1;
        println!("{name}@damaged {number} {}", read::<T>(&copy).unwrap_or("refused".to_owned()));
    }
    for more in 0..=4 {
        let mut copy = sample.to_vec();
        copy.resize(if more == 0 { (4 + random.next() % body) as usize } else { sample.len() + more }, 0);
        assert_eq!(
            read::<T>(&copy).is_some(),
            (1..4).contains(&more),
            "{name} of seed {seed}, {} bytes",
            copy.len()
        );
    }
}

fn read<T: Message>(sample: &[u8]) -> Option<String> {
    let value: T = decode(Format::Cdr, sample).ok()?;
    let mut again = Vec::new();
    encode(Format::Cdr, &value, &mut again).unwrap();
    Some(again.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The same values as they lie in memory that programs share.
fn plain<T: Default + Fill + From<P>, P: Plain + From<T>>(name: &str, hash: u64) {
    for seed in 0..VALUES {
        let mut value = T::default();
        value.fill(&mut Random(hash ^ seed));
        let there = P::from(value);
        let again = P::from(T::from(there));
        let (bytes, again) = (bytes_of(&there), bytes_of(&again));
        assert_eq!(bytes, again, "{name} of seed {seed} is another value after its layout");
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name}@plain {seed} {digits}");
    }
}

include!(concat!(env!("OUT_DIR"), "/rust/values.rs"));
