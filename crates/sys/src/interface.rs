//! Network interfaces of the calling thread's namespace, by ioctl: no tool needs to be installed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Brings an interface up; `multicast` also sets its multicast flag, which `lo` lacks by default.
pub fn set_up(name: &str, multicast: bool) -> io::Result<()> {
    let socket = control_socket()?;
    let mut request = named_request(name)?;
    control(&socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS succeeded, so the kernel has filled `ifru_flags`.
    let mut flags = unsafe { request.ifr_ifru.ifru_flags };
    flags |= libc::IFF_UP as libc::c_short;
    if multicast {
        flags |= libc::IFF_MULTICAST as libc::c_short;
    }
    request.ifr_ifru.ifru_flags = flags;
    control(&socket, libc::SIOCSIFFLAGS, &mut request)
}

/// True once an interface can carry packets: a veth needs a moment after both ends are up.
pub fn is_running(name: &str) -> io::Result<bool> {
    let socket = control_socket()?;
    let mut request = named_request(name)?;
    control(&socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS succeeded, so the kernel has filled `ifru_flags`.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(flags & libc::IFF_RUNNING as libc::c_short != 0)
}

/// Routes 224.0.0.0/4 to an interface. It is no error if the route exists.
pub fn route_multicast_to(name: &str) -> io::Result<()> {
    match change_multicast_route(name, libc::SIOCADDRT) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other,
    }
}

/// Moves the route of 224.0.0.0/4 from one interface to another.
pub fn replace_multicast_route(old: &str, new: &str) -> io::Result<()> {
    change_multicast_route(old, libc::SIOCDELRT)?;
    route_multicast_to(new)
}

fn change_multicast_route(name: &str, operation: libc::c_ulong) -> io::Result<()> {
    let socket = control_socket()?;
    let mut device = interface_name(name)?;
    // SAFETY: rtentry is a plain C struct for which all zeros is a valid value.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = address([224, 0, 0, 0]);
    route.rt_genmask = address([240, 0, 0, 0]);
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = device.as_mut_ptr();
    // SAFETY: `route` and the name it points to outlive the call, and both operations take an rtentry.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), operation as _, &route) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One network interface that is up and has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number of it; never reused while the machine runs.
    pub index: u32,
    /// Its name, e.g. `eth0`.
    pub name: String,
    /// Whether it is the loopback interface.
    pub is_loopback: bool,
    /// Its IPv4 addresses, in the kernel's order.
    pub ipv4: Vec<Ipv4Addr>,
    /// Its link-local IPv6 addresses (`fe80::/10`; of the loopback interface `::1`), in the kernel's order. Nothing can be sent from one that the
    /// kernel still checks for duplicates on the link (RFC 4862, section 5.4), which takes one to two seconds: that is not one of them yet.
    pub ipv6: Vec<Ipv6Addr>,
}

/// All interfaces that are up and have an address, by rising index.
///
/// # Errors
/// Those of `getifaddrs`.
pub fn list() -> io::Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: on success `first` points to a list that lives until `freeifaddrs`.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: not null, so an entry of the list.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        // SAFETY: an entry of the list, which has not been freed.
        if let Some((name, address)) = unsafe { named_address(entry) } {
            let is_loopback = entry.ifa_flags & libc::IFF_LOOPBACK as libc::c_uint != 0;
            insert(&mut interfaces, name, is_loopback, address);
        }
    }
    // SAFETY: from getifaddrs, freed once, not used afterwards.
    unsafe { libc::freeifaddrs(first) };
    interfaces.sort_by_key(|interface| interface.index);
    if interfaces.iter().any(|interface| !interface.ipv6.is_empty() && !interface.is_loopback) {
        // Without this file there is no IPv6.
        let text = std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
        let tentative: Vec<(u32, Ipv6Addr)> = text.lines().filter_map(tentative).collect();
        for interface in &mut interfaces {
            interface.ipv6.retain(|address| !tentative.contains(&(interface.index, *address)));
        }
    }
    Ok(interfaces)
}

/// Index of the interface and address of a line of `if_inet6` (address, index, length of the prefix, scope and flags in hexadecimal digits, name), if
/// nothing can be sent from it yet.
fn tentative(line: &str) -> Option<(u32, Ipv6Addr)> {
    let mut words = line.split_ascii_whitespace();
    let address = Ipv6Addr::from(u128::from_str_radix(words.next()?, 16).ok()?);
    let index = u32::from_str_radix(words.next()?, 16).ok()?;
    let flags = u32::from_str_radix(words.nth(2)?, 16).ok()?;
    let is_usable = flags & libc::IFA_F_TENTATIVE == 0 || flags & libc::IFA_F_OPTIMISTIC != 0;
    (!is_usable).then_some((index, address))
}

/// IPv4 addresses of all interfaces that are up.
///
/// # Errors
/// Those of [`list`].
pub fn ipv4_addresses() -> io::Result<Vec<Ipv4Addr>> {
    Ok(list()?.into_iter().flat_map(|interface| interface.ipv4).collect())
}

/// Name and IP address of an entry whose interface is up.
///
/// # Safety
/// The entry belongs to a list of `getifaddrs` that has not been freed.
unsafe fn named_address(entry: &libc::ifaddrs) -> Option<(&std::ffi::CStr, IpAddr)> {
    if entry.ifa_flags & libc::IFF_UP as libc::c_uint == 0 {
        return None;
    }
    // SAFETY: `ifa_addr` is null or a socket address of its family.
    let family = unsafe { entry.ifa_addr.as_ref() }?.sa_family;
    let address = match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: of this family, so a sockaddr_in; it need not be aligned as one.
            let address = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            IpAddr::from(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above, a sockaddr_in6.
            let address = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            IpAddr::from(Ipv6Addr::from(address.sin6_addr.s6_addr))
        }
        _ => return None,
    };
    // SAFETY: a string that ends with zero and lives as long as the list.
    Some((unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) }, address))
}

fn insert(interfaces: &mut Vec<Interface>, name: &std::ffi::CStr, is_loopback: bool, address: IpAddr) {
    // SAFETY: a string that ends with zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        // It has gone since the list was made.
        return;
    }
    let known = interfaces.iter().position(|interface| interface.index == index);
    let at = known.unwrap_or_else(|| {
        let name = name.to_string_lossy().into_owned();
        interfaces.push(Interface { index, name, is_loopback, ipv4: Vec::new(), ipv6: Vec::new() });
        interfaces.len() - 1
    });
    match address {
        IpAddr::V4(address) => interfaces[at].ipv4.push(address),
        IpAddr::V6(address) if address.is_unicast_link_local() || address.is_loopback() => {
            interfaces[at].ipv6.push(address);
        }
        IpAddr::V6(_) => {}
    }
}

/// Gives an interface an IPv4 address and prefix length.
pub fn set_address(name: &str, address_v4: [u8; 4], prefix_bits: u32) -> io::Result<()> {
    let socket = control_socket()?;
    let mut request = named_request(name)?;
    request.ifr_ifru.ifru_addr = address(address_v4);
    control(&socket, libc::SIOCSIFADDR, &mut request)?;
    let mask = u32::MAX.checked_shl(32 - prefix_bits.min(32)).unwrap_or(0);
    request.ifr_ifru.ifru_netmask = address(mask.to_be_bytes());
    control(&socket, libc::SIOCSIFNETMASK, &mut request)
}

/// Sets the longest packet an interface carries, in bytes.
pub fn set_mtu(name: &str, mtu_bytes: u16) -> io::Result<()> {
    let mut request = named_request(name)?;
    request.ifr_ifru.ifru_mtu = libc::c_int::from(mtu_bytes);
    control(&control_socket()?, libc::SIOCSIFMTU, &mut request)
}

/// Sets how many packets an interface keeps for a driver that is late.
pub fn set_queue_length(name: &str, packets: u32) -> io::Result<()> {
    let mut request = named_request(name)?;
    request.ifr_ifru.ifru_metric = libc::c_int::try_from(packets).unwrap_or(libc::c_int::MAX);
    control(&control_socket()?, libc::SIOCSIFTXQLEN, &mut request)
}

fn control_socket() -> io::Result<std::os::fd::OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

fn interface_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut bytes = [0; libc::IFNAMSIZ];
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (target, source) in bytes.iter_mut().zip(name.bytes()) {
        *target = source as libc::c_char;
    }
    Ok(bytes)
}

pub(crate) fn named_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: ifreq is a plain C struct for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = interface_name(name)?;
    Ok(request)
}

fn address(octets: [u8; 4]) -> libc::sockaddr {
    // SAFETY: sockaddr is a plain C struct for which all zeros is a valid value.
    let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
    address.sa_family = libc::AF_INET as libc::sa_family_t;
    // sockaddr_in: port in bytes 0–1 of the payload, address in bytes 2–5.
    for (target, octet) in address.sa_data[2..6].iter_mut().zip(octets) {
        *target = octet as libc::c_char;
    }
    address
}

fn control(socket: &impl AsRawFd, operation: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every operation used in this file takes an ifreq; `request` is valid for the call.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), operation as _, request) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_tentative_until_its_check_for_duplicates_is_over() {
        let line = |flags: &str| format!("fe80000000000000001122fffe334455 0c 40 20 {flags}    wire");
        let address = "fe80::11:22ff:fe33:4455".parse().unwrap();
        for (flags, expected) in
            [("c0", Some((12, address))), ("c8", Some((12, address))), ("80", None), ("c4", None)]
        {
            assert_eq!(tentative(&line(flags)), expected, "{flags}");
        }
        assert_eq!(tentative("fe80 zz"), None);
    }

    #[test]
    fn every_interface_is_listed_once_with_its_addresses() {
        let interfaces = list().unwrap();
        let mut indexes: Vec<u32> = interfaces.iter().map(|interface| interface.index).collect();
        indexes.dedup();
        assert_eq!(indexes.len(), interfaces.len());
        assert!(interfaces.iter().all(|each| each.index > 0 && !each.name.is_empty()), "{interfaces:?}");
        if let Some(loopback) = interfaces.iter().find(|interface| interface.is_loopback) {
            assert!(loopback.ipv4.contains(&Ipv4Addr::LOCALHOST), "{loopback:?}");
        }
    }
}
