//! Any k of n repair; nothing that arrives makes the decoder panic or keep more than a block.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn parities(symbols: &[Vec<u8>], count: u8) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(symbols.len() as u8, count).unwrap();
    for (index, symbol) in symbols.iter().enumerate() {
        encoder.add(index as u8, symbol).unwrap();
    }
    (0..count)
        .map(|index| {
            let mut parity = Vec::new();
            encoder.parity(index, &mut parity).unwrap();
            parity
        })
        .collect()
}

/// A block, how many parities, and an order in which its symbols arrive.
type Block = (Vec<Vec<u8>>, u8, Vec<usize>);

fn block() -> impl Strategy<Value = Block> {
    (vec(vec(any::<u8>(), 0..40), 1..=DATA_SYMBOLS_MAX), 0..=PARITY_SYMBOLS_MAX as u8).prop_flat_map(
        |(symbols, parities)| {
            let all: Vec<usize> = (0..symbols.len() + usize::from(parities)).collect();
            (Just(symbols), Just(parities), Just(all).prop_shuffle())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_k_of_n_symbols_give_the_block((symbols, count, order) in block()) {
        let parity = parities(&symbols, count);
        let k = symbols.len();
        let mut decoder = Decoder::new(k as u8).unwrap();
        for (arrived, &index) in order.iter().take(k).enumerate() {
            prop_assert_eq!(decoder.is_complete(), arrived >= k);
            match index.checked_sub(k) {
                None => decoder.add_data(index as u8, &symbols[index]).unwrap(),
                Some(index) => decoder.add_parity(index as u8, &parity[index]).unwrap(),
            }
        }
        for (index, symbol) in symbols.iter().enumerate() {
            prop_assert_eq!(decoder.recover(index as u8).unwrap(), &symbol[..]);
        }
    }

    #[test]
    fn parity_made_late_is_the_parity_made_along((symbols, count, _) in block()) {
        for (index, along) in parities(&symbols, count).iter().enumerate() {
            let late = (0..).zip(symbols.iter().map(Vec::as_slice));
            let mut parity = Vec::new();
            parity_of(index as u8, late, &mut parity).unwrap();
            prop_assert_eq!(&parity, along);
        }
    }

    #[test]
    fn arbitrary_symbols_are_answered_and_never_kept_beyond_the_block(
        k in any::<u8>(),
        input in vec((any::<bool>(), any::<u8>(), vec(any::<u8>(), 0..12)), 0..300),
    ) {
        let Ok(mut decoder) = Decoder::new(k) else { return Ok(()) };
        for (is_parity, index, bytes) in input {
            let _ = if is_parity { decoder.add_parity(index, &bytes) } else { decoder.add_data(index, &bytes) };
            let _ = decoder.recover(index);
            prop_assert!(decoder.parity.len() <= k.into());
        }
    }
}

#[test]
fn the_first_parity_is_the_exclusive_or() {
    let parity = parities(&[vec![1, 2, 3], vec![4, 5, 6], vec![7, 8, 9]], 1);
    assert_eq!(parity, [[3, 0, 1 ^ 4 ^ 7, 2 ^ 5 ^ 8, 3 ^ 6 ^ 9]]);
}

#[test]
fn parities_are_those_of_the_specification() {
    let symbols = [vec![1, 2, 3], vec![4, 5]];
    assert_eq!(parities(&symbols, 3), crate::specification::example_lines("Parity symbols"));
}

#[test]
fn one_data_symbol_and_its_parities_each_give_it_alone() {
    for (index, parity) in parities(&[b"alone".to_vec()], 127).iter().enumerate() {
        let mut decoder = Decoder::new(1).unwrap();
        decoder.add_parity(index as u8, parity).unwrap();
        assert_eq!(decoder.recover(0).unwrap(), b"alone");
    }
}

#[test]
fn a_repaired_symbol_has_its_own_length_again() {
    let symbols = [vec![], vec![0; 7], vec![9; 1200]];
    let parity = parities(&symbols, 2);
    let mut decoder = Decoder::new(3).unwrap();
    decoder.add_data(2, &symbols[2]).unwrap();
    assert_eq!(decoder.missing(), 2);
    assert_eq!(decoder.recover(0), Err(ErasureError::TooFew));
    decoder.add_parity(1, &parity[1]).unwrap();
    decoder.add_parity(0, &parity[0]).unwrap();
    assert_eq!(decoder.recover(0).unwrap(), b"");
    assert_eq!(decoder.recover(1).unwrap(), [0; 7]);
}

#[test]
fn a_parity_of_another_block_is_found_out_and_the_data_stays() {
    let foreign = parities(&[vec![1; 20], vec![200; 30]], 1);
    let mut decoder = Decoder::new(2).unwrap();
    decoder.add_data(0, &[7; 25]).unwrap();
    decoder.add_parity(0, &foreign[0]).unwrap();
    assert_eq!(decoder.recover(1), Err(ErasureError::Contradiction));
    assert_eq!(decoder.recover(0).unwrap(), [7; 25]);
    assert!(!decoder.is_complete());
    // A parity too short for what is already here is of another block as well.
    decoder.add_parity(0, &[0, 0]).unwrap();
    assert_eq!(decoder.recover(1), Err(ErasureError::Contradiction));
}

#[test]
fn what_does_not_fit_a_block_is_refused() {
    assert_eq!(Encoder::new(0, 1).err(), Some(ErasureError::BlockSize));
    assert_eq!(Decoder::new(129).err(), Some(ErasureError::BlockSize));
    assert_eq!(Encoder::new(1, 128).err(), Some(ErasureError::Index));
    let mut encoder = Encoder::new(2, 1).unwrap();
    assert_eq!(encoder.add(2, b""), Err(ErasureError::Index));
    assert_eq!(encoder.add(0, &[0; SYMBOL_BYTES_MAX + 1]), Err(ErasureError::Length));
    assert_eq!(encoder.parity(1, &mut Vec::new()), Err(ErasureError::Index));
    let mut decoder = Decoder::new(2).unwrap();
    assert_eq!(decoder.add_data(2, b""), Err(ErasureError::Index));
    assert_eq!(decoder.add_parity(127, &[0; 2]), Err(ErasureError::Index));
    assert_eq!(decoder.add_parity(0, &[0]), Err(ErasureError::Length));
    assert_eq!(decoder.add_parity(0, &[0; SYMBOL_BYTES_MAX + 3]), Err(ErasureError::Length));
}

#[test]
fn adding_a_symbol_twice_changes_nothing() {
    let mut encoder = Encoder::new(2, 1).unwrap();
    encoder.add(0, b"one").unwrap();
    encoder.add(0, b"one").unwrap();
    assert_eq!(encoder.symbols(), 1);
    let mut parity = Vec::new();
    encoder.parity(0, &mut parity).unwrap();
    assert_eq!(parity, b"\x03\x00one");
}
