//! Who this process is.

/// The effective user id: whose files this process may read.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}
