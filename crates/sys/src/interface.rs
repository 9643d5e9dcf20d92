//! Network interfaces of the calling thread's namespace, by ioctl: no tool needs to be installed.

use std::io;
use std::net::Ipv4Addr;
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

/// IPv4 addresses of all interfaces that are up, in the kernel's order.
pub fn ipv4_addresses() -> io::Result<Vec<Ipv4Addr>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: on success `first` points to a list that lives until `freeifaddrs`.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: not null, so an entry of the list.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        let up = entry.ifa_flags & libc::IFF_UP as libc::c_uint != 0;
        // SAFETY: `ifa_addr` is null or a socket address of its family.
        let family = unsafe { entry.ifa_addr.as_ref() }.map(|address| address.sa_family);
        if up && family == Some(libc::AF_INET as libc::sa_family_t) {
            // SAFETY: of this family, so a sockaddr_in; it need not be aligned as one.
            let address = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            addresses.push(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)));
        }
    }
    // SAFETY: from getifaddrs, freed once, not used afterwards.
    unsafe { libc::freeifaddrs(first) };
    Ok(addresses)
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
