//! `c/noctule_client.h`, as far as it is called from here.

use core::ffi::{c_char, c_int, c_void};

/// `noctule_client_t`: only its address is known here.
#[repr(C)]
pub(crate) struct Client {
    private: [u8; 0],
}

#[repr(C)]
pub(crate) struct Endpoint {
    pub(crate) topic: *const c_char,
    pub(crate) kind: *const c_char,
    pub(crate) flags: u8,
    pub(crate) history_depth: u16,
}

pub(crate) type OnSample = extern "C" fn(*mut c_void, u16, *const u8, u32, i64);
pub(crate) type OnExchange = extern "C" fn(*mut c_void, *const Exchange);

#[repr(C)]
pub(crate) struct Config {
    pub(crate) key: u32,
    pub(crate) line: c_int,
    pub(crate) address: u8,
    pub(crate) domain: u16,
    pub(crate) participant: *const c_char,
    pub(crate) endpoints: *const Endpoint,
    pub(crate) endpoint_count: u16,
    pub(crate) message_bytes: u16,
    pub(crate) slots_out: u8,
    pub(crate) slots_in: u8,
    pub(crate) large_bytes: u32,
    pub(crate) memory: *mut u8,
    pub(crate) memory_bytes: usize,
    pub(crate) sync_interval_ns: i64,
    pub(crate) context: *mut c_void,
    pub(crate) on_sample: Option<OnSample>,
    pub(crate) on_exchange: Option<OnExchange>,
}

#[repr(C)]
pub(crate) struct Exchange {
    pub(crate) t1_ns: i64,
    pub(crate) t2_ns: i64,
    pub(crate) t3_ns: i64,
    pub(crate) t4_ns: i64,
}

unsafe extern "C" {
    pub(crate) fn noctule_board_client_bytes() -> usize;
    #[cfg(test)]
    pub(crate) fn noctule_board_config_bytes() -> usize;
    #[cfg(test)]
    pub(crate) fn noctule_board_counts_bytes() -> usize;
    pub(crate) fn noctule_client_init(client: *mut Client, config: *const Config) -> c_int;
    pub(crate) fn noctule_client_handle_bytes(
        client: *mut Client,
        bytes: *const u8,
        length: usize,
        now_ns: i64,
    ) -> bool;
    pub(crate) fn noctule_client_handle_datagram(
        client: *mut Client,
        bytes: *const u8,
        length: usize,
        now_ns: i64,
    );
    pub(crate) fn noctule_client_poll_transmit(
        client: *mut Client,
        now_ns: i64,
        out: *mut u8,
        capacity: usize,
    ) -> i32;
    pub(crate) fn noctule_client_next_timeout(client: *const Client, now_ns: i64) -> i64;
    pub(crate) fn noctule_client_publish(
        client: *mut Client,
        endpoint: u16,
        bytes: *const u8,
        length: u32,
        source_ns: i64,
    ) -> c_int;
    pub(crate) fn noctule_client_is_ready(client: *const Client, endpoint: u16) -> bool;
    pub(crate) fn noctule_client_unacknowledged(client: *const Client) -> u16;
    pub(crate) fn noctule_client_close(client: *mut Client, now_ns: i64);
    pub(crate) fn noctule_client_state(client: *const Client) -> c_int;
    pub(crate) fn noctule_client_counts(client: *const Client) -> *const crate::Counts;
    pub(crate) fn noctule_client_agent_is_noctule(client: *const Client) -> bool;
    pub(crate) fn noctule_client_error_text(error: c_int) -> *const c_char;
}
