//! Addresses as keys: one client, one key, however it spells its address.

use core::net::{IpAddr, Ipv6Addr};

/// The network that stands for a client when limiting by address.
///
/// An IPv6 client usually has a whole /64 to pick addresses from, so single addresses limit nobody; and an IPv4 client
/// must not get a second limit by connecting to an IPv6 socket, where its address appears as `::ffff:192.0.2.7`. A key made
/// from an address is therefore the IPv4 address itself (also when it comes mapped into IPv6), or the IPv6 network.
///
#[cfg_attr(feature = "dashmap", doc = "```")]
#[cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
/// use std::net::IpAddr;
/// use ratekeeper::{IpKey, KeyedLimiter, TokenBucket};
///
/// let per_client = KeyedLimiter::<IpKey>::new(TokenBucket::per_minute(1));
/// let check = |address: &str| {
///     let address: IpAddr = address.parse().unwrap();
///     per_client.check(&IpKey::from(address)).is_allowed()
/// };
/// assert!(check("2001:db8::1"));
/// assert!(!check("2001:db8::ffff:1")); // the same /64
/// assert!(check("192.0.2.7"));
/// assert!(!check("::ffff:192.0.2.7")); // the same host
/// ```
///
/// Mapped addresses are recognised by their range, `::ffff:0:0/96`. Other forms that embed an IPv4 address (`::192.0.2.7`,
/// 6to4, NAT64) are IPv6 networks like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpKey(IpAddr);

impl IpKey {
    /// The IPv6 prefix of `From<IpAddr>`: what one customer usually gets at least.
    pub const DEFAULT_IPV6_PREFIX: u8 = 64;

    /// The key of `address`, with IPv6 addresses cut to their first `ipv6_prefix` bits (128 and above: the whole address).
    /// Providers hand out prefixes from /48 to /64; a shorter one is harder to escape and more likely to hit neighbours.
    ///
    /// ```
    /// use ratekeeper::IpKey;
    ///
    /// let key = |address: &str| IpKey::new(address.parse().unwrap(), 48);
    /// assert_eq!(key("2001:db8:0:1::1"), key("2001:db8:0:2::1"));
    /// assert_ne!(key("2001:db8:1::1"), key("2001:db8:2::1"));
    /// ```
    pub const fn new(address: IpAddr, ipv6_prefix: u8) -> Self {
        let address = match address {
            IpAddr::V4(_) => return Self(address),
            IpAddr::V6(address) => address,
        };
        if let Some(mapped) = address.to_ipv4_mapped() {
            return Self(IpAddr::V4(mapped));
        }
        let mask = match u128::MAX.checked_shl(128_u32.saturating_sub(ipv6_prefix as u32)) {
            Some(mask) => mask,
            None => 0, // a prefix of 0 bits
        };
        Self(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask)))
    }

    /// The IPv4 address, or the first address of the IPv6 network.
    pub const fn network(self) -> IpAddr {
        self.0
    }
}

impl From<IpAddr> for IpKey {
    fn from(address: IpAddr) -> Self {
        Self::new(address, Self::DEFAULT_IPV6_PREFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str, prefix: u8) -> IpKey {
        IpKey::new(address.parse().unwrap(), prefix)
    }

    #[test]
    fn prefixes_cut_where_they_say() {
        let address = "2001:db8:1234:5678:9abc:def0:1234:5678";
        for (prefix, network) in [
            (0, "::"),
            (1, "::"),
            (3, "2000::"),
            (32, "2001:db8::"),
            (56, "2001:db8:1234:5600::"),
            (64, "2001:db8:1234:5678::"),
            (127, "2001:db8:1234:5678:9abc:def0:1234:5678"),
            (128, address),
            (255, address),
        ] {
            assert_eq!(
                key(address, prefix).network(),
                network.parse::<IpAddr>().unwrap(),
                "/{prefix}"
            );
        }
        assert_ne!(key("2001:db8::1", 128), key("2001:db8::2", 128));
    }

    #[test]
    fn mapped_addresses_are_their_ipv4_address_however_they_are_spelt() {
        let plain = key("192.0.2.7", 64);
        for spelling in [
            "::ffff:192.0.2.7",
            "::FFFF:c000:0207",
            "0:0:0:0:0:ffff:c000:207",
        ] {
            assert_eq!(key(spelling, 64), plain, "{spelling}");
        }
        for other in [
            "::192.0.2.7",
            "::fffe:192.0.2.7",
            "::ffff:0:192.0.2.7",
            "64:ff9b::192.0.2.7",
        ] {
            assert_ne!(key(other, 128), plain, "{other}");
        }
    }
}
