//! Input devices: what the kernel knows of an absolute axis.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Range of an absolute axis, as the device's driver states it (`struct input_absinfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Smallest value.
    pub minimum: i32,
    /// Largest value.
    pub maximum: i32,
    /// Half of the width about the middle that the driver takes for rest; 0 if it states none.
    pub flat: i32,
    /// Counts per mm of a position; 0 if the driver states none.
    pub counts_per_mm: i32,
}

/// `EVIOCGABS(axis)` of `linux/input.h`.
const fn get_axis(axis: u16) -> libc::c_ulong {
    libc::_IOR::<libc::input_absinfo>(b'E' as u32, 0x40 + axis as u32) as libc::c_ulong
}

/// Range, rest zone and scale of the axis `ABS_*`, as the driver gives them; `None` if the file is no input device or has no such axis.
///
/// # Errors
///
/// The kernel's, e.g. of a device that has gone (`ENODEV`).
pub fn axis(device: BorrowedFd<'_>, axis: u16) -> io::Result<Option<Axis>> {
    // The request has six bits for it.
    if axis > 0x3f {
        return Ok(None);
    }
    // SAFETY: input_absinfo is a plain C struct for which all zeros is a valid value.
    let mut info: libc::input_absinfo = unsafe { std::mem::zeroed() };
    // SAFETY: EVIOCGABS writes one input_absinfo, which `info` is and which outlives the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), get_axis(axis) as _, &raw mut info) } < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOTTY | libc::EINVAL | libc::ENOSYS) => Ok(None),
            _ => Err(error),
        };
    }
    // The kernel answers for an axis that the device has not with zeros.
    let is_there = info.maximum > info.minimum;
    Ok(is_there.then_some(Axis {
        minimum: info.minimum,
        maximum: info.maximum,
        flat: info.flat,
        counts_per_mm: info.resolution,
    }))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_request_is_that_of_the_kernels_header() {
        // As a C program prints EVIOCGABS(ABS_X) and EVIOCGABS(ABS_MT_POSITION_Y) on x86 and ARM.
        assert_eq!((get_axis(0), get_axis(0x36)), (0x8018_4540, 0x8018_4576));
    }

    #[test]
    fn what_is_no_input_device_has_no_axes() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(axis(file.as_fd(), 0).unwrap(), None);
        assert_eq!(axis(file.as_fd(), 0x40).unwrap(), None);
    }
}
