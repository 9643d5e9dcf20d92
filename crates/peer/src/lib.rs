//! The node side of the peer protocol.
