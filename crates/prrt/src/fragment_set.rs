//! The set of the fragments of one sample that arrived, for reassembly, or were acknowledged.

/// A set of fragment numbers. Up to 64 fragments need no allocation; more grow with what is inserted.
#[derive(Clone, Debug, Default)]
pub(crate) struct FragmentSet {
    first: u64,
    more: Vec<u64>,
    len: u32,
}

impl FragmentSet {
    /// Adds a number; `false` if it was there.
    pub(crate) fn insert(&mut self, index: u16) -> bool {
        let (word, bit) = (usize::from(index / 64), 1 << (index % 64));
        if self.more.len() < word {
            self.more.resize(word, 0);
        }
        let place = if word == 0 { &mut self.first } else { &mut self.more[word - 1] };
        let new = *place & bit == 0;
        *place |= bit;
        self.len += u32::from(new);
        new
    }

    /// Whether a number is there.
    pub(crate) fn contains(&self, index: u16) -> bool {
        let word = match usize::from(index / 64) {
            0 => self.first,
            word => self.more.get(word - 1).copied().unwrap_or(0),
        };
        word & 1 << (index % 64) != 0
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }
}
