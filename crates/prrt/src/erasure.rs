//! Forward erasure correction (FEC): a systematic code over GF(2⁸); of a block's source and repair symbols any k give the block.
//!
//! # Problem
//!
//! A parity symbol repairs whichever datagram was lost, at several receivers a different one each. The sender
//! must not stall when a block is full, blocks end early, and datagrams differ in length.
//!
//! # Approach
//!
//! Data symbols are sent as they are. Parity i is Σⱼ c(i, j) · dⱼ with Cauchy's coefficients 1/(xᵢ + yⱼ),
//! each column scaled so that parity 0 is the plain exclusive or. Every square submatrix of such a matrix is
//! invertible, which is what makes any k of n enough (maximum distance separable). The coefficients do not
//! depend on k: a block that ends early is one whose missing symbols are zero, and further parity can be
//! made at any time.
//!
//! Lengths are part of what is coded: each symbol is its length (two bytes, little endian), its bytes, zeros.
//! A repaired symbol therefore has its own length again, and zeros that are none reveal a parity that does
//! not belong to the block.
//!
//! [`Encoder`] adds each data symbol to every parity as it comes, so that the cost is spread over the block.
//! [`Decoder`] does nothing but keep symbols until one must be repaired.
//!
//! # References
//!
//! J. Blömer et al., "An XOR-based erasure-resilient coding scheme", ICSI TR-95-048, 1995 (Cauchy matrices).

mod field;
#[cfg(test)]
mod tests;

use thiserror::Error;

/// Data symbols of one block at most.
pub const DATA_SYMBOLS_MAX: usize = 128;
/// Parity symbols of one block at most; with the data symbols 255.
pub const PARITY_SYMBOLS_MAX: usize = 127;
/// Bytes of one data symbol at most: a jumbo frame.
pub const SYMBOL_BYTES_MAX: usize = 9_000;

const LENGTH_BYTES: usize = 2;

/// Why a symbol is refused or a block not repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ErasureError {
    /// A block of no data symbols, or of more than [`DATA_SYMBOLS_MAX`].
    #[error("a block has 1 to {DATA_SYMBOLS_MAX} data symbols")]
    BlockSize,
    /// An index outside the block, or a parity beyond [`PARITY_SYMBOLS_MAX`].
    #[error("the block has no symbol of this index")]
    Index,
    /// A data symbol of more than [`SYMBOL_BYTES_MAX`] bytes, or a parity that could not be one.
    #[error("a data symbol has at most {SYMBOL_BYTES_MAX} bytes, a parity 2 to {SYMBOL_BYTES_MAX} + 2")]
    Length,
    /// Fewer symbols than the block has data symbols.
    #[error("too few symbols arrived to repair the block")]
    TooFew,
    /// The symbols are not of one block.
    #[error("the symbols contradict each other: they are not of one block")]
    Contradiction,
}

/// The sender's side of one block: takes data symbols one by one, in any order, and gives parity.
#[derive(Clone, Debug)]
pub struct Encoder {
    data_symbols: usize,
    added: u128,
    parity: Vec<Vec<u8>>,
}

impl Encoder {
    /// A block of `data_symbols` (1 to 128) for which `parity_symbols` (0 to 127) are kept up to date.
    pub fn new(data_symbols: u8, parity_symbols: u8) -> Result<Encoder, ErasureError> {
        let data_symbols = block_size(data_symbols)?;
        if usize::from(parity_symbols) > PARITY_SYMBOLS_MAX {
            return Err(ErasureError::Index);
        }
        Ok(Encoder { data_symbols, added: 0, parity: vec![Vec::new(); parity_symbols.into()] })
    }

    /// Adds the data symbol `index` to every parity. Each index counts once: what was added is ignored.
    pub fn add(&mut self, index: u8, symbol: &[u8]) -> Result<(), ErasureError> {
        if usize::from(index) >= self.data_symbols {
            return Err(ErasureError::Index);
        }
        let length = length_prefix(symbol)?;
        if self.added >> index & 1 == 1 {
            return Ok(());
        }
        self.added |= 1 << index;
        for (parity_index, parity) in self.parity.iter_mut().enumerate() {
            add_symbol(parity, length, symbol, coefficient(parity_index, index.into()));
        }
        Ok(())
    }

    /// Data symbols added so far.
    pub fn symbols(&self) -> u8 {
        self.added.count_ones() as u8
    }

    /// Replaces what is in `out` by parity `index` over the symbols added so far.
    ///
    /// Its length is that of the longest of them and two bytes more.
    pub fn parity(&self, index: u8, out: &mut Vec<u8>) -> Result<(), ErasureError> {
        let parity = self.parity.get(usize::from(index)).ok_or(ErasureError::Index)?;
        out.clear();
        out.extend_from_slice(parity);
        Ok(())
    }
}

/// Replaces what is in `out` by parity `index` over data symbols the caller still has, each with its index.
///
/// For parity that is seldom wanted: an [`Encoder`] pays for each parity whether it is sent or not.
pub fn parity_of<'a>(
    index: u8,
    symbols: impl IntoIterator<Item = (u8, &'a [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), ErasureError> {
    if usize::from(index) >= PARITY_SYMBOLS_MAX {
        return Err(ErasureError::Index);
    }
    out.clear();
    for (symbol_index, symbol) in symbols {
        if usize::from(symbol_index) >= DATA_SYMBOLS_MAX {
            return Err(ErasureError::Index);
        }
        add_symbol(out, length_prefix(symbol)?, symbol, coefficient(index.into(), symbol_index.into()));
    }
    Ok(())
}

/// The receiver's side of one block. Holds at most as many symbols as the block has data symbols.
#[derive(Clone, Debug)]
pub struct Decoder {
    data: Vec<Option<Vec<u8>>>,
    /// Index and bytes, each index once.
    parity: Vec<(u8, Vec<u8>)>,
    received: usize,
}

impl Decoder {
    /// A block of `data_symbols` (1 to 128).
    pub fn new(data_symbols: u8) -> Result<Decoder, ErasureError> {
        let data_symbols = block_size(data_symbols)?;
        Ok(Decoder { data: vec![None; data_symbols], parity: Vec::new(), received: 0 })
    }

    /// Keeps the data symbol `index`; a second copy is ignored.
    pub fn add_data(&mut self, index: u8, symbol: &[u8]) -> Result<(), ErasureError> {
        length_prefix(symbol)?;
        let slot = self.data.get_mut(usize::from(index)).ok_or(ErasureError::Index)?;
        if slot.is_none() {
            *slot = Some(symbol.to_vec());
            self.received += 1;
        }
        Ok(())
    }

    /// Keeps parity `index`; a second copy, and what a block that can be repaired no longer needs, is ignored.
    pub fn add_parity(&mut self, index: u8, parity: &[u8]) -> Result<(), ErasureError> {
        if usize::from(index) >= PARITY_SYMBOLS_MAX {
            return Err(ErasureError::Index);
        }
        if !(LENGTH_BYTES..=SYMBOL_BYTES_MAX + LENGTH_BYTES).contains(&parity.len()) {
            return Err(ErasureError::Length);
        }
        let known = self.parity.iter().any(|(held, _)| *held == index);
        if !known && !self.is_complete() {
            self.parity.push((index, parity.to_vec()));
        }
        Ok(())
    }

    /// True when every data symbol is here or can be repaired.
    pub fn is_complete(&self) -> bool {
        self.received + self.parity.len() >= self.data.len()
    }

    /// Data symbols that are neither here nor repaired yet.
    pub fn missing(&self) -> u8 {
        (self.data.len() - self.received) as u8
    }

    /// The data symbol `index`, if it is here already.
    pub fn symbol(&self, index: u8) -> Option<&[u8]> {
        self.data.get(usize::from(index))?.as_deref()
    }

    /// The data symbol `index`; the first call for one that is missing repairs all that are.
    ///
    /// After [`ErasureError::Contradiction`] the parity is forgotten, and the data symbols stay as they were.
    pub fn recover(&mut self, index: u8) -> Result<&[u8], ErasureError> {
        let slot = self.data.get(usize::from(index)).ok_or(ErasureError::Index)?;
        if slot.is_none() {
            self.repair()?;
        }
        self.symbol(index).ok_or(ErasureError::TooFew)
    }

    fn repair(&mut self) -> Result<(), ErasureError> {
        if !self.is_complete() {
            return Err(ErasureError::TooFew);
        }
        let missing: Vec<usize> = (0..self.data.len()).filter(|&index| self.data[index].is_none()).collect();
        let mut rows: Vec<Row> = self
            .parity
            .drain(..)
            .take(missing.len())
            .map(|(index, sum)| Row {
                factors: missing.iter().map(|&symbol| coefficient(index.into(), symbol)).collect(),
                index: index.into(),
                sum,
            })
            .collect();
        self.subtract_known(&mut rows)?;
        solve(&mut rows);
        let repaired: Vec<Vec<u8>> = rows.into_iter().map(unprefix).collect::<Result<_, _>>()?;
        for (&index, symbol) in missing.iter().zip(repaired) {
            self.data[index] = Some(symbol);
        }
        self.received = self.data.len();
        Ok(())
    }

    /// Leaves in each row the sum over the missing symbols alone.
    fn subtract_known(&self, rows: &mut [Row]) -> Result<(), ErasureError> {
        let length = rows.iter().map(|row| row.sum.len()).max().unwrap_or(0);
        for row in rows {
            row.sum.resize(length, 0);
            for (index, symbol) in self.data.iter().enumerate() {
                let Some(symbol) = symbol else { continue };
                if symbol.len() + LENGTH_BYTES > length {
                    return Err(ErasureError::Contradiction);
                }
                add_symbol(&mut row.sum, length_prefix(symbol)?, symbol, coefficient(row.index, index));
            }
        }
        Ok(())
    }
}

/// One equation: Σ factors · missing symbols = sum.
struct Row {
    index: usize,
    factors: Vec<u8>,
    sum: Vec<u8>,
}

/// Gauss and Jordan. No pivot is ever zero: after each step the remaining minors are quotients of minors of
/// the Cauchy matrix, none of which is singular.
fn solve(rows: &mut [Row]) {
    for pivot in 0..rows.len() {
        let factor = field::quotient(1, rows[pivot].factors[pivot]);
        field::scale(&mut rows[pivot].factors, factor);
        field::scale(&mut rows[pivot].sum, factor);
        let (before, rest) = rows.split_at_mut(pivot);
        let Some((current, after)) = rest.split_first_mut() else { return };
        for row in before.iter_mut().chain(after) {
            let factor = row.factors[pivot];
            field::add_product(&mut row.factors, &current.factors, factor);
            field::add_product(&mut row.sum, &current.sum, factor);
        }
    }
}

/// The symbol in a solved row, without its length and its zeros.
fn unprefix(row: Row) -> Result<Vec<u8>, ErasureError> {
    let mut bytes = row.sum;
    let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let end = LENGTH_BYTES + length;
    if end > bytes.len() || bytes[end..].iter().any(|&byte| byte != 0) {
        return Err(ErasureError::Contradiction);
    }
    bytes.truncate(end);
    bytes.drain(..LENGTH_BYTES);
    Ok(bytes)
}

fn add_symbol(sum: &mut Vec<u8>, length: [u8; LENGTH_BYTES], symbol: &[u8], factor: u8) {
    if sum.len() < LENGTH_BYTES + symbol.len() {
        sum.resize(LENGTH_BYTES + symbol.len(), 0);
    }
    let (prefix, bytes) = sum.split_at_mut(LENGTH_BYTES);
    field::add_product(prefix, &length, factor);
    field::add_product(bytes, symbol, factor);
}

fn length_prefix(symbol: &[u8]) -> Result<[u8; LENGTH_BYTES], ErasureError> {
    if symbol.len() > SYMBOL_BYTES_MAX {
        return Err(ErasureError::Length);
    }
    Ok((symbol.len() as u16).to_le_bytes())
}

fn block_size(data_symbols: u8) -> Result<usize, ErasureError> {
    let size = usize::from(data_symbols);
    if size == 0 || size > DATA_SYMBOLS_MAX { Err(ErasureError::BlockSize) } else { Ok(size) }
}

/// c(i, j) = (x₀ + yⱼ) / (xᵢ + yⱼ) with xᵢ = 128 + i and yⱼ = j: one for i = 0.
fn coefficient(parity: usize, symbol: usize) -> u8 {
    let x = |parity: usize| (DATA_SYMBOLS_MAX + parity) as u8;
    field::quotient(x(0) ^ symbol as u8, x(parity) ^ symbol as u8)
}
