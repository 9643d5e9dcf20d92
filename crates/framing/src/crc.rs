//! CRC-16/ARC: reflected polynomial A001, initial value 0, nothing flipped at the end.

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xA001 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC-16/ARC of some bytes.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| add(crc, *byte))
}

/// One byte more.
pub(crate) fn add(crc: u16, byte: u8) -> u16 {
    crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_comes_out() {
        // Greg Cook, Catalogue of parametrised CRC algorithms: CRC-16/ARC.
        assert_eq!(crc16(b"123456789"), 0xBB3D);
        assert_eq!(crc16(b""), 0);
    }
}
