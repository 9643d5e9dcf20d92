//! Reads discovery data of other participants from Cyclone's QoS objects: the hash of a type, the process.
#![allow(unsafe_code)] // FFI to a C library.

use std::ffi::{CStr, c_void};
use std::ptr;

use cyclors as c;

use super::text;
use crate::user_data;

/// Finds something in USER_DATA.
type Read = fn(&[u8]) -> Option<String>;

/// ROS 2's hash of the type in an endpoint's USER_DATA.
pub(super) fn type_hash(qos: *const c::dds_qos_t) -> Option<String> {
    announced(qos, user_data::type_hash)
}

/// The client of a service in an endpoint's USER_DATA.
pub(super) fn client(qos: *const c::dds_qos_t) -> Option<String> {
    announced(qos, user_data::client)
}

fn announced(qos: *const c::dds_qos_t, read: Read) -> Option<String> {
    let (mut bytes, mut length) = (ptr::null_mut::<c_void>(), 0);
    // SAFETY: the sample's own QoS object; the value is a copy of that length that is ours to free.
    unsafe {
        if qos.is_null() || !c::dds_qget_userdata(qos, &mut bytes, &mut length) || bytes.is_null() {
            return None;
        }
        let found = read(std::slice::from_raw_parts(bytes.cast::<u8>(), length));
        c::dds_free(bytes);
        found
    }
}

/// Whether the participant with these properties (Cyclone's) is a process of this host.
pub(super) fn is_of_this_host(qos: *const c::dds_qos_t) -> bool {
    let property = |name: &CStr| -> Option<String> {
        let mut value = ptr::null_mut();
        // SAFETY: the sample's own QoS object and a string; the value is a copy that is ours to free.
        unsafe {
            if qos.is_null() || !c::dds_qget_prop(qos, name.as_ptr(), &mut value) {
                return None;
            }
            let copy = text(value);
            c::dds_free(value.cast::<c_void>());
            Some(copy)
        }
    };
    let (Some(host), Some(process), Some(number)) =
        (property(c"__Hostname"), property(c"__ProcessName"), property(c"__Pid"))
    else {
        return false;
    };
    let ours = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let Ok(number) = number.parse::<u32>() else { return false };
    let command = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    let program = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let process = process.rsplit('/').next().unwrap_or_default();
    host == ours.trim() && !process.is_empty() && program == process.as_bytes()
}
