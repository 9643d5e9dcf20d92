//! Serial ports: what the kernel delays for throughput's sake, and how to stop it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct serial_struct` of the kernel (uapi/linux/serial.h).
#[repr(C)]
struct SerialStruct {
    kind: libc::c_int,
    line: libc::c_int,
    port: libc::c_uint,
    irq: libc::c_int,
    flags: libc::c_int,
    xmit_fifo_size: libc::c_int,
    custom_divisor: libc::c_int,
    baud_base: libc::c_int,
    close_delay: libc::c_ushort,
    io_type: libc::c_char,
    reserved_char: [libc::c_char; 1],
    hub6: libc::c_int,
    closing_wait: libc::c_ushort,
    closing_wait2: libc::c_ushort,
    iomem_base: *mut libc::c_uchar,
    iomem_reg_shift: libc::c_ushort,
    port_high: libc::c_uint,
    iomap_base: libc::c_ulong,
}

const TIOCGSERIAL: libc::c_ulong = 0x541E;
const TIOCSSERIAL: libc::c_ulong = 0x541F;
const ASYNC_LOW_LATENCY: libc::c_int = 1 << 13;

/// Asks a serial port's driver to hand over bytes as they come (`ASYNC_LOW_LATENCY`). False if the device
/// has no such setting, as pseudo-terminals have none.
pub fn set_low_latency(port: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: serial_struct is a plain C struct for which all zeros is a valid value.
    let mut settings: SerialStruct = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGSERIAL writes one serial_struct, which `settings` is and which outlives the call.
    if unsafe { libc::ioctl(port.as_raw_fd(), TIOCGSERIAL as _, &raw mut settings) } != 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOTTY | libc::EINVAL | libc::ENOSYS) => Ok(false),
            _ => Err(error),
        };
    }
    settings.flags |= ASYNC_LOW_LATENCY;
    // SAFETY: TIOCSSERIAL reads one serial_struct, which `settings` is and which outlives the call.
    if unsafe { libc::ioctl(port.as_raw_fd(), TIOCSSERIAL as _, &raw const settings) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_device_without_the_setting_says_so() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(!set_low_latency(file.as_fd()).unwrap());
    }
}
